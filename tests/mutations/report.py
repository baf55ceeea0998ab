"""The rates of a run: by operator and by rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from tests.mutations.operator import OPERATORS
from tests.mutations.run import Outcome


def format_report(outcomes: Iterable[Outcome], *, show_all: bool = False) -> str:
    """Return the tables of detection and false alarms, after the unexpected results."""
    outcomes = [*outcomes]
    lines = [
        line for item in outcomes if show_all or not item.is_expected for line in _describe(item)
    ]
    lines += ["", *_rates(outcomes, is_breaking=True), "", *_rates(outcomes, is_breaking=False)]
    lines += ["", "findings after breaking mutations, by code", *_codes(outcomes, is_breaking=True)]
    lines += [
        "",
        "findings after harmless mutations, by code",
        *_codes(outcomes, is_breaking=False),
    ]
    return "\n".join(lines) + "\n"


def _describe(outcome: Outcome) -> Iterator[str]:
    mutation = outcome.mutation
    verdict = "ok" if outcome.is_expected else "UNEXPECTED"
    yield f"{verdict}: {mutation.operator}: {mutation.repository}: {mutation.change.place}"
    if outcome.crash:
        yield f"    crash: {outcome.crash.strip()[-500:]}"
    for finding in outcome.new_findings[:4]:
        yield f"    {finding.severity}[{finding.code}] {finding.message}"
    if not outcome.new_findings and not outcome.crash:
        yield "    nothing is reported"


def _rates(outcomes: list[Outcome], *, is_breaking: bool) -> Iterator[str]:
    title, verb = ("breaking", "reported") if is_breaking else ("harmless", "without alarm")
    chosen = [
        item for item in outcomes if OPERATORS[item.mutation.operator].is_breaking == is_breaking
    ]
    expected = sum(item.is_expected for item in chosen)
    yield f"{title}: {expected} of {len(chosen)} {verb}{_percent(expected, len(chosen))}"
    for name in dict.fromkeys(item.mutation.operator for item in chosen):
        results = [item.is_expected for item in chosen if item.mutation.operator == name]
        percent = _percent(sum(results), len(results))
        yield f"  {name:32} {sum(results):4} of {len(results):4}{percent}"


def _percent(part: int, whole: int) -> str:
    return f" ({100 * part / whole:.1f} %)" if whole else ""


def _codes(outcomes: list[Outcome], *, is_breaking: bool) -> Iterator[str]:
    counts = Counter(
        finding.code
        for item in outcomes
        if OPERATORS[item.mutation.operator].is_breaking == is_breaking
        for finding in item.new_findings
    )
    return (f"  {code:32} {count:4}" for code, count in counts.most_common())
