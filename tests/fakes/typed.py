"""Verbs in this very process: what somebody types, what they read, and the exit code.

It is for verbs whose process does not matter: to start one takes longer than what it does.
"""

from __future__ import annotations

import io
import os
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from tests.fakes.tidegate_runs import ROOT
from tidegate.cli.main import run_words


class Typed(NamedTuple):
    """How it ended, and what it wrote."""

    code: int
    stdout: str
    stderr: str

    @property
    def lines(self) -> list[str]:
        return self.stdout.splitlines()


def type_in(*words: str | Path, folder: Path = ROOT, **environment: str) -> Typed:
    """With nothing of our own environment but the path, and pipes for all that is written."""
    out, err = io.StringIO(), io.StringIO()
    known = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", **environment}
    with (
        patch.dict(os.environ, known, clear=True),
        chdir(folder),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        code = run_words([*map(str, words)])
    return Typed(code, out.getvalue(), err.getvalue())
