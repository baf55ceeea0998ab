"""Record every case, or those that are named, on a control plane of its own."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from plane import ControlPlane
from tests.conformance.controllers.catalogue import CASES
from tests.conformance.controllers.files import FOLDER, write_traces
from tests.support.cluster_client import ClusterClient, require_live
from tests.support.trace_case import Case
from tests.support.trace_run import Trace, trace
from tests.support.worlds import real_world
from tidegate.model.k8s.objects import JsonObject
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.resilient import ResilientWorld

RUNS = 4
"""Real controllers race each other: so often each case is run, to hear what they may say."""
AT_ONCE = 12


async def listen(case: Case, number: int, kubeconfig: Path, turns: asyncio.Semaphore) -> Trace:
    """Run one case once, in a namespace of its own."""
    async with turns, real_world(kubeconfig=kubeconfig) as world:
        dispatcher = Dispatcher(ResilientWorld(world))
        namespace = f"trace-{number}-{case.name}"[:63].rstrip("-")
        body: JsonObject = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": namespace},
        }
        require_live(await ClusterClient(dispatcher).apply(body))
        return await trace(case, ClusterClient(dispatcher, namespace=namespace))


async def record(case: Case, kubeconfig: Path, turns: asyncio.Semaphore) -> None:
    """Run a case several times, and keep what was heard."""
    async with asyncio.TaskGroup() as group:
        runs = [
            group.create_task(listen(case, number, kubeconfig, turns), name=case.name)
            for number in range(RUNS)
        ]
    write_traces(case, [run.result() for run in runs])


async def record_all(cases: list[Case], kubeconfig: Path) -> None:
    turns = asyncio.Semaphore(AT_ONCE)
    async with asyncio.TaskGroup() as group:
        for case in cases:
            group.create_task(record(case, kubeconfig, turns), name=case.name)


def main(names: list[str]) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    cases = [case for case in CASES if not names or case.name in names]
    with ControlPlane.start() as plane:
        asyncio.run(record_all(cases, plane.kubeconfig("tidegate")))


if __name__ == "__main__":
    main(sys.argv[1:])
