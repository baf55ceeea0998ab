"""How fast charts are rendered, beside starting `helm template` for each, in the same run.

Rounds of both take turns and the best of each counts, so that a busy machine is fair to both. The
figures of one machine mean little; the ratio does not change much from one to the next.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from tests.e2e.helm_oracle import find_helm, template
from tidegate.external.worker import Workers
from tidegate.render.helm import Parameter, Release, argo_layers, helm_workers, render

CHARTS = Path(__file__).parents[1] / "tests" / "data" / "charts"
NAMES = ("web", "umbrella", "typed", "schema")
ROUNDS = 6
RENDERS = 40
SPAWNS = 2
WORKERS = 2


def measure() -> dict[str, float]:
    """Charts per second with two at a time, ours and theirs, and how many times as fast we are."""
    plain, typed, theirs = asyncio.run(_measure())
    return {
        "helm renders/s": plain,
        "with an integer set": typed,
        "helm template/s": theirs,
        "render / helm template": plain / theirs,
    }


async def _measure() -> tuple[float, float, float]:
    layers = argo_layers(parameters=[Parameter("replicas", "3")])
    plain = [Release(root=str(CHARTS), chart=name, name="shop") for name in NAMES]
    typed = [Release(root=str(CHARTS), chart=name, name="shop", layers=layers) for name in NAMES]
    helm = find_helm()
    rates: list[tuple[float, float, float]] = []
    with TemporaryDirectory() as home:
        async with helm_workers(count=WORKERS) as workers:
            await _render(plain, workers)
            for _ in range(ROUNDS):
                ours = await _render(plain, workers), await _render(typed, workers)
                rates.append((*ours, await _spawn(helm, Path(home))))
    return max(a for a, _, _ in rates), max(b for _, b, _ in rates), max(c for _, _, c in rates)


async def _render(releases: list[Release], workers: Workers) -> float:
    start = perf_counter()
    async with asyncio.TaskGroup() as group:
        for number in range(RENDERS):
            for release in releases:
                group.create_task(render(release, workers), name=f"{release.chart} {number}")
    return RENDERS * len(releases) / (perf_counter() - start)


async def _spawn(helm: Path, home: Path) -> float:
    start = perf_counter()
    turns = asyncio.Semaphore(WORKERS)
    async with asyncio.TaskGroup() as group:
        for number in range(SPAWNS):
            for name in NAMES:
                deed = _template(helm, CHARTS / name, home, turns)
                group.create_task(deed, name=f"helm {name} {number}")
    return SPAWNS * len(NAMES) / (perf_counter() - start)


async def _template(helm: Path, chart: Path, home: Path, turns: asyncio.Semaphore) -> None:
    async with turns:
        ended = await asyncio.to_thread(template, helm, chart, "--include-crds", home=home)
        ended.check_returncode()


if __name__ == "__main__":
    for name, value in measure().items():
        print(f"{name:<24} {value:12.2f}")
