"""The time to render charts and overlays, compared with starting helm and kustomize for each.

Both programs take turns, round by round, and the median round counts, so that a busy machine is
fair to both. The figures depend on the machine; the ratio hardly does.

`cached` is another rendering of unchanged files in the same run: all file metadata is read, and the
result comes from the cache. `read again` is the first rendering in a new run: it also reads the
files and computes their digests.
"""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from operator import truediv
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

from tests.support.helm_oracle import find_helm, template
from tests.support.overlays import read_case
from tidegate.model.units.chart_request import ChartRequest, Parameter
from tidegate.model.units.rendering import Overlay, RenderRequest
from tidegate.render.helm import argo_layers, helm_workers, render
from tidegate.render.kustomize import build, find_tool
from tidegate.source import Cache
from tidegate.workers.rendering import RenderSettings
from tidegate.workspace.rendering.context import RenderContext
from tidegate.workspace.rendering.overlays import render_request

CHARTS = Path(__file__).parents[1] / "tests" / "data" / "charts"
CHART_NAMES = ("web", "umbrella", "typed", "schema")
OVERLAY_NAMES = ("three-layers", "components", "replacements", "patch-json")
ROUNDS = 7
RENDERS = 40
BUILDS = 2
SPAWNS = 2
AT_ONCE = 2


@dataclass(slots=True)
class Race:
    """The rates of several ways to do the same, round by round."""

    rates: dict[str, list[float]] = field(default_factory=dict)

    async def run(
        self, name: str, things: Sequence[object], work: Callable[[int], Awaitable[object]]
    ) -> None:
        """Do it for each thing, two at a time; what counts is how many get done in a second."""
        turns = asyncio.Semaphore(AT_ONCE)

        async def run_turn(number: int) -> None:
            async with turns:
                await work(number)

        start = perf_counter()
        async with asyncio.TaskGroup() as group:
            for number in range(len(things)):
                group.create_task(run_turn(number), name=f"{name} {number}")
        rate = len(things) / (perf_counter() - start)
        self.rates.setdefault(name, []).append(rate)

    def results(self, other: str) -> dict[str, float]:
        """The median rates of each way, and their ratios to another way."""
        other_rates = self.rates[other]
        ratios = {
            f"{name} / {other}": median(map(truediv, rates, other_rates))
            for name, rates in self.rates.items()
            if name != other
        }
        return {f"{name}/s": median(rates) for name, rates in self.rates.items()} | ratios


def measure() -> dict[str, float]:
    """Rates, and how many times as fast we are."""
    with TemporaryDirectory() as folder:
        charts = asyncio.run(_charts(Path(folder)))
        overlays = asyncio.run(_overlays(Path(folder)))
    return charts | overlays


async def _charts(folder: Path) -> dict[str, float]:
    layers = argo_layers(parameters=[Parameter("replicas", "3")])
    plain = [
        ChartRequest(root=str(CHARTS), chart=name, name="shop") for name in CHART_NAMES
    ] * RENDERS
    typed = [
        ChartRequest(root=item.root, chart=item.chart, name="shop", layers=layers) for item in plain
    ]
    spawned = [CHARTS / name for name in CHART_NAMES] * SPAWNS
    helm, race = find_helm(), Race()

    async def spawn(number: int) -> None:
        options = (helm, spawned[number], "--include-crds")
        (await asyncio.to_thread(template, *options, user_home=folder)).check_returncode()

    async with helm_workers(count=AT_ONCE) as workers, _workshop(folder) as workshop:
        for _ in range(ROUNDS):
            await race.run("charts", plain, lambda n: render(plain[n], workers))
            await race.run("charts with --set", typed, lambda n: render(typed[n], workers))
            await race.run("charts, cached", plain, _cached(plain, workshop))
            await race.run("charts, read again", plain, _read_again(plain, folder))
            await race.run("helm template", spawned, spawn)
    return race.results("helm template")


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
            await race.run("overlays", built, lambda n: build(built[n]))
            await race.run("overlays, cached", cached, _cached(cached, workshop))
            await race.run("overlays, read again", cached, _read_again(cached, folder))
            await race.run("kustomize build", spawned, spawn)
    return race.results("kustomize build")


def _workshop(folder: Path) -> RenderContext:
    return RenderContext(RenderSettings(cache=Cache(folder / "cache"), offline=True))


def _cached(
    requests: Sequence[RenderRequest], workshop: RenderContext
) -> Callable[[int], Awaitable[object]]:
    return lambda number: render_request(requests[number], workshop)


def _read_again(
    requests: Sequence[RenderRequest], folder: Path
) -> Callable[[int], Awaitable[object]]:
    async def render_anew(number: int) -> None:
        async with _workshop(folder) as workshop:
            await render_request(requests[number], workshop)

    return render_anew


if __name__ == "__main__":
    for name, value in measure().items():
        print(f"{name:<40} {value:10.2f}")
