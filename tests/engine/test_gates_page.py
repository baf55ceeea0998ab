"""What the page about gates says is what the engine does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tidegate.engine
from tidegate.engine.fences import CHECKS
from tidegate.health.readiness_timeout import _RULES as BUDGETS
from tidegate.model.times import Ms, format_duration
from tidegate.model.units.semantics import TIDEGATE

PAGE = Path("docs/concepts/gates.md").read_text()
ENGINE = Path(next(iter(tidegate.engine.__path__)))
REASONS = re.compile(r"(?:Failure|FenceReason|GateResult)\(\s*(?:GateDecision\.WAITS, )?\"(\w+)\"")


def rows_under(heading: str) -> list[tuple[str, ...]]:
    """The rows of the table under a heading, without its head."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    cells = [line.strip("|").split("|") for line in lines]
    return [tuple(cell.strip().strip("`") for cell in row) for row in cells[2:]]


def group_of(cell: str) -> str:
    return "" if cell == "core" else cell


def test_the_table_of_proofs_is_the_engines() -> None:
    messages = [
        ((group_of(group), kind), proof)
        for group, kinds, proof in rows_under("How each kind proves that its status is current")
        for kind in kinds.split(", ")
    ]

    assert dict(messages) == {key: str(proof) for key, proof in CHECKS.items()}
    assert len(messages) == len(CHECKS)


def test_the_table_of_budgets_names_every_kind_that_has_one() -> None:
    messages = [(group_of(group), kind) for group, kind, _ in rows_under("Budgets")]

    assert messages == sorted(BUDGETS)


@pytest.mark.parametrize(
    ("name", "span"),
    [
        ("proof", TIDEGATE.status_wait),
        ("settle", TIDEGATE.settle_time),
        ("suspended", TIDEGATE.suspended_timeout),
        ("deadline", TIDEGATE.deadline),
    ],
)
def test_the_documented_times_equal_those_of_the_semantics(name: str, span: Ms) -> None:
    by_name = {row[0]: row[1] for row in rows_under("Times")}

    assert by_name[name].split(",")[0] == format_duration(span)


def test_every_documented_reason_exists_in_the_engine() -> None:
    texts = [path.read_text() for path in sorted(ENGINE.rglob("*.py"))]
    known = {reason for text in texts for reason in REASONS.findall(text)}

    assert {row[0] for row in rows_under("Why a gate waits")} <= known
