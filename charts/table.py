"""Makes the table of values for a chart's README."""

from __future__ import annotations

import json
from collections.abc import Sequence

from charts.values import Value

LONGEST = 60
"""A longer default is only in values.yaml."""


def table_of(values: Sequence[Value]) -> str:
    """A row for each value."""
    rows = [f"| `{value.name}` | {_default(value)} | {_escape(value.text)} |" for value in values]
    return "\n".join(["| value | default | what it is |", "|---|---|---|", *rows])


def _default(value: Value) -> str:
    text = json.dumps(value.default, ensure_ascii=False)
    return f"`{_escape(text)}`" if len(text) <= LONGEST else "see `values.yaml`"


def _escape(text: str) -> str:
    return text.replace("|", "\\|")
