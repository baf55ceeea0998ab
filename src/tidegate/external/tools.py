"""Lookup of programs by name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from tidegate.errors import ProcessError


def find_program(name: str, *, path: str, cwd: Path | None = None, hint: str = "") -> Path:
    """Return the file to run for `name`: searched in `path`, or from `cwd` if it contains a slash.

    Relative entries of `path` are skipped, so that no program of the current directory is run by
    accident. Raises ProcessError if there is none.
    """
    for candidate in _candidates(name, path, cwd or Path.cwd()):
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate
    reason, advice = "is not on PATH", f"install `{name}`, or add its directory to PATH"
    if os.sep in name:
        reason = "is not an executable file"
        advice = "check the path and the permissions of the file"
    raise ProcessError("external.missing", f"program `{name}` {reason}", hint=hint or advice)


def _candidates(name: str, path: str, cwd: Path) -> Iterator[Path]:
    if not name or "\0" in name:
        return
    if os.sep in name:
        yield cwd / name
        return
    for directory in path.split(os.pathsep):
        if Path(directory).is_absolute():
            yield Path(directory) / name
