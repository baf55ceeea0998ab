"""The live view of a large rollout on a real API server: its share of one core.

A thousand objects in ten waves, with ten Jobs as hooks in each; the pods of the cluster end the
Jobs. The view draws on a pseudo-terminal of 160 columns that a thread reads. All calls of the view
are timed in the process that rolls out, and compared with the CPU time of the process.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import struct
import tempfile
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from bench.engine.cluster import USER, Bench
from plane import ControlPlane
from tests.support.unit_trees import make_unit_tree
from tidegate.cli.options import Flags
from tidegate.cli.progress import show_progress
from tidegate.cli.rollout_display import RolloutTerminal
from tidegate.cli.screen.screen import Screen
from tidegate.clusters.session import ClusterTargets, open_session
from tidegate.model.k8s.objects import Json
from tidegate.model.rollouts.event import Event
from tidegate.model.times import Ms
from tidegate.planning.preparation import prepare_plan
from tidegate.rollout.run import RolloutOptions
from tidegate.workspace.rendering.context import user_render_settings
from tidegate.workspace.request import unit_for_path

WAVES, OBJECTS, HOOKS = 10, 100, 10
DEPLOYMENTS = 10
"""Objects of a wave that a gate waits for; the others are ready when they are written."""
COLUMNS, LINES = 160, 50
NAME = "live"
TERMINAL = {"TERM": "xterm-256color", "LANG": "C.UTF-8"}


def bodies() -> Iterator[dict[str, Json]]:
    for wave in range(WAVES):
        notes: dict[str, Json] = {"argocd.argoproj.io/sync-wave": str(wave)}
        hook = {**notes, "argocd.argoproj.io/hook": "Sync"}
        for number in range(HOOKS):
            yield _body("batch/v1", "Job", f"hook-{wave}-{number}", hook, _job())
        for number in range(DEPLOYMENTS):
            yield _body("apps/v1", "Deployment", f"app-{wave}-{number}", notes, _deployment())
        for number in range(OBJECTS - DEPLOYMENTS):
            content: dict[str, Json] = {"data": {"text": "x" * 200}}
            yield _body("v1", "ConfigMap", f"settings-{wave}-{number}", notes, content)


def _body(
    version: str, kind: str, name: str, notes: dict[str, Json], content: dict[str, Json]
) -> dict[str, Json]:
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name, "annotations": {**notes}},
        **content,
    }


def _job() -> dict[str, Json]:
    pod: dict[str, Json] = {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}]}
    return {"spec": {"template": {"spec": pod}}}


def _deployment() -> dict[str, Json]:
    labels: dict[str, Json] = {"app": "a"}
    pod: dict[str, Json] = {"containers": [{"name": "a", "image": "a"}]}
    template: dict[str, Json] = {"metadata": {"labels": labels}, "spec": pod}
    return {"spec": {"selector": {"matchLabels": labels}, "template": template}}


class TimedScreen(Screen):
    """A screen that knows how much CPU time its own work took."""

    spent = 0.0
    events = 0

    def emit(self, event: Event) -> None:
        self.events += 1
        with self._timed():
            super().emit(event)

    def _refresh(self) -> None:
        with self._timed():
            super()._refresh()

    @contextmanager
    def _timed(self) -> Iterator[None]:
        begun = time.thread_time()
        yield
        self.spent += time.thread_time() - begun


class Reader(threading.Thread):
    """Reads the terminal and counts the bytes."""

    def __init__(self, master: int) -> None:
        super().__init__(name="reader", daemon=True)
        self.read = 0
        self._master = master

    def run(self) -> None:
        while True:
            try:
                result = os.read(self._master, 65_536)
            except OSError:  # Linux says so when the last one has closed the other end
                return
            self.read += len(result)


@contextmanager
def a_terminal() -> Iterator[tuple[TextIO, Reader]]:
    master, slave = os.openpty()
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    reader = Reader(master)
    reader.start()
    with open(slave, "w", encoding="utf-8") as stream:  # noqa: PTH123 - it has no path
        yield stream, reader
    reader.join()
    os.close(master)


async def run(bench: Bench, folder: Path, stream: TextIO) -> dict[str, float]:
    await bench.make_namespace(NAME)
    target = ClusterTargets(kubeconfig=str(bench.plane.kubeconfig(USER)))
    unit = unit_for_path(str(folder), namespace=NAME)
    on_terminal = TimedScreen.for_stream(stream, TERMINAL)
    async with on_terminal as screen, open_session(target, user_render_settings()) as session:
        plan = (await prepare_plan([await make_unit_tree(unit, session)], session)).plan
        begun, used = time.perf_counter(), time.thread_time()
        screen.set_title(NAME)
        flags: Flags = {
            "speed": None,
            "timeout": None,
            "cluster_patience": Ms(60_000),
            "logs": False,
        }
        terminal = RolloutTerminal(screen, session, flags, show_progress("", quiet=True))
        result = await terminal.roll_out(plan, RolloutOptions())
        lasted, used = time.perf_counter() - begun, time.thread_time() - used
    if result != "passed":
        raise RuntimeError(screen.progress.message)
    return {
        "steps": len(plan.steps),
        "events": screen.events,
        "seconds": lasted,
        "view, % of one core": 100 * screen.spent / lasted,
        "rollout with its view, % of one core": 100 * used / lasted,
        "view / rollout with its view, CPU time": screen.spent / used,
    }


def measure() -> dict[str, float]:
    """One rollout on a control plane of its own."""
    with ControlPlane.start() as plane, tempfile.TemporaryDirectory() as folder:
        lines = "".join(f"---\n{json.dumps(body)}\n" for body in bodies())
        (Path(folder) / "unit.yaml").write_text(lines)
        with a_terminal() as (stream, reader):
            figures = asyncio.run(run(Bench(plane), Path(folder), stream))
        return {**figures, "view, kB written": reader.read / 1_000}


if __name__ == "__main__":
    for name, value in measure().items():
        print(f"{name:40} {value:10.2f}")
