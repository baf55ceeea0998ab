"""Descriptions of all codes: the pages of lint rules, and the rows of the reference pages."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources

import msgspec

from tidegate.errors import UsageError, sanitize
from tidegate.lint.registry import RULES
from tidegate.linting.run import RulePage, has_rule, rule_page
from tidegate.model.text.suggest import suggest

REFERENCE_PAGES = ("findings.md", "errors.md", "events.md")
TABLES = frozenset({"code", "event", "outcome", "reason"})
"""First columns of the tables that describe what Tidegate prints."""


class CodeRow(msgspec.Struct, frozen=True):
    """A row of a reference page: a code and its meaning."""

    table: str
    """What the code names: a code, an event, an outcome or a reason."""
    meaning: str
    severity: str = ""
    fix: str = ""


def describe_code(code: str) -> RulePage:
    """Return the description of a rule, finding, error, event, outcome or reason.

    Raises UsageError for an unknown code.
    """
    if has_rule(code):
        return rule_page(code)
    rows = read_code_rows()
    if code not in rows:
        hint = suggest(code, (*RULES, *rows), "`tidegate lint` prints the codes")
        raise UsageError("usage.rule", f"unknown code `{sanitize(code)}`", hint=hint)
    row = rows[code]
    page = f"# {code}\n\n{row.meaning}\n" + (f"\nFix: {row.fix}\n" if row.fix else "")
    return RulePage(code, row.meaning, row.severity, "", row.fix, page)


def read_code_rows() -> dict[str, CodeRow]:
    """Return the rows of the reference pages by code. A finding takes precedence over an error."""
    rows: dict[str, CodeRow] = {}
    for name in REFERENCE_PAGES:
        page = resources.files("tidegate.linting") / "codes" / name
        for header, cells in _table_rows(page.read_text(encoding="utf-8").splitlines()):
            row = dict(zip(header, cells, strict=True))
            if header[0] not in TABLES:
                continue
            severity = row.get("severity", "error" if header[0] == "code" else "")
            code = row[header[0]].strip("`")
            rows.setdefault(code, CodeRow(header[0], row["meaning"], severity, row.get("fix", "")))
    return rows


def _table_rows(lines: list[str]) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the header and the cells of each row of the tables of a page."""
    header: list[str] = []
    for previous, line in zip(["", *lines], lines, strict=False):
        if line.startswith("|---"):
            header = _cells(previous)
        elif line.startswith("| `"):
            yield header, _cells(line)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split(" | ")]
