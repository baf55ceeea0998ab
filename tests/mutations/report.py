"""The rates of a run: by rule and by operator, as Markdown tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tests.mutations.operator import OPERATORS
from tests.mutations.run import Outcome


def format_report(outcomes: Iterable[Outcome], *, show_all: bool = False) -> str:
    """Return the unexpected results, and the tables of rates."""
    outcomes = [*outcomes]
    lines = [
        line for item in outcomes if show_all or not item.is_expected for line in _describe(item)
    ]
    return "\n".join([*lines, "", format_rates(outcomes), "", *_operator_table(outcomes)]) + "\n"


def format_rates(outcomes: Iterable[Outcome]) -> str:
    """Return the rates of all mistakes and harmless changes, and those of each rule."""
    outcomes = [*outcomes]
    mistakes = [item for item in outcomes if _is_breaking(item)]
    harmless = [item for item in outcomes if not _is_breaking(item)]
    lines = [
        "| changes | kinds | places | reported as an error or a warning |",
        "|---|---|---|---|",
        _total("mistakes, with their cause", mistakes, sum(item.is_expected for item in mistakes)),
        _total("harmless changes", harmless, sum(not item.is_expected for item in harmless)),
        "",
        "| rule or finding | mistakes | reported | alarms after harmless changes |",
        "|---|---|---|---|",
    ]
    codes = {code for item in mistakes if (code := _rule(item))}
    codes |= {finding.code for item in harmless for finding in item.new_findings}
    for code in sorted(codes):
        results = [item.is_expected for item in mistakes if _rule(item) == code]
        alarms = sum(
            any(finding.code == code for finding in item.new_findings) for item in harmless
        )
        lines.append(
            f"| `{code}` | {len(results)} | {_rate(sum(results), len(results))} | {alarms} |"
        )
    return "\n".join(lines)


def _rule(outcome: Outcome) -> str:
    """Return the expected rule that reports a mistake; the first of its operator if none does."""
    codes = OPERATORS[outcome.mutation.operator].codes
    if not outcome.is_expected:
        return codes[0]
    return next(finding.code for finding in outcome.new_findings if finding.code in codes)


def _operator_table(outcomes: list[Outcome]) -> Iterator[str]:
    yield "| operator | places | as expected |"
    yield "|---|---|---|"
    for name in dict.fromkeys(item.mutation.operator for item in outcomes):
        results = [item.is_expected for item in outcomes if item.mutation.operator == name]
        yield f"| {name} | {len(results)} | {_rate(sum(results), len(results))} |"


def _total(name: str, outcomes: list[Outcome], count: int) -> str:
    kinds = len({item.mutation.operator for item in outcomes})
    return f"| {name} | {kinds} | {len(outcomes)} | {_rate(count, len(outcomes))} |"


def _rate(part: int, whole: int) -> str:
    return f"{part} ({100 * part / whole:.0f} %)" if whole else "-"


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


def _is_breaking(outcome: Outcome) -> bool:
    return OPERATORS[outcome.mutation.operator].is_breaking
