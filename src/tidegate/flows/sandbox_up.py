"""A simulated cluster that stays: what is in it, and how it is served until somebody ends it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from tidegate.apiserver.switchboard import real_now
from tidegate.flows.play import DEFAULT, cluster_wide_kinds, read_objects
from tidegate.flows.sandbox_home import KUBECONFIG, locked
from tidegate.flows.serving import serving
from tidegate.flows.wiring import Simulation, make_living
from tidegate.model.given import GivenCluster
from tidegate.model.objects import Json, Kind
from tidegate.model.reading import mapping, text
from tidegate.schema.builtin import served_kinds

ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


class SandboxUp(msgspec.Struct, frozen=True):
    """A simulated cluster that is up: where it is served, and how to reach it."""

    address: str
    kubeconfig: Path


def with_given(simulation: Simulation, files: Sequence[Path]) -> Simulation:
    """The same, with the objects of files in it from the beginning."""
    documents = [one for path in files for one in read_objects(path)]
    wide = cluster_wide_kinds(served_kinds(), documents)
    objects = tuple(_placed(one.body, wide) for one in documents)
    return replace(simulation, assumed={"": GivenCluster(objects=objects)})


def _placed(body: dict[str, Json], wide: set[tuple[str, str]]) -> dict[str, Json]:
    """What names no namespace and needs one is in that of a new user."""
    kind, known = Kind.of(text(body, "apiVersion"), text(body, "kind")), mapping(body, "metadata")
    if (kind.group, kind.name) in wide or known.get("namespace"):
        return body
    return {**body, "metadata": {**known, "namespace": DEFAULT}}


async def stand(
    simulation: Simulation, home: Path, *, pace: float, tell: Callable[[SandboxUp], None]
) -> None:
    """Serve a new simulated cluster until somebody ends this process. `tell` hears of it once."""
    ended, loop = asyncio.Event(), asyncio.get_running_loop()
    with locked(home):
        for one in ENDING:
            loop.add_signal_handler(one, ended.set)
        world = make_living(replace(simulation, start=simulation.start or real_now()))
        async with serving(world, home, pace=pace) as served:
            served.time.add_done_callback(lambda _: ended.set())
            tell(SandboxUp(served.address, home / KUBECONFIG))
            await ended.wait()
            if served.time.done():
                served.time.result()
