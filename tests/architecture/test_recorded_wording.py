"""Every recorded text belongs to a test that still exists."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.support.recorded_wording import DIRECTORY, read_texts

TESTS = Path(__file__).parents[1]


def functions(module: Path) -> set[str]:
    """Return the names of the functions that a test module defines; none without the module."""
    tree = ast.parse(module.read_text() if module.exists() else "")
    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def test_every_recorded_text_has_its_test() -> None:
    unused = []
    for file in sorted(DIRECTORY.rglob("*.txt")):
        defined = functions(TESTS / file.relative_to(DIRECTORY).with_suffix(".py"))
        unused += [
            name for name in read_texts(file) if name.split("[")[0].split(" ")[0] not in defined
        ]

    assert unused == []
