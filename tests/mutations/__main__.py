"""Run the mutations, and print how many mistakes `lint` reports and how often it is wrong."""

from __future__ import annotations

import argparse
import sys

from tests.mutations.operator import OPERATORS
from tests.mutations.report import format_rates, format_report
from tests.mutations.repository import repositories
from tests.mutations.run import choose_mutations, run_mutations
from tests.support.tidegate_runs import ROOT

PAGE = ROOT / "docs" / "concepts" / "lint-quality.md"
START, END = "<!-- rates of mutations -->", "<!-- end of rates -->"
"""The lines of the page between which the rates are."""


def main() -> int:
    """Run the mutations that the arguments select. Return 1 if a result is not as expected."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument("--repository", action="append", help="only this one; repeatable")
    parser.add_argument(
        "--operator",
        action="append",
        choices=[*OPERATORS],
        metavar="NAME",
        help="only this one; repeatable",
    )
    parser.add_argument(
        "--places",
        type=int,
        default=0,
        metavar="N",
        help="at most N mistakes and N harmless changes, drawn at random, equally by operator",
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of the draw")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument(
        "--all", action="store_true", help="list all results, not only unexpected ones"
    )
    parser.add_argument(
        "--write", action="store_true", help=f"write the rates into {PAGE.relative_to(ROOT)}"
    )
    words = parser.parse_args()
    chosen = [
        item for item in repositories() if not words.repository or item.name in words.repository
    ]
    names = words.operator or [*OPERATORS]
    mutations = choose_mutations(chosen, names, words.places, words.seed)
    outcomes = run_mutations(chosen, mutations, processes=words.processes)
    sys.stdout.write(format_report(outcomes, show_all=words.all))
    if words.write:
        before, rest = PAGE.read_text().split(START, 1)
        after = rest.split(END, 1)[1]
        PAGE.write_text(f"{before}{START}\n{format_rates(outcomes)}\n{END}{after}")
    return 0 if all(outcome.is_expected for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
