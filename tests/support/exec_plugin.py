"""An exec plugin: logs its calls with their input, and prints the given answers.

Run as a program; `{count}` in an answer becomes the number of this run.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--answer", default="")
    parser.add_argument("--say", default="")
    parser.add_argument("--gate", type=Path)
    parser.add_argument("--exit", type=int, default=0)
    bidden = parser.parse_args()

    with bidden.log.open("a") as log:
        log.write(os.environ["KUBERNETES_EXEC_INFO"] + "\n")
    count = len(bidden.log.read_text().splitlines())
    if bidden.gate:
        bidden.gate.read_bytes()
    sys.stdout.write(bidden.answer.replace("{count}", str(count)))
    sys.stderr.write(bidden.say)
    return int(bidden.exit)


if __name__ == "__main__":
    sys.exit(main())
