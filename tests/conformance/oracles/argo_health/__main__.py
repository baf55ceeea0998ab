"""Evaluates some thousand objects with the real Argo CD, and records the results.

It needs Go and the network: `python -m tests.conformance.oracles.argo_health`.
"""

from __future__ import annotations

import gzip
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from random import Random

import msgspec

from tests.conformance.oracles.argo_health import builtin_kinds, row_kinds, script_kinds, shipped
from tests.conformance.oracles.argo_health.row_kinds import RowShape
from tests.conformance.oracles.argo_health.shapes import Shape

HERE = Path(__file__).parent
ANSWERS = HERE.parents[2] / "data" / "health" / "argo.jsonl.gz"
SEED = 20261115
SCRIPT_ERROR = b'"message":"<string>:'


def shapes() -> list[Shape]:
    ours = (builtin_kinds.workloads, builtin_kinds.others, builtin_kinds.argo)
    theirs = (
        script_kinds.gateway,
        script_kinds.flux,
        script_kinds.ready_or_not,
        script_kinds.platform,
        script_kinds.databases,
        script_kinds.crossplane,
        row_kinds.rows,
    )
    return [shape for make in (*ours, *theirs) for shape in make()]


def bodies() -> dict[bytes, Shape]:
    """Each body once with its shape, in the order of shapes."""
    rng = Random(SEED)
    many = ((shape, shape.body(rng)) for shape in shapes() for _ in range(shape.amount))
    return {msgspec.json.encode(body): shape for shape, body in many}


def is_kept(shape: Shape, answer: bytes) -> bool:
    """Return whether a result is recorded: a script may fail on types that rows accept."""
    return not isinstance(shape, RowShape) or SCRIPT_ERROR not in answer


def build(folder: str) -> Path:
    go = shutil.which("go")
    if go is None:
        sys.exit("Go is needed; it was not found on PATH")
    program = Path(folder) / "argo_health"
    subprocess.run([go, "build", "-o", str(program), "."], cwd=HERE, check=True)
    return program


def main(program: Path | None = None) -> None:
    request = bodies()
    with tempfile.TemporaryDirectory() as folder:
        run = [str(program or build(folder))]
        result = subprocess.run(run, input=b"\n".join(request), stdout=subprocess.PIPE, check=True)
    answers = result.stdout.splitlines()
    rows = (
        b'{"body":' + body + b',"answer":' + answer + b"}\n"
        for (body, shape), answer in zip(request.items(), answers, strict=True)
        if is_kept(shape, answer)
    )
    ANSWERS.parent.mkdir(parents=True, exist_ok=True)
    ANSWERS.write_bytes(gzip.compress(b"".join(rows), mtime=0))
    patterns = shipped.patterns(shipped.folder())
    shipped.PATTERNS.write_text("".join(f"{pattern}\n" for pattern in patterns))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
