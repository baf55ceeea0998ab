"""Descriptions of all codes: the pages of lint rules, and the rows of findings and errors."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import resources

from tidegate.errors import UsageError, sanitize
from tidegate.lint.registry import RULES
from tidegate.linting.run import RulePage, has_rule, rule_page

REFERENCE_PAGES = ("findings.md", "errors.md")
FINDING_COLUMNS = 4
"""Columns of the table of findings: code, severity, meaning, fix. Errors have code and meaning."""


def describe_code(code: str) -> RulePage:
    """Return the description of a rule, finding or error. Raises UsageError for an unknown code."""
    if has_rule(code):
        return rule_page(code)
    rows = _read_rows()
    if code not in rows:
        matches = get_close_matches(code, [*RULES, *rows], n=1)
        hint = f"did you mean `{matches[0]}`?" if matches else "`tidegate lint` prints the codes"
        raise UsageError("usage.rule", f"unknown code `{sanitize(code)}`", hint=hint)
    severity, meaning, fix = rows[code]
    page = f"# {code}\n\n{meaning}\n" + (f"\nFix: {fix}\n" if fix else "")
    return RulePage(code, meaning, severity, "", fix, page)


def _read_rows() -> dict[str, tuple[str, str, str]]:
    """Return severity, meaning and fix by code, from the tables of the reference pages."""
    rows: dict[str, tuple[str, str, str]] = {}
    for name in REFERENCE_PAGES:
        page = resources.files("tidegate.linting") / "codes" / name
        for line in page.read_text(encoding="utf-8").splitlines():
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            if not line.startswith("| `") or "." not in cells[0]:
                continue
            code = cells[0].strip("` ")
            if len(cells) == FINDING_COLUMNS:
                rows.setdefault(code, (cells[1], cells[2], cells[3]))
            else:
                rows.setdefault(code, ("error", cells[1], ""))
    return rows
