"""Scripts in worker processes, which are killed where a script does not end."""

from __future__ import annotations

import asyncio

from tests.support.recorded_wording import RecordedWording
from tidegate.external.process import MIB, Limits
from tidegate.health.lua import LuaRules, LuaScript, read_lua_verdict
from tidegate.model.k8s.objects import Json
from tidegate.model.k8s.verdict import Health, Verdict
from tidegate.model.times import Ms
from tidegate.sandbox.world import Sandbox
from tidegate.workers.lua import lua_workers
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.messages import RawResponse
from tidegate.world.one_shot import send_requests
from tidegate.world.requests import RunWorker

BODY: dict[str, Json] = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}}
FINE = 'return {status = "Healthy", message = "as it is"}'
ENDLESS_MATCH = 'return string.find(("a"):rep(40), ("a?"):rep(40) .. ("a"):rep(40))'
LATE = Limits(time=Ms(60_000), memory=256 * MIB, output=MIB)


def request(script: str, body: dict[str, Json] | None = None) -> RunWorker:
    rules = LuaRules({"example.com/Thing": LuaScript(script, open_libs=True)})
    made = rules.make_request(body or BODY, Ms(0))
    assert made is not None
    return made


def verdict(reply: bytes) -> Verdict:
    return read_lua_verdict(reply, BODY)


async def test_a_worker_returns_the_result_of_the_script() -> None:
    async with lua_workers(count=1) as lua:
        reply = await lua.request(request(FINE).argument)

    assert verdict(reply) == Verdict(Health.HEALTHY, "Healthy", "as it is")


async def test_a_pattern_that_never_ends_costs_the_worker_and_the_next_one_answers(
    wording: RecordedWording,
) -> None:
    async with lua_workers(count=1) as lua:
        lost = await lua.request(request(ENDLESS_MATCH).argument)
        result = await lua.request(request(FINE).argument)

    message = verdict(lost).message
    assert verdict(lost) == Verdict(Health.UNKNOWN, "LuaError", message)
    wording(message)
    assert verdict(result).health is Health.HEALTHY


async def test_an_object_too_large_for_lua_costs_no_more_than_its_worker(
    wording: RecordedWording,
) -> None:
    large: dict[str, Json] = {**BODY, "spec": [{"a": [{}, {}]} for _ in range(200_000)]}

    async with lua_workers(count=1, limits=LATE) as lua:
        lost = await lua.request(request(FINE, large).argument)
        result = await lua.request(request(FINE).argument)

    wording(verdict(lost).message)
    assert verdict(result).health is Health.HEALTHY


async def test_a_world_runs_the_scripts_of_its_requests() -> None:
    async with lua_workers() as lua:
        world = Sandbox(workers={"lua": lua})
        outcomes = await send_requests(Dispatcher(world), *(request(FINE) for _ in range(20)))

    replies = [outcome.body for outcome in outcomes if isinstance(outcome, RawResponse)]
    assert [verdict(reply).health for reply in replies] == [Health.HEALTHY] * 20


async def test_a_world_gets_an_error_from_a_script_that_does_not_end(
    wording: RecordedWording,
) -> None:
    async with lua_workers() as lua:
        world = Sandbox(workers={"lua": lua})
        (lost, result) = await send_requests(
            Dispatcher(world), request(ENDLESS_MATCH), request(FINE)
        )

    assert isinstance(lost, RawResponse)
    assert isinstance(result, RawResponse)
    wording(verdict(lost.body).message)
    assert verdict(result.body).health is Health.HEALTHY


async def test_no_thread_outlives_the_block(wording: RecordedWording) -> None:
    async with lua_workers(limits=LATE) as lua:
        await lua.request(request(FINE).argument)
        waiting = asyncio.get_running_loop().run_in_executor(
            None, lua, request(ENDLESS_MATCH).argument
        )
        while not lua._pending:
            await asyncio.to_thread(int)

    withdrawn = await waiting
    last = await asyncio.to_thread(lua, request(FINE).argument)
    assert verdict(withdrawn).message == verdict(last).message
    wording(verdict(last).message)
