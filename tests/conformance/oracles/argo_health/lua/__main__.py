"""Asks the real Argo CD what it makes of scripts and settings of our own, and keeps its answers.

It needs Go and the network: `python -m tests.conformance.oracles.argo_health.lua`.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from tests.conformance.oracles.argo_health.lua.bodies import (
    BODIES,
    HEALTH,
    LIBRARIES,
    NEW,
    SETTINGS,
)
from tests.conformance.oracles.argo_health.lua.scripts import CLOSED, OPEN
from tidegate.model.k8s.objects import JsonObject

HERE = Path(__file__).parent
ANSWERS = HERE.parents[3] / "data" / "health" / "lua.jsonl"
THING = "example.com_Thing"
READS = "obj"


def cases() -> Iterator[tuple[str, dict[str, str], JsonObject]]:
    """A name, the data of an argocd-cm, an object. Cases without an object run once."""
    for libraries, scripts in (("false", CLOSED), ("true", OPEN)):
        for name, script in scripts.items():
            data = {HEALTH + THING: script, LIBRARIES + THING: libraries}
            yield from ((name, data, body) for body in (BODIES if READS in script else (NEW,)))
    for name, (data, body) in SETTINGS.items():
        yield name, data, body


def build(folder: str) -> Path:
    go = shutil.which("go")
    if go is None:
        sys.exit("Go is needed; it was not found on PATH")
    program = Path(folder) / "argo_lua"
    subprocess.run([go, "build", "-o", str(program), "./lua"], cwd=HERE.parent, check=True)
    return program


def main(program: Path | None = None) -> None:
    request = list(cases())
    lines = [msgspec.json.encode({"data": data, "body": body}) for _, data, body in request]
    with tempfile.TemporaryDirectory() as folder:
        run = [str(program or build(folder))]
        result = subprocess.run(run, input=b"\n".join(lines), stdout=subprocess.PIPE, check=True)
    answers = [msgspec.json.decode(line) for line in result.stdout.splitlines()]
    rows = (
        msgspec.json.encode({"name": name, "data": data, "body": body, **answer}) + b"\n"
        for (name, data, body), answer in zip(request, answers, strict=True)
    )
    ANSWERS.write_bytes(b"".join(rows))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
