"""Finding codes are public: the documented codes are the codes in the source."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tidegate.model.finding import Severity

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "findings.md"
PACKAGES = (
    *("actions", "controllers", "dialect", "inspection", "linting", "planning"),
    *("releases", "removal", "rollout", "simulation", "workspace"),
)
"""Packages that make findings."""
OURS = re.compile(r"^(appset|argo|flux|schema|units|config|lint|preflight|simulate)\.[a-z-]+$")
ROW = re.compile(r"^\| `([a-z.-]+)` \| ([a-z, ]+) \| .+ \| .+ \|$", re.MULTILINE)
ERRORS = frozenset({"config.none", "config.context"})
"""Codes of errors that have the form of a finding code."""


def codes_in_source() -> set[str]:
    """Return the string literals of these packages that are finding codes."""
    files = (path for name in PACKAGES for path in (ROOT / "src/tidegate" / name).rglob("*.py"))
    texts = {
        node.value
        for path in files
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    return {text for text in texts if OURS.match(text)} - ERRORS


def test_every_finding_is_documented_and_every_documented_one_exists() -> None:
    documented = sorted(code for code, _ in ROW.findall(PAGE.read_text()))

    assert documented == sorted(codes_in_source())


def test_every_documented_finding_has_a_severity() -> None:
    words = {
        word for _, severities in ROW.findall(PAGE.read_text()) for word in severities.split(", ")
    }

    assert words == {severity.value for severity in Severity}
