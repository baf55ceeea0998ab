"""The memory of a process that rolls out many objects, at its peak."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.engine.applies import a_heap
from bench.engine.cluster import USER, Bench
from tidegate.plan.serialize import to_json

OBJECTS = 10_000
KEY = b"of the bench"
PROGRAM = "tests.support.rollout_program"


def measure(bench: Bench) -> dict[str, float]:
    """MiB: the first rollout, and a second one that finds everything."""
    asyncio.run(bench.make_namespace("many"))
    with TemporaryDirectory() as folder:
        plan = Path(folder) / "plan.json"
        plan.write_bytes(to_json(a_heap("many", OBJECTS), KEY))
        return {
            f"memory at {OBJECTS:,} objects, {run}, MiB": peak(bench, plan)
            for run in ("first run", "second run")
        }


LAUNCHER = """\
import os, subprocess, sys
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, used = os.wait4(child.pid, 0)
print(used.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status))
"""
"""A child counts what its parent had when it was forked: so its parent must be small."""


def peak(bench: Bench, plan: Path) -> float:
    program = [sys.executable, "-m", PROGRAM, str(plan), str(bench.plane.kubeconfig(USER)), "bench"]
    words = [sys.executable, "-c", LAUNCHER, *program]
    ran = subprocess.run(words, stdout=subprocess.PIPE, check=True)  # noqa: S603 - our own program
    return int(ran.stdout) / 1024
