"""The page with the recorded cases, and what the simulation says differently."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.conformance.peers.cases import Case
from tests.conformance.peers.compare import Agreement
from tests.conformance.peers.records import RecordedCase

PAGE = Path(__file__).parents[3] / "docs" / "concepts" / "conformance.md"
BEHAVIOUR = ("order", "starts", "waits", "refused", "units")
"""Aspects that must agree, unless a case says why they do not."""
START = "## Cases\n"
NAMES = {
    "order": "order",
    "starts": "order of units",
    "waits": "gates",
    "refused": "rejections",
    "units": "final state",
    "times": "times",
}


def row_of(case: Case, agreement: Agreement) -> str:
    """Return the row of a case: what agrees, and what differs."""
    behaviour = "; ".join(
        f"{NAMES[aspect]}: {text}" for aspect, text in agreement.differences if aspect in BEHAVIOUR
    )
    times = "; ".join(agreement.about("times"))
    reason = f". {case.reason}" if case.reason else ""
    return f"| {case.name} | {behaviour or 'agrees'}{reason} | {times or 'agrees'} |"


def page_text(head: str, records: Sequence[RecordedCase], rows: Iterable[str]) -> str:
    """Return the page: its head stays, and the rest is generated."""
    rows = list(rows)
    engines = ", ".join(sorted({record.engine for record in records}))
    kubernetes = ", ".join(sorted({record.kubernetes for record in records}))
    dates = sorted({record.date for record in records})
    behaves = sum(row.split(" | ")[1] == "agrees" for row in rows)
    in_time = sum(row.endswith("| agrees |") for row in rows)
    summary = (
        f"{len(rows)} cases were recorded with {engines} on Kubernetes {kubernetes},"
        f" {' to '.join(dict.fromkeys((dates[0], dates[-1])))}."
        f" In {behaves} of them order, gates, rejections and final states agree;"
        f" in {in_time} all times are within 1 second or 20 %."
    )
    table = "\n".join(
        ["| case | order, gates, rejections, final state | times |", "|---|---|---|", *rows]
    )
    return f"{head}{START}\n{summary}\n\n{table}\n"
