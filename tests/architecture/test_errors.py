"""Error codes are public: each is documented, and none is documented that does not exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.support.printed_codes import DOTTED, calls, error_codes, literal

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "errors.md"


def test_every_code_is_documented_and_every_documented_code_exists() -> None:
    documented = set(re.findall(r"^\| `([a-z.-]+)` \|", PAGE.read_text(), re.MULTILINE))

    assert error_codes() == documented


def test_messages_name_the_problem_and_not_that_something_failed() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{call.lineno}"
        for path, call in calls()
        if len(call.args) > 1
        and DOTTED.match(literal(call.args[0]))
        and re.search(r"[Ff]ailed to|\.'$|\.\"$", ast.unparse(call.args[1]))
    ]

    assert wrong == []
