"""Build the oracle, ask it every question, keep its answers."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from tests.conformance.oracles.kstatus.answers import Answer, write_answers
from tests.conformance.oracles.kstatus.bodies import Question, questions

HERE = Path(__file__).parent


def ask(request: list[Question]) -> list[Answer]:
    lines = b"\n".join(msgspec.json.encode(question) for question in request)
    with TemporaryDirectory() as folder:
        oracle = Path(folder) / "oracle"
        environment = {**os.environ, "GOFLAGS": "-buildvcs=false", "GOWORK": "off"}
        build = ["go", "build", "-o", str(oracle), "."]
        subprocess.run(build, check=True, cwd=HERE, env=environment)
        result = subprocess.run([oracle], check=True, input=lines, stdout=subprocess.PIPE)
    return [msgspec.json.decode(line, type=Answer) for line in result.stdout.splitlines()]


def main() -> None:
    request = list(questions())
    write_answers(request, ask(request))


if __name__ == "__main__":
    main()
