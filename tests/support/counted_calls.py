"""How often a command calls a function: Python for it to run first, and what that has counted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

COUNTED = {
    "discoveries": "tidegate.workspace.discovery.discover:discover",
    "plans": "tidegate.planning.plan:make_plan",
    "renders": "tidegate.workspace.rendering.render_unit:render_unit",
    "requests": "tidegate.kube.transport:Transport._request",
}
"""The functions, by what a call of them is."""
COUNTER = """
import atexit, functools, importlib, json, sys

frames = {{}}

def find_code(path):
    module, _, name = path.partition(":")
    names = [importlib.import_module(module), *name.split(".")]
    return functools.reduce(getattr, names).__code__

names = {{find_code(path): name for name, path in {counted!r}.items()}}

def hear(frame, event, _argument):
    # A coroutine enters its frame again whenever it goes on.
    if event == "call" and frame.f_code in names:
        frames[id(frame)] = frame

def write():
    sys.setprofile(None)
    counts = dict.fromkeys(names.values(), 0)
    for frame in frames.values():
        counts[names[frame.f_code]] += 1
    with open({log!r}, "w") as file:
        json.dump(counts, file)

atexit.register(write)
sys.setprofile(hear)
"""


def counter(log: Path) -> str:
    """Return the Python that counts in a process, and writes the counts to a file at its end."""
    return COUNTER.format(counted=COUNTED, log=str(log))


def read_counts(log: Path) -> Mapping[str, int]:
    """Return the counts that a process has written."""
    counts: dict[str, int] = json.loads(log.read_text())
    return counts
