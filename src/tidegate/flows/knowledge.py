"""What is known of kinds: all of it, or of those that somebody asks for."""

from __future__ import annotations

from pathlib import Path

from tidegate.errors import WordsError, foreign
from tidegate.flows.wiring import Simulation, known_to
from tidegate.knowledge.catalogue import KnownRows
from tidegate.model.operators import EVERY, Knowledge, Row
from tidegate.sandbox.operators.given import plural_of


def all_known(operators: Path | None = None) -> Knowledge:
    """What tidegate brings, and what a file of the user's adds. Of two rows the last counts."""
    known = known_to(Simulation(operators=operators))
    counted = {id(row) for row in KnownRows.of(known.rows).rows.values()}
    rows = tuple(row for row in known.rows if id(row) in counted)
    return Knowledge(operators=known.operators, rows=rows, holds=known.holds)


def rows_about(asked: str, known: Knowledge) -> list[tuple[str, Row]]:
    """The kinds that are meant, each with its row: `Certificate`, `certificates.cert-manager.io`.

    A kind is asked for by its name, in any case and number, with its group where several have it.
    Raises where nobody knows it, and names those that sound alike.
    """
    name, _, group = asked.lower().partition(".")
    found = [
        (kind, row)
        for row in known.rows
        for kind in row.kinds
        if name in _names(kind, row) and row.group != EVERY and group in ("", row.group)
    ]
    if found:
        return found
    alike = sorted({kind for row in known.rows for kind in row.kinds if name in kind.lower()})
    problem = f"nothing is known of `{foreign(asked)}`"
    general = "a simulation takes its objects to be well a moment after they are made"
    hint = f"did you mean {', '.join(f'`{one}`' for one in alike[:5])}?" if alike else general
    raise WordsError("words.kind", problem, hint=hint)


def _names(kind: str, row: Row) -> tuple[str, ...]:
    return kind.lower(), row.plurals.get(kind) or plural_of(kind)
