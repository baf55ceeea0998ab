"""The time from the status write that opens a gate to the first write after it.

Both ends are read from the API server's audit log. The bare loop watches Deployments and applies
the next wave when the last one is available; it knows no plan and checks nothing else.
"""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import AsyncIterator

import aiohttp
import msgspec

from bench.engine.cluster import Bench
from tests.support.builders import make_plan_from, make_unit
from tests.support.rollout_audit import DeploymentSeen, a_wave, read_history
from tidegate.kube.access.context import KubeTarget
from tidegate.kube.credentials import make_auth_source
from tidegate.model.k8s.objects import JsonObject

RUNS = 10
WAVES = 20
PLURALS = {"Deployment": "/apis/apps/v1", "ConfigMap": "/api/v1"}


class _Event(msgspec.Struct):
    object: DeploymentSeen


class BareLoop:
    """Watch, apply, nothing else."""

    def __init__(
        self, session: aiohttp.ClientSession, target: KubeTarget, headers: dict[str, str]
    ) -> None:
        self._session = session
        self._server = target.server
        self._headers = headers

    async def run(self, waves: list[tuple[JsonObject, ...]], namespace: str) -> None:
        url = f"{self._server}/apis/apps/v1/namespaces/{namespace}/deployments"
        async with self._session.get(f"{url}?watch=1", headers=self._headers) as watch:
            ready = self._ready(watch)
            for wave in waves:
                async with asyncio.TaskGroup() as group:
                    for body in wave:
                        group.create_task(self._apply(body, namespace))
                await anext(ready)

    async def _ready(self, watch: aiohttp.ClientResponse) -> AsyncIterator[str]:
        """The Deployments as they become available, each once."""
        seen: set[str] = set()
        decode = msgspec.json.Decoder(_Event).decode
        async for line in watch.content:
            result = decode(line).object
            if result.is_ready and result.metadata.name not in seen:
                seen.add(result.metadata.name)
                yield result.metadata.name

    async def _apply(self, body: JsonObject, namespace: str) -> None:
        kind, metadata = str(body["kind"]), body["metadata"]
        if not isinstance(metadata, dict):
            raise TypeError(metadata)
        place = f"{self._server}{PLURALS[kind]}/namespaces/{namespace}/{kind.lower()}s"
        headers = {**self._headers, "Content-Type": "application/apply-patch+yaml"}
        url = f"{place}/{metadata['name']}?fieldManager=bench&force=true"
        data = msgspec.json.encode(body)
        async with self._session.patch(url, data=data, headers=headers) as reply:
            if not reply.ok:
                raise RuntimeError(await reply.text())
            await reply.read()


async def run(bench: Bench) -> None:
    headers = dict((await make_auth_source(bench.target).current()).headers())
    for number in range(RUNS):
        for name in (f"bare-{number}", f"engine-{number}"):
            await bench.make_namespace(name)
        async with bench.session() as session:
            name = f"bare-{number}"
            waves = [a_wave(wave, name) for wave in range(WAVES)]
            await BareLoop(session, bench.target, headers).run(waves, name)
        name = f"engine-{number}"
        waves = [a_wave(wave, name) for wave in range(WAVES)]
        await bench.roll_out(make_plan_from(make_unit(*waves, name=name)))


def measure(bench: Bench) -> dict[str, float]:
    asyncio.run(run(bench))
    figures: dict[str, float] = {}
    for who in ("bare", "engine"):
        rollouts = [read_history(bench.plane.audit_log, f"{who}-{turn}") for turn in range(RUNS)]
        waits = [wait for rollout in rollouts for wait in rollout.gates()]
        figures[f"gate, {who}, p50 ms"] = statistics.median(waits)
        figures[f"gate, {who}, p99 ms"] = statistics.quantiles(waits, n=100)[98]
    for rank in ("p50", "p99"):
        ratio = figures[f"gate, engine, {rank} ms"] / figures[f"gate, bare, {rank} ms"]
        figures[f"gate, engine / bare, {rank}"] = ratio
    return figures
