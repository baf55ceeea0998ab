"""Build the oracle, ask it and record its answers; needs Go."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from tests.conformance.oracles.sets.questions import Dice

HERE = Path(__file__).parent
ANSWERS = HERE.parents[2] / "data" / "sets" / "argo.jsonl.gz"
SEED, COUNT = 20261117, 900


def main() -> int:
    dice = Dice(SEED)
    questions = [msgspec.json.encode(dice.question()) for _ in range(COUNT)]
    with TemporaryDirectory() as folder:
        program = Path(folder) / "oracle"
        build = ["nice", "go", "build", "-o", str(program), "."]
        subprocess.run(build, check=True, cwd=HERE)
        request = b"\n".join([*questions, b""])
        result = subprocess.run([program], input=request, check=True, capture_output=True)
    lines = [
        b'{"asked":%s,"answer":%s}' % (question, answer)
        for question, answer in zip(questions, result.stdout.splitlines(), strict=True)
    ]
    ANSWERS.parent.mkdir(parents=True, exist_ok=True)
    ANSWERS.write_bytes(gzip.compress(b"\n".join([*lines, b""]), mtime=0))
    errors = sum(b'"error"' in line for line in lines)
    sys.stdout.write(f"{len(lines)} answers, {errors} of them errors\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
