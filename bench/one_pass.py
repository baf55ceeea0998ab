"""One pass of a command: its requests, discoveries, renders and plans, and its CPU time.

`sync` of plain directories on a simulated cluster behind HTTP, and `lint` of Applications that each
deploy ten objects and a namespace. CPU time of the whole command, as a multiple of
`tidegate --help` in the same run.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from bench.cpu_time import spent_by_programs
from bench.lint import write_repository
from tests.support.counted_calls import counter, read_counts
from tests.support.served_cluster import served_cluster
from tests.support.warm_start import WarmRun
from tidegate.clusters.sandboxes import KUBECONFIG

SYNCED_OBJECTS = (2, 50, 500)
LINTED_OBJECTS = (10, 1_000, 10_000)
UNIT_OBJECTS = 12
"""An Application, its namespace and ten objects, as `lint` counts them."""
LINTED_UNITS = 150
LIMITS = {"lint of 10000 objects": 2, f"lint of {LINTED_UNITS} units": 1}
"""CPU seconds of a second run."""
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: map-{number}}}\ndata: {{a: b}}\n"
BYTECODE = Path(tempfile.gettempdir(), "tidegate-bench-bytecode")
COUNTS = ("requests", "discoveries", "renders", "plans")


def measure() -> dict[str, float]:
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        asyncio.run(_measure_sync(folder / "bytecode", 1, 1))  # imports of the first run
        start = _seconds(folder, "--help")
        figures: dict[str, float] = {}
        for objects in SYNCED_OBJECTS:
            synced = asyncio.run(_measure_sync(folder / f"sync-{objects}", objects, start))
            figures |= {f"sync of {objects} objects, {name}": n for name, n in synced.items()}
        for objects in LINTED_OBJECTS:
            units = max(1, objects // UNIT_OBJECTS)
            figures |= _measure_lint(folder, f"lint of {objects} objects", units, start)
        figures |= _measure_lint(folder, f"lint of {LINTED_UNITS} units", LINTED_UNITS, start)
    return figures


async def _measure_sync(folder: Path, objects: int, start: float) -> dict[str, float]:
    shop = folder / "shop"
    shop.mkdir(parents=True)
    maps = (MAP.format(number=number) for number in range(objects))
    (shop / "maps.yaml").write_text("---\n".join(maps))
    counts, spent = dict[str, float](), 0.0
    for name in ("counted", "timed"):
        (folder / name).mkdir()
        async with served_cluster(folder / name, served=False):
            words = ("sync", str(shop), "--yes", "--kubeconfig", str(folder / name / KUBECONFIG))
            if name == "counted":
                counts |= await asyncio.to_thread(_count, folder, *words)
            else:
                spent = await asyncio.to_thread(_seconds, folder, *words)
    return {**{name: counts[name] for name in COUNTS}, "CPU / --help": spent / start}


def _measure_lint(folder: Path, title: str, units: int, start: float) -> dict[str, float]:
    repository = folder / title
    repository.mkdir()
    write_repository(repository, units)
    words = ("lint", str(repository))
    counts, spent, again = (
        _count(repository, *words),
        _seconds(repository, *words),
        _seconds(repository, *words),
    )
    limit = f" (limit: {LIMITS[title]})" if title in LIMITS else ""
    return {
        **{f"{title}, {name}": counts[name] for name in COUNTS},
        f"{title}, CPU / --help": spent / start,
        f"{title}, again, CPU / --help": again / start,
        f"{title}, again, CPU s{limit}": again,
    }


def _environment(folder: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(folder)}


def _count(folder: Path, *words: str) -> Mapping[str, int]:
    log = folder / "counts"
    WarmRun(words, folder, _environment(folder), first=counter(log)).to_its_end()
    return read_counts(log)


def _seconds(folder: Path, *words: str) -> float:
    """CPU time of a command in a new interpreter."""
    before = spent_by_programs()
    environment = {**_environment(folder), "PYTHONPYCACHEPREFIX": str(BYTECODE)}
    command = [sys.executable, "-m", "tidegate", *words]
    subprocess.run(command, check=False, capture_output=True, env=environment)  # noqa: S603
    return spent_by_programs() - before
