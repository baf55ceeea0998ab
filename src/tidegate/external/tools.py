"""Find a program by its name, and say so plainly when it is not there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from tidegate.errors import ProcessError


def find_program(name: str, *, path: str, cwd: Path | None = None, hint: str = "") -> Path:
    """The file to run for `name`: looked for on `path`, or from `cwd` where it holds a slash.

    Relative entries of `path` are passed over, so that nobody runs a program which merely lies in
    the current directory.
    """
    for candidate in _candidates(name, path, cwd or Path.cwd()):
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate
    reason, advice = "is not on PATH", f"install `{name}`, or add the directory it is in to PATH"
    if os.sep in name:
        reason = "is not a file that can be run"
        advice = "check the path, and that the file may be executed"
    raise ProcessError("external.missing", f"program `{name}` {reason}", hint=hint or advice)


def _candidates(name: str, path: str, cwd: Path) -> Iterator[Path]:
    if not name or "\0" in name:
        return
    if os.sep in name:
        yield cwd / name
        return
    for entry in path.split(os.pathsep):
        if Path(entry).is_absolute():
            yield Path(entry) / name
