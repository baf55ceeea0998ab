"""The text of results: a table of checkouts, causes, and single findings with their lines."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.corpus.commands import TIMED_OUT
from tests.corpus.results import COMMANDS, CheckoutResult, CorpusFinding, Timing

CONTEXT_LINES = 4
JUDGED = frozenset({"error", "warning"})


def summary_lines(results: Sequence[CheckoutResult]) -> Iterator[str]:
    """Yield the table of checkouts, the crashes, and the findings by rule and cause."""
    yield (
        f"{'checkout':<44} {'read':<6} {'units':>9} {'objects':>12} "
        + " ".join(f"{command:>12}" for command in COMMANDS)
        + "  simulated   errors warnings"
    )
    for result in results:
        yield _row_of(result)
    read = sum(result.read in {"whole", "part"} for result in results)
    yield f"{read} of {len(results)} checkouts were read"
    for result in results:
        for command, timing in result.commands.items():
            if timing.traceback:
                yield f"\n{result.name}: {command} crashed\n{timing.traceback}"
    yield ""
    yield from _causes(results)


def _row_of(result: CheckoutResult) -> str:
    severities = Counter(finding.severity for finding in result.findings)
    commands = " ".join(f"{_ending_of(result.commands.get(name)):>12}" for name in COMMANDS)
    return (
        f"{result.name:<44} {result.read:<6} {f'{result.rendered}/{result.units}':>9} "
        f"{f'{result.objects}/{result.planned}':>12} {commands}  {result.simulated or '-':<10} "
        f"{severities['error']:>7} {severities['warning']:>8}"
    )


def _ending_of(timing: Timing | None) -> str:
    if timing is None:
        return "-"
    ended = "limit" if timing.exit_code == TIMED_OUT else str(timing.exit_code)
    return f"{ended} {timing.seconds:.1f}s"


def _causes(results: Sequence[CheckoutResult]) -> Iterator[str]:
    """Yield each rule with its findings and its causes, the most frequent first."""
    by_code: dict[str, Counter[str]] = defaultdict(Counter)
    places: dict[str, set[str]] = defaultdict(set)
    for result in results:
        for finding in _judged_findings(result):
            by_code[finding.code][finding.cause] += 1
            places[finding.cause].add(result.name)
    for code, causes in sorted(by_code.items(), key=lambda item: -item[1].total()):
        yield f"{code}: {causes.total()} errors and warnings, {len(causes)} messages"
        for cause, count in causes.most_common():
            yield f"  {count:>6} in {len(places[cause]):>2} checkouts: {cause}"


def sample_lines(
    results: Sequence[CheckoutResult], directory: Path, *, count: int, seed: int
) -> Iterator[str]:
    """Yield `count` random errors and warnings with the lines that they refer to."""
    findings = [
        (result.name, finding) for result in results for finding in _judged_findings(result)
    ]
    chosen = random.Random(seed).sample(findings, min(count, len(findings)))
    for number, (name, finding) in enumerate(chosen, start=1):
        yield f"## {number}. {name}: {finding.severity}[{finding.code}] {finding.message}"
        yield from _details_of(finding)
        yield from _source_lines(directory / name, finding)
        yield ""


def _judged_findings(result: CheckoutResult) -> Iterator[CorpusFinding]:
    return (finding for finding in result.findings if finding.severity in JUDGED)


def _details_of(finding: CorpusFinding) -> Iterator[str]:
    for name, text in (("at", finding.location), ("why", finding.why), ("fix", finding.fix)):
        if text:
            yield f"   {name}: {text}"
    yield from (f"   happens: {line}" for line in finding.story)
    yield from (f"   also: {place}" for place in finding.also[:5])


def _source_lines(checkout: Path, finding: CorpusFinding) -> Iterator[str]:
    path, line = checkout / (finding.file or ""), finding.line
    if not line or not path.is_file():
        return
    lines = path.read_text(errors="replace").splitlines()
    first = max(0, line - 1 - CONTEXT_LINES)
    for at, text in enumerate(lines[first : line + CONTEXT_LINES], start=first + 1):
        yield f"   {'>' if at == line else ' '}{at:>5} | {text}"
