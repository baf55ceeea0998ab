"""Where a simulated cluster that stays is found: started from here, and ended.

Its directory holds a file with the number of its process, locked for as long as that lives; the
kubeconfig; and what it had to complain about. So nobody takes a dead one for a living one. Nothing
heavy is imported here: whoever starts or ends one does not wait for what only that one needs.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from tidegate.errors import ClusterError, LateError, Place

CONTEXT, KUBECONFIG = "tidegate-sandbox", "kubeconfig"
PROCESS, LOG = "pid", "log"
PATIENCE = 15.0
LOOK_AGAIN = 0.05


class Started(NamedTuple):
    """What a new one says of itself; or how it ended at once, and what it complained of."""

    said: str
    code: int = 0
    complaint: str = ""


def home_of(environ: Mapping[str, str]) -> Path:
    """The directory of the one that is up: among what programs keep of a user."""
    base = Path(environ.get("XDG_STATE_HOME", ""))
    home = Path(environ.get("HOME") or Path.home())
    state = base if base.is_absolute() else home / ".local" / "state"
    return state / "tidegate" / "sandbox"


def way_to(environ: Mapping[str, str]) -> str:
    """What to type so that its context is known."""
    kubeconfig = home_of(environ) / KUBECONFIG
    if kubeconfig.exists():
        return f"`export KUBECONFIG={kubeconfig}`, or `--kubeconfig {kubeconfig}`"
    return "`tidegate sandbox up` starts it, and says where its kubeconfig is"


@contextmanager
def locked(home: Path) -> Iterator[None]:
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


def start(arguments: Sequence[str], home: Path) -> Started:
    """Start one in a process of its own, with these arguments. It speaks when it can be asked."""
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
        return Started(said.rstrip())
    complaint = (home / LOG).read_text(encoding="utf-8", errors="replace").rstrip()
    return Started("", started.wait(), complaint)


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
