"""How fast charts and overlays are rendered, beside starting helm and kustomize for each.

Ours and theirs take turns in one run and the best round of each counts, so that a busy machine is
fair to both. The figures of one machine mean little; the ratio does not change much from one to the
next. `cached` is a second rendering of the same content: files are read and digested, and what they
came to is taken from the cache.
"""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from tests.e2e.helm_oracle import find_helm, template
from tests.unit.render.overlays import read_case
from tidegate.flows.rendering import Asked, Setting, Workshop, render_unit
from tidegate.render.helm import Parameter, Release, argo_layers, helm_workers, render
from tidegate.render.kustomize import Overlay, build, find_tool
from tidegate.source import Cache

CHARTS = Path(__file__).parents[1] / "tests" / "data" / "charts"
CHART_NAMES = ("web", "umbrella", "typed", "schema")
OVERLAY_NAMES = ("three-layers", "components", "replacements", "patch-json")
ROUNDS = 5
RENDERS = 40
BUILDS = 2
SPAWNS = 2
AT_ONCE = 2


@dataclass(slots=True)
class Race:
    """The best rate of each of several ways to do the same."""

    best: dict[str, float] = field(default_factory=dict)

    async def run(
        self, name: str, things: Sequence[object], deed: Callable[[int], Awaitable[object]]
    ) -> None:
        """Do it for each thing, two at a time; what counts is how many get done in a second."""
        turns = asyncio.Semaphore(AT_ONCE)

        async def one(number: int) -> None:
            async with turns:
                await deed(number)

        start = perf_counter()
        async with asyncio.TaskGroup() as group:
            for number in range(len(things)):
                group.create_task(one(number), name=f"{name} {number}")
        rate = len(things) / (perf_counter() - start)
        self.best[name] = max(rate, self.best.get(name, 0))


def measure() -> dict[str, float]:
    """Rates, and how many times as fast we are."""
    with TemporaryDirectory() as folder:
        charts = asyncio.run(_charts(Path(folder)))
        overlays = asyncio.run(_overlays(Path(folder)))
    return {
        **charts,
        "render / helm template": charts["helm renders/s"] / charts["helm template/s"],
        "cached / helm template": charts["cached charts/s"] / charts["helm template/s"],
        **overlays,
        "build / kustomize": overlays["overlay builds/s"] / overlays["kustomize build/s"],
        "cached / kustomize": overlays["cached overlays/s"] / overlays["kustomize build/s"],
    }


async def _charts(folder: Path) -> dict[str, float]:
    layers = argo_layers(parameters=[Parameter("replicas", "3")])
    plain = [Release(root=str(CHARTS), chart=name, name="shop") for name in CHART_NAMES] * RENDERS
    typed = [Release(root=one.root, chart=one.chart, name="shop", layers=layers) for one in plain]
    spawned = [CHARTS / name for name in CHART_NAMES] * SPAWNS
    helm, race = find_helm(), Race()

    async def spawn(number: int) -> None:
        options = (helm, spawned[number], "--include-crds")
        (await asyncio.to_thread(template, *options, home=folder)).check_returncode()

    async with helm_workers(count=AT_ONCE) as workers, _workshop(folder) as workshop:
        for _ in range(ROUNDS):
            await race.run("helm renders/s", plain, lambda n: render(plain[n], workers))
            await race.run("with an integer set", typed, lambda n: render(typed[n], workers))
            await race.run("cached charts/s", plain, _cached(plain, workshop))
            await race.run("helm template/s", spawned, spawn)
    return race.best


async def _overlays(folder: Path) -> dict[str, float]:
    for name in OVERLAY_NAMES:
        read_case(name).write(folder / name)
    overlays = [Overlay(root=folder / name, path="app") for name in OVERLAY_NAMES]
    built, cached, spawned = overlays * BUILDS, overlays * RENDERS, overlays * SPAWNS
    race = Race()

    async def spawn(number: int) -> None:
        argv = [*find_tool().argv, "app"]
        place = spawned[number].root
        await asyncio.to_thread(subprocess.run, argv, cwd=place, capture_output=True, check=True)

    async with _workshop(folder) as workshop:
        for _ in range(ROUNDS):
            await race.run("overlay builds/s", built, lambda n: build(built[n]))
            await race.run("cached overlays/s", cached, _cached(cached, workshop))
            await race.run("kustomize build/s", spawned, spawn)
    return race.best


def _workshop(folder: Path) -> Workshop:
    return Workshop(Setting(cache=Cache(folder / "cache"), offline=True))


def _cached(asked: Sequence[Asked], workshop: Workshop) -> Callable[[int], Awaitable[object]]:
    return lambda number: render_unit(asked[number], workshop)


if __name__ == "__main__":
    for name, value in measure().items():
        print(f"{name:<24} {value:12.2f}")
