"""`tidegate simulate` with few and with many objects: memory, and CPU time for each object.

Every ten objects are an app, as in `units`. The command runs in a process of its own, started by a
small one: a child counts what its parent had when it was forked.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.engine.memory import LAUNCHER
from bench.units import PER_APP, an_app
from tidegate.documents.dump import to_yaml
from tidegate.model.k8s.objects import JsonObject

OBJECTS = (1_000, 5_000, 20_000)
WAVE = "argocd.argoproj.io/sync-wave"


def measure() -> dict[str, float]:
    figures: dict[str, float] = {}
    for objects in OBJECTS:
        with TemporaryDirectory() as folder:
            write_apps(Path(folder), objects // PER_APP)
            memory, seconds = simulate(folder)
        figures[f"{objects:,} objects, MiB"] = memory
        figures[f"{objects:,} objects, CPU ms an object"] = seconds * 1_000 / objects
    return figures


def write_apps(folder: Path, apps: int) -> None:
    for number in range(apps):
        waves = an_app(number)
        bodies = [_in_wave(body, wave) for wave, part in enumerate(waves) for body in part]
        (folder / f"app-{number}.yaml").write_text("---\n".join(map(to_yaml, bodies)))


def _in_wave(body: JsonObject, wave: int) -> JsonObject:
    metadata = body["metadata"]
    if not isinstance(metadata, dict):
        raise TypeError(metadata)
    return {**body, "metadata": {**metadata, "annotations": {WAVE: str(wave)}}}


def simulate(folder: str) -> tuple[float, float]:
    """The most MiB at a time, and seconds of CPU."""
    program = [sys.executable, "-m", "tidegate", "simulate", folder]
    words = [sys.executable, "-c", f"{LAUNCHER.rpartition('print')[0]}{PRINT}", *program]
    ran = subprocess.run(words, stdout=subprocess.PIPE, check=True)  # noqa: S603 - our own program
    kibibytes, seconds = ran.stdout.split()
    return int(kibibytes) / 1024, float(seconds)


PRINT = """\
print(used.ru_maxrss, used.ru_utime + used.ru_stime)
sys.exit(os.waitstatus_to_exitcode(status))
"""
