"""Knowledge about all kinds, or about named kinds."""

from __future__ import annotations

from pathlib import Path

from tidegate.clusters.sandboxes import SimulationConfig, load_knowledge
from tidegate.errors import UsageError, sanitize
from tidegate.knowledge.catalog import KindCatalog, pluralize_kind
from tidegate.model.operators.rows import WILDCARD, KindRow, Knowledge


def load_effective_knowledge(operators: Path | None = None) -> Knowledge:
    """Return the built-in knowledge with that of a user file; the last row of a kind counts."""
    knowledge = load_knowledge(SimulationConfig(operators=operators))
    effective = {id(row) for row in KindCatalog.from_rows(knowledge.rows).rows.values()}
    rows = tuple(row for row in knowledge.rows if id(row) in effective)
    return Knowledge(operators=knowledge.operators, rows=rows, holds=knowledge.holds)


def find_rows(query: str, knowledge: Knowledge) -> list[tuple[str, KindRow]]:
    """Return the named kinds with their rows: `Certificate`, `certificates.cert-manager.io`.

    The name may be singular or plural in any case, with the group if it is ambiguous. Raises
    UsageError for an unknown kind, and suggests similar names.
    """
    name, _, group = query.lower().partition(".")
    matches = [
        (kind, row)
        for row in knowledge.rows
        for kind in row.kinds
        if name in _kind_names(kind, row) and row.group != WILDCARD and group in ("", row.group)
    ]
    if matches:
        return matches
    similar = sorted({kind for row in knowledge.rows for kind in row.kinds if name in kind.lower()})
    problem = f"unknown kind `{sanitize(query)}`"
    default_hint = (
        "a simulation assumes that objects of unknown kinds are healthy shortly after creation"
    )
    hint = (
        f"did you mean {', '.join(f'`{similar_kind}`' for similar_kind in similar[:5])}?"
        if similar
        else default_hint
    )
    raise UsageError("usage.kind", problem, hint=hint)


def _kind_names(kind: str, row: KindRow) -> tuple[str, ...]:
    return kind.lower(), row.plurals.get(kind) or pluralize_kind(kind)
