"""Commands that run in the process of the test, which saves the start of an interpreter."""

from __future__ import annotations

import io
import os
import sys
import tempfile
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from tidegate.cli.main import run_argv


@dataclass(frozen=True, slots=True)
class CommandOutput:
    """What a run has written, and how it ended."""

    code: int
    stdout: str
    stderr: str


def run_in_process(
    root: Path, environment: Mapping[str, str], words: tuple[str, ...]
) -> CommandOutput:
    """Run a command with this environment in this directory."""
    before, here, chosen = dict(os.environ), Path.cwd(), tempfile.tempdir
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    argv = sys.argv
    try:
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(root)
        tempfile.tempdir, sys.argv = None, ["tidegate", *words]
        with redirect_stdout(out), redirect_stderr(err):
            code = run_argv([*words])
        out.flush()
        err.flush()
    finally:
        os.environ.clear()
        os.environ.update(before)
        os.chdir(here)
        tempfile.tempdir, sys.argv = chosen, argv
    return CommandOutput(code, _text(out), _text(err))


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode()
