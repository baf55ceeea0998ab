"""Run `units`, `lint`, `graph`, `plan` and `simulate` over each checkout in a directory."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from tests.corpus.results import COMMANDS, CheckoutResult, examine_checkout
from tests.corpus.tables import sample_lines, summary_lines


def main() -> None:
    """Parse the command line, examine the checkouts and print what was asked for."""
    parser = _parser()
    options = parser.parse_args()
    if not options.directory.is_dir():
        parser.error(f"{options.directory} is not a directory")
    if options.results:
        results = msgspec.json.decode(options.results.read_bytes(), type=list[CheckoutResult])
    else:
        results = _examine_all(options.directory, options.commands, limit=options.limit)
    if options.output == "json":
        _print([msgspec.json.encode(results).decode()])
    elif options.sample:
        _print(sample_lines(results, options.directory, count=options.sample, seed=options.seed))
    else:
        _print(summary_lines(results))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.corpus", description=__doc__)
    parser.add_argument("directory", type=Path, help="directory that contains the checkouts")
    parser.add_argument(
        "--commands", nargs="+", choices=COMMANDS, default=COMMANDS, help="default: all"
    )
    parser.add_argument(
        "--limit", type=float, default=120, help="seconds for one command (default: 120)"
    )
    parser.add_argument(
        "--results", type=Path, help="read the results of an earlier `-o json` instead of running"
    )
    parser.add_argument(
        "--sample", type=int, metavar="N", help="print N random errors and warnings to judge"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the sample (default: 0)")
    parser.add_argument("-o", "--output", choices=["text", "json"], default="text")
    return parser


def _examine_all(directory: Path, commands: Sequence[str], *, limit: float) -> list[CheckoutResult]:
    checkouts = sorted(path for path in directory.iterdir() if path.is_dir())
    results = []
    for checkout in checkouts:
        result = examine_checkout(checkout, commands, limit=limit)
        seconds = sum(timing.seconds for timing in result.commands.values())
        sys.stderr.write(f"{checkout.name}: read: {result.read}, {seconds:.0f} s\n")
        results.append(result)
    return results


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main()
