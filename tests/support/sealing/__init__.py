"""The code of sealed-secrets itself opens what we seal.

Its program is built once from the Go module, and kept in the user's cache directory.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

import msgspec

from plane.binaries.build import cache_home, say_on_stderr
from plane.binaries.recipe import BUILD_ENVIRONMENT, read_recipe
from plane.binaries.toolchain import find_go

HERE = Path(__file__).parent
SOURCES = ("main.go", "go.mod", "go.sum")


class SealedValue(msgspec.Struct, frozen=True):
    """One value of a SealedSecret: the controller's key, whom it is sealed for, and its text."""

    key: str
    label: str
    sealed: str


class OpenedValue(msgspec.Struct, frozen=True):
    """What became of it."""

    opened: str = ""
    refused: str = ""


def open_sealed(values: Iterable[SealedValue]) -> list[OpenedValue]:
    lines = b"\n".join(map(msgspec.json.encode, values))
    result = subprocess.run([_program()], check=True, input=lines, stdout=subprocess.PIPE)
    return [msgspec.json.decode(line, type=OpenedValue) for line in result.stdout.splitlines()]


def _program() -> Path:
    """Built if it is not there yet."""
    made_of = hashlib.sha256(b"".join((HERE / name).read_bytes() for name in SOURCES))
    program = cache_home().parent / "tools" / f"sealing-{made_of.hexdigest()[:16]}"
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        search = os.environ.get("PATH", os.defpath)
        go = find_go(read_recipe().go, directory=cache_home(), search=search, say=say_on_stderr)
        environment = {**os.environ, **BUILD_ENVIRONMENT, "GOFLAGS": "-buildvcs=false"}
        with tempfile.TemporaryDirectory(dir=program.parent) as folder:
            made = Path(folder) / "made"
            subprocess.run(
                [go, "build", "-o", str(made), "."], check=True, cwd=HERE, env=environment
            )
            made.rename(program)
    return program
