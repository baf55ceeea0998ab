"""A simulated cluster that stays: started, found again, and ended.

Its directory holds a file with the number of its process, locked for as long as that lives; the
kubeconfig; and what it had to complain about. So nobody takes a dead one for a living one.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from tidegate.apiserver.switchboard import real_now
from tidegate.errors import ClusterError, LateError, Place
from tidegate.flows.play import DEFAULT, cluster_wide_kinds, read_objects
from tidegate.flows.serving import KUBECONFIG, serving
from tidegate.flows.wiring import Simulation, make_living
from tidegate.model.given import GivenCluster
from tidegate.model.objects import Json, Kind
from tidegate.model.reading import mapping, text
from tidegate.schema.builtin import served_kinds

PROCESS, LOG = "pid", "log"
ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
PATIENCE = 15.0
LOOK_AGAIN = 0.05


@dataclass(frozen=True, slots=True)
class Standing:
    """A simulated cluster that is up: where it is served, and how to reach it."""

    address: str
    kubeconfig: Path


def home_of(environ: Mapping[str, str]) -> Path:
    """The directory of the one that is up: among what programs keep of a user."""
    base = Path(environ.get("XDG_STATE_HOME", ""))
    home = Path(environ.get("HOME") or Path.home())
    state = base if base.is_absolute() else home / ".local" / "state"
    return state / "tidegate" / "sandbox"


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
    simulation: Simulation, home: Path, *, pace: float, tell: Callable[[Standing], None]
) -> None:
    """Serve a new simulated cluster until somebody ends this process. `tell` hears of it once."""
    ended, loop = asyncio.Event(), asyncio.get_running_loop()
    with _locked(home):
        for one in ENDING:
            loop.add_signal_handler(one, ended.set)
        world = make_living(replace(simulation, start=simulation.start or real_now()))
        async with serving(world, home, pace=pace) as served:
            served.time.add_done_callback(lambda _: ended.set())
            tell(Standing(served.address, home / KUBECONFIG))
            await ended.wait()
            if served.time.done():
                served.time.result()


@contextmanager
def _locked(home: Path) -> Iterator[None]:
    """Hold the file of the process, with its number in it."""
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = home / PROCESS
    with path.open("a+b") as file:
        if not _lock(file):
            problem = "a simulated cluster is up already"
            hint = f"`tidegate sandbox down` ends it; its kubeconfig is {home / KUBECONFIG}"
            raise ClusterError("cluster.sandbox", problem, where=Place(str(path)), hint=hint)
        file.truncate(0)
        file.write(str(os.getpid()).encode())
        file.flush()
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def _lock(file: IO[bytes]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def start(arguments: Sequence[str], home: Path) -> str:
    """Start one in a process of its own, with these arguments; gives what that says of itself.

    It says so when it can be asked; if it ends before, what it complained of is the error.
    """
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    command = [sys.executable, "-m", "tidegate", "sandbox", "up", "--foreground", *arguments]
    with (home / LOG).open("wb") as log:
        started = subprocess.Popen(  # noqa: S603 - it is ourselves
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
    if started.stdout is None:
        raise TypeError(started)
    with started.stdout as told:
        said = told.read().decode()
    if said:
        return said
    started.wait()
    complaint = (home / LOG).read_text(encoding="utf-8", errors="replace").strip()
    raise ClusterError("cluster.sandbox", complaint or "the simulated cluster did not start")


async def end(home: Path) -> None:
    """End the one that is up, and wait until it is gone. Raises where none is."""
    path = home / PROCESS
    try:
        file = path.open("r+b")
    except FileNotFoundError:
        raise _none(path) from None
    with file:
        if _lock(file):
            path.unlink(missing_ok=True)  # its process was killed
            raise _none(path)
        os.kill(int(file.read()), signal.SIGTERM)
        try:
            async with asyncio.timeout(PATIENCE):
                while not _lock(file):
                    await _a_moment()
        except TimeoutError:
            problem = f"the simulated cluster did not end within {PATIENCE:.0f} seconds"
            raise LateError("cluster.sandbox", problem, where=Place(str(path))) from None


async def _a_moment() -> None:
    try:
        async with asyncio.timeout(LOOK_AGAIN):
            await asyncio.Event().wait()
    except TimeoutError:
        return


def _none(path: Path) -> ClusterError:
    problem = "no simulated cluster is up"
    hint = "`tidegate sandbox up` starts one"
    return ClusterError("cluster.sandbox", problem, where=Place(str(path)), hint=hint)
