"""Attack rollouts on a real API server at random moments, and judge them by the audit log."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from plane import ControlPlane
from tests.adversary.attacks import ATTACKS
from tests.adversary.report import format_fault, format_figures
from tests.adversary.run import TryResult, run_tries, schedule


def main() -> int:
    """Run the tries that the arguments select. Return 1 if a try has a fault."""
    parser = argparse.ArgumentParser(prog="python -m tests.adversary", description=__doc__)
    parser.add_argument("--tries", type=int, default=200, help="number of tries (default: 200)")
    parser.add_argument(
        "--seconds", type=float, default=3600, help="start no try after this time (default: 3600)"
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of all choices (default: 1)")
    parser.add_argument(
        "--only", type=int, action="append", metavar="N", help="only the try N; repeatable"
    )
    parser.add_argument(
        "--attack", action="append", choices=[*ATTACKS], metavar="NAME", help="only this one"
    )
    parser.add_argument("--workers", type=int, default=3, help="tries at once (default: 3)")
    words = parser.parse_args()
    planned = [
        item
        for item in schedule(words.tries, words.seed)
        if (not words.only or item.number in words.only)
        and (not words.attack or item.attack in words.attack)
    ]
    results: list[TryResult] = []
    with tempfile.TemporaryDirectory(prefix="adversary-") as directory, ControlPlane.start() as at:
        for result in run_tries(
            planned, at, Path(directory), workers=words.workers, seconds=words.seconds
        ):
            results.append(result)
            for line in format_fault(result):
                sys.stderr.write(f"{line}\n")
    sys.stdout.write(format_figures(results, planned=len(planned), seed=words.seed))
    return 1 if any(result.faults for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
