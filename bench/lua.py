"""How fast objects are judged by scripts, in workers.

`in the worker` is the script alone, with the object made into tables of Lua. `asked` is the whole
way of a verb: to a worker and back, many at once. `through threads` is the way of a world, which
calls workers from threads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from statistics import median
from time import perf_counter

from tidegate.health.lua import LuaRules, LuaScript, read_lua_verdict
from tidegate.health.lua.interpreter import LuaInterpreter
from tidegate.model.k8s.objects import Json
from tidegate.model.k8s.verdict import Health
from tidegate.model.times import Ms
from tidegate.workers.lua import lua_workers
from tidegate.workers.scripts import ScriptWorkers

SCRIPT = """\
local hs = { status = "Progressing", message = "Waiting for the controller" }
if obj.status ~= nil and obj.status.conditions ~= nil then
  for i, condition in ipairs(obj.status.conditions) do
    if condition.type == "Ready" then
      hs.status = condition.status == "True" and "Healthy" or "Degraded"
      hs.message = condition.message
      return hs
    end
  end
end
return hs
"""
LABELS: dict[str, Json] = {f"example.com/label-{number}": "value" for number in range(10)}
PORTS: list[Json] = [{"name": f"port-{number}", "port": number} for number in range(20)]
CONDITIONS: list[Json] = [
    {"type": kind, "status": "True", "reason": "AsItIs", "message": "all is well"}
    for kind in ("Synced", "Issued", "Bound", "Ready")
]
BODY: dict[str, Json] = {
    "apiVersion": "example.com/v1",
    "kind": "Thing",
    "metadata": {"name": "one", "namespace": "shop", "generation": 3, "labels": LABELS},
    "spec": {"replicas": 3, "ports": PORTS},
    "status": {"observedGeneration": 3, "conditions": CONDITIONS},
}
AMOUNT = 2_000
ROUNDS = 5
AT_ONCE = 8


def measure() -> dict[str, float]:
    """Evaluations a second."""
    request = LuaRules.from_scripts([("example.com/Thing", LuaScript(SCRIPT))]).make_request(
        BODY, Ms(0)
    )
    if request is None:
        raise AssertionError("no script is for the object")
    question = request.argument
    rates = {"in the worker/s": _rate_inside(question)}
    return rates | asyncio.run(_rates_outside(question))


def _rate_inside(question: bytes) -> float:
    machine = LuaInterpreter()
    _check(machine.answer(question))
    rounds = []
    for _ in range(ROUNDS):
        start = perf_counter()
        for _ in range(AMOUNT):
            machine.answer(question)
        rounds.append(AMOUNT / (perf_counter() - start))
    return median(rounds)


async def _rates_outside(question: bytes) -> dict[str, float]:
    async with lua_workers() as lua:
        _check(await lua.request(question))
        return {
            "asked/s": await _rate(lambda: lua.request(question)),
            "through threads/s": await _rate(lambda: _in_thread(lua, question)),
        }


def _in_thread(lua: ScriptWorkers, question: bytes) -> Awaitable[bytes]:
    return asyncio.to_thread(lua, question)


async def _rate(ask: Callable[[], Awaitable[bytes]]) -> float:
    async def some() -> None:
        for _ in range(AMOUNT // AT_ONCE):
            await ask()

    rounds = []
    for _ in range(ROUNDS):
        start = perf_counter()
        async with asyncio.TaskGroup() as group:
            for number in range(AT_ONCE):
                group.create_task(some(), name=f"asker {number}")
        rounds.append(AMOUNT / (perf_counter() - start))
    return median(rounds)


def _check(reply: bytes) -> None:
    verdict = read_lua_verdict(reply, BODY)
    if verdict.health is not Health.HEALTHY:
        raise AssertionError(verdict.message)


if __name__ == "__main__":
    for name, value in measure().items():
        print(f"{name:40} {value:10.0f}")
