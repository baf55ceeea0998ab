"""Codes of findings are public: each is documented, and none is documented that does not exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tidegate.model.finding import Severity

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "findings.md"
PACKAGES = ("dialect", "flows", "report")
"""Who tells findings."""
OURS = re.compile(r"^(argo|flux|schema|units|config|lint|preflight|simulate)\.[a-z-]+$")
ROW = re.compile(r"^\| `([a-z.-]+)` \| ([a-z, ]+) \| .+ \| .+ \|$", re.MULTILINE)
ERRORS = frozenset({"config.none", "config.context"})
"""What looks like a code of a finding and is one of an error."""


def told_codes() -> set[str]:
    """Texts that are codes, wherever findings are made."""
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

    assert documented == sorted(told_codes())


def test_every_documented_finding_says_how_bad_it_is() -> None:
    words = {word for _, said in ROW.findall(PAGE.read_text()) for word in said.split(", ")}

    assert words == {severity.value for severity in Severity}
