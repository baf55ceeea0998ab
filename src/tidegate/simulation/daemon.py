"""Background process of a long-running simulated cluster: start, find and stop.

Its directory holds a file with the process id, locked while the process runs; the kubeconfig;
and its error output. The lock distinguishes a running process from a dead one. No heavy module is
imported here, so that starting and stopping are fast.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from tidegate.clusters.sandboxes import KUBECONFIG
from tidegate.errors import ClusterError, Location, WaitTimeoutError

PID_FILE, LOG_FILE = "pid", "log"


STOP_TIMEOUT = 15.0


POLL_INTERVAL = 0.05


class StartResult(NamedTuple):
    """Output of a new process; or its exit code and error output, if it stopped at once."""

    output: str
    code: int = 0
    error_output: str = ""


@contextmanager
def lock_directory(directory: Path) -> Iterator[None]:
    """Hold the lock on the file with the process id. Raises ClusterError if it is locked."""
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = directory / PID_FILE
    with path.open("a+b") as file:
        if not _lock(file):
            problem = "a simulated cluster is already running"
            hint = (
                f"stop it with `tidegate sandbox down`; its kubeconfig is {directory / KUBECONFIG}"
            )
            raise ClusterError("cluster.sandbox", problem, location=Location(str(path)), hint=hint)
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


def start(arguments: Sequence[str], directory: Path) -> StartResult:
    """Start a simulated cluster in its own process, and wait until it is ready."""
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    command = [sys.executable, "-m", "tidegate", "sandbox", "up", "--foreground", *arguments]
    with (directory / LOG_FILE).open("wb") as log:
        process = subprocess.Popen(  # noqa: S603 - it is ourselves
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
    if process.stdout is None:
        raise TypeError(process)
    with process.stdout as stdout:
        output = stdout.read().decode()
    if output:
        return StartResult(output.rstrip())
    error_output = (directory / LOG_FILE).read_text(encoding="utf-8", errors="replace").rstrip()
    return StartResult("", process.wait(), error_output)


async def stop(directory: Path) -> None:
    """Stop the running simulated cluster and wait until it has exited.

    Raises ClusterError if none is running, WaitTimeoutError if it does not exit.
    """
    path = directory / PID_FILE
    try:
        file = path.open("r+b")
    except FileNotFoundError:
        raise _not_running_error(path) from None
    with file:
        if _lock(file):
            path.unlink(missing_ok=True)  # the process was killed
            raise _not_running_error(path)
        os.kill(int(file.read()), signal.SIGTERM)
        try:
            async with asyncio.timeout(STOP_TIMEOUT):
                while not _lock(file):
                    await _sleep_briefly()
        except TimeoutError:
            problem = f"the simulated cluster did not stop within {STOP_TIMEOUT:.0f} seconds"
            raise WaitTimeoutError(
                "cluster.sandbox", problem, location=Location(str(path))
            ) from None


async def _sleep_briefly() -> None:
    try:
        async with asyncio.timeout(POLL_INTERVAL):
            await asyncio.Event().wait()
    except TimeoutError:
        return


def _not_running_error(path: Path) -> ClusterError:
    problem = "no simulated cluster is running"
    hint = "start one with `tidegate sandbox up`"
    return ClusterError("cluster.sandbox", problem, location=Location(str(path)), hint=hint)
