"""One command over one checkout, in a process of its own, with a time limit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from msgspec import Struct

TIMED_OUT = -1
"""The exit code of a command that did not end in time."""


class CommandRun(Struct, frozen=True, kw_only=True):
    """What a command printed, its exit code and how long it took."""

    command: str
    exit_code: int
    seconds: float
    output: str
    errors: str

    @property
    def has_traceback(self) -> bool:
        """Whether the command failed because of a bug in Tidegate."""
        return self.exit_code == 1 or "Traceback (most recent call last)" in self.errors


def run_command(command: str, checkout: Path, *, limit: float) -> CommandRun:
    """Run `command` in `checkout` without the network; kill it after `limit` seconds."""
    start = time.monotonic()  # noqa: TID251 - how long a real process takes
    process = subprocess.Popen(
        [sys.executable, "-m", "tidegate", command, ".", "--offline", "-o", "json"],
        cwd=checkout,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    with process:
        try:
            output, errors = process.communicate(timeout=limit)
            exit_code = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # its workers are in the same group
            output, errors = process.communicate()
            exit_code = TIMED_OUT
    seconds = time.monotonic() - start  # noqa: TID251
    return CommandRun(
        command=command, exit_code=exit_code, seconds=seconds, output=output, errors=errors
    )
