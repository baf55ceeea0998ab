"""Error codes are public: each is documented, and none is documented that does not exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "errors.md"
CODE = re.compile(r"^[a-z]+(\.[a-z][a-z-]*)+$")
MAKERS = re.compile(r"(?<!Generator)Error$|(ErrorInfo|_error|GitErrorPattern)$")
"""What makes an error. A GeneratorError becomes a finding."""


def calls() -> Iterator[tuple[Path, ast.Call]]:
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                yield path, node


def raised_codes() -> set[str]:
    """Return the first argument of every call that makes an error."""
    result = set()
    for _, call in calls():
        name = (
            call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        )
        first = call.args[0] if call.args else None
        if MAKERS.search(name) and isinstance(first, ast.Constant) and isinstance(first.value, str):
            result |= {first.value} if CODE.match(first.value) else set()
    return result


def documented_codes() -> set[str]:
    return set(re.findall(r"^\| `([a-z.-]+)` \|", PAGE.read_text(), re.MULTILINE))


def test_every_code_is_documented_and_every_documented_code_exists() -> None:
    assert raised_codes() == documented_codes()


def test_problems_say_what_is_wrong_and_not_that_something_failed() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{call.lineno}"
        for path, call in calls()
        if len(call.args) > 1
        and isinstance(call.args[0], ast.Constant)
        and CODE.match(str(call.args[0].value))
        and re.search(r"[Ff]ailed to|\.'$|\.\"$", ast.unparse(call.args[1]))
    ]

    assert wrong == []
