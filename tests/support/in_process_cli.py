"""Commands in this process: arguments, output and exit code.

It is for verbs whose process does not matter: to start one takes longer than what it does.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

from tests.support.tidegate_runs import ROOT
from tidegate.cli.main import run_argv


class CommandResult(NamedTuple):
    """How it ended, and what it wrote."""

    code: int
    stdout: str
    stderr: str

    @property
    def lines(self) -> list[str]:
        return self.stdout.splitlines()


def type_in(*words: str | Path, folder: Path = ROOT, **environment: str) -> CommandResult:
    """With nothing of our own environment but the path, and pipes for all that is written."""
    out, err = io.StringIO(), io.StringIO()
    known = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", **environment}
    with (
        _known_alone(known),
        chdir(folder),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        code = run_argv([*map(str, words)])
    return CommandResult(code, out.getvalue(), err.getvalue())


@contextmanager
def _known_alone(known: dict[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(known)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
