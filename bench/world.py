"""Applies through a World compared with a bare loop of the same HTTP client, on a real API server.

Both write the same ConfigMaps with the same bytes, in turns, so that a noisy neighbour is shared.
The bare loop keeps 16 requests in flight and reads each answer to its end, nothing else.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from dataclasses import dataclass
from typing import Self

import aiohttp
import msgspec

from plane import ControlPlane
from tests.support.cluster_client import ClusterClient, require_live
from tidegate.kube.access.context import KubeTarget
from tidegate.kube.config import load_target
from tidegate.kube.credentials import make_auth_source
from tidegate.kube.tls import make_context
from tidegate.kube.world import KubeWorld
from tidegate.model.k8s.objects import JsonObject, Kind, Ref
from tidegate.model.times import Ms
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.messages import Response, Success
from tidegate.world.requests import Call, RequestId, Verb, Write
from tidegate.world.resilient import ResilientWorld

ROUNDS = 5
APPLIES = 1_000
IN_FLIGHT = 16
CONFIG_MAP = Kind("", "v1", "ConfigMap")
NAMESPACE = "bench"


@dataclass(frozen=True, slots=True)
class Round:
    """One round: requests a second, and the CPU that each cost us."""

    rate: float
    cpu_us: float


class RoundTimer:
    """Measures a round of this number of calls."""

    def __init__(self, count: int = APPLIES) -> None:
        self._count = count

    def __enter__(self) -> Self:
        self._wall, self._cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        wall, cpu = time.perf_counter() - self._wall, time.process_time() - self._cpu
        self.lap = Round(self._count / wall, cpu / self._count * 1e6)


def bodies(turn: int, *, namespace: str = NAMESPACE, count: int = APPLIES) -> list[JsonObject]:
    """A kilobyte each, changed in every turn so that each apply is a write."""
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"m{number}", "namespace": namespace},
            "data": {"turn": str(turn), "text": "x" * 900},
        }
        for number in range(count)
    ]


def encoded(work: list[JsonObject]) -> list[tuple[str, bytes]]:
    return [(f"m{number}", msgspec.json.encode(body)) for number, body in enumerate(work)]


async def bare_lap(
    session: aiohttp.ClientSession,
    target: KubeTarget,
    work: list[tuple[str, bytes]],
    namespace: str = NAMESPACE,
) -> Round:
    auth = await make_auth_source(target).current()
    headers = {**dict(auth.headers()), "Content-Type": "application/apply-patch+yaml"}
    base = f"{target.server}/api/v1/namespaces/{namespace}/configmaps"

    async def worker() -> None:
        while work:
            name, body = work.pop()
            url = f"{base}/{name}?fieldManager=bench&force=true"
            async with session.patch(url, data=body, headers=headers) as reply:
                if not reply.ok:
                    raise RuntimeError(await reply.text())
                await reply.read()

    with RoundTimer(len(work)) as watchman:
        async with asyncio.TaskGroup() as group:
            for _ in range(IN_FLIGHT):
                group.create_task(worker())
    return watchman.lap


async def world_lap(line: ResilientWorld, turn: int) -> Round:
    work = encoded(bodies(turn))
    with RoundTimer() as watchman:
        for request_id, (name, body) in enumerate(work, start=1):
            ref = Ref(CONFIG_MAP, NAMESPACE, name)
            write = Write(verb=Verb.APPLY, ref=ref, body=body, manager="bench", force=True)
            line.submit(Call(request_id=RequestId(request_id), request=write))
        left = len(work)
        while left:
            for message in await line.wait(None):
                if not isinstance(message, Response) or not isinstance(message.outcome, Success):
                    raise TypeError(message)
                left -= 1
    return watchman.lap


async def run(target: KubeTarget) -> tuple[list[Round], list[Round]]:
    connector = aiohttp.TCPConnector(ssl=make_context(target, None), limit=0)
    async with (
        aiohttp.ClientSession(connector=connector) as session,
        KubeWorld({"": target}, watch_timeout=Ms(300_000)) as world,
    ):
        line = ResilientWorld(world)
        namespace: JsonObject = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": NAMESPACE},
        }
        require_live(await ClusterClient(Dispatcher(line)).apply(namespace))
        await bare_lap(session, target, encoded(bodies(0)))
        await world_lap(line, 1)
        bare, through_world = [], []
        for turn in range(ROUNDS):
            bare.append(await bare_lap(session, target, encoded(bodies(2 * turn + 2))))
            through_world.append(await world_lap(line, 2 * turn + 3))
        return bare, through_world


def measure() -> dict[str, float]:
    """Medians over the rounds; the ratio is of neighbours in time."""
    with ControlPlane.start() as plane:
        target = load_target(kubeconfig=str(plane.kubeconfig("tidegate")), environ=os.environ)
        bare, through_world = asyncio.run(run(target))
    return {
        "bare loop, applies/s": statistics.median(lap.rate for lap in bare),
        "World, applies/s": statistics.median(lap.rate for lap in through_world),
        "World / bare, rate": statistics.median(
            mine.rate / theirs.rate for mine, theirs in zip(through_world, bare, strict=True)
        ),
        "bare loop, CPU us/apply": statistics.median(lap.cpu_us for lap in bare),
        "World, CPU us/apply": statistics.median(lap.cpu_us for lap in through_world),
    }


if __name__ == "__main__":
    for name, value in measure().items():
        print(f"{name:28} {value:10.2f}")
