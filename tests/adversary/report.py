"""The figures of a run, as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from tests.adversary.run import TryResult


def format_figures(results: Sequence[TryResult], *, planned: int, seed: int) -> str:
    """Return a table with a row for each attack, and what was done in total."""
    names = sorted({result.planned.attack for result in results})
    lines = ["| attack | tries | tries with faults | seconds |", "|---|---|---|---|"]
    for name in names:
        chosen = [result for result in results if result.planned.attack == name]
        lines.append(f"| {name} | {_numbers(chosen)} |")
    lines.append(f"| all | {_numbers(results)} |")
    total: Counter[str] = sum((result.figures for result in results), Counter())
    done = ", ".join(f"{count} {name}" for name, count in sorted(total.items()) if count)
    head = f"seed {seed}: {len(results)} of {planned} tries; {done or 'nothing was done'}"
    return "\n".join([head, "", *lines, ""])


def _numbers(results: Sequence[TryResult]) -> str:
    with_faults = sum(bool(result.faults) for result in results)
    seconds = sum(result.seconds for result in results)
    return f"{len(results)} | {with_faults} | {seconds:.0f}"


def format_fault(result: TryResult) -> Iterator[str]:
    """Yield a line for each fault of a try, and how to run the try again."""
    if not result.faults:
        return
    planned = result.planned
    yield f"try {planned.number} ({planned.attack}): --seed {planned.seed} --only {planned.number}"
    for fault in result.faults:
        yield f"  {fault}"
