"""The page about semantics says what the table in the code says."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import structs

from tidegate.model.times import Ms, format_duration
from tidegate.model.units.semantics import SEMANTICS_BY_NAME, UNLIMITED, Retry, Semantics

PAGE = (Path(__file__).parents[3] / "docs" / "contributing" / "semantics.md").read_text()
COLUMNS = {rules.engine: rules for rules in SEMANTICS_BY_NAME.values()}
COUNTS = frozenset({"limit", "factor", "heal_backoff_factor", "max_concurrent_units"})


def shown(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and name not in COUNTS:
        return format_duration(Ms(value)) if value else "none"
    return "endless" if value == UNLIMITED else str(value) or "none"


def values_of(rules: Semantics) -> dict[str, str]:
    unit_resource = {
        field: shown(field, value)
        for field, value in structs.asdict(rules).items()
        if field != "name" and not isinstance(value, Retry)
    }
    again = structs.asdict(rules.retry).items()
    return unit_resource | {f"retry.{field}": shown(field, value) for field, value in again}


def rows_of(page: str) -> list[list[str]]:
    rows = re.findall(r"^\| `([a-z_.]+)` \| (.+) \|$", page, re.MULTILINE)
    return [[name, *cells.split(" | ")] for name, cells in rows]


def test_the_table_has_every_value_of_every_semantics() -> None:
    tables = [values_of(rules) for rules in COLUMNS.values()]

    expected = [[name, *(table[name] for table in tables)] for name in tables[0]]

    assert rows_of(PAGE) == expected


def test_every_value_is_explained() -> None:
    explained = re.findall(r"^- `([a-z_]+)`: ", PAGE, re.MULTILINE)

    names = dict.fromkeys(
        name.partition(".")[0] for name in values_of(SEMANTICS_BY_NAME["tidegate"])
    )
    assert explained == list(names)


def test_every_semantics_has_a_column() -> None:
    assert f"| value | {' | '.join(COLUMNS)} |" in PAGE
