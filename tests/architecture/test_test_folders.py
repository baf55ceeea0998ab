"""Folders of tests share code in `tests.support` and do not import each other."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]
SHARED = "support"
EXCEPTIONS: frozenset[tuple[str, str]] = frozenset()
"""Allowed imports between folders: the importing file and the imported module."""


def imported_modules(tree: ast.Module) -> Iterator[str]:
    """Yield the imported modules and names, with their full names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def foreign_imports(source: str, folder: str) -> list[str]:
    """Return the imports from other folders of tests than `folder` and `support`."""
    modules = (name.split(".") for name in imported_modules(ast.parse(source)))
    return [
        ".".join(parts)
        for parts in modules
        if parts[0] == "tests" and len(parts) > 1 and parts[1] not in {folder, SHARED}
    ]


def test_folders_of_tests_import_only_the_shared_one() -> None:
    folders = [path for path in TESTS.iterdir() if path.is_dir() and path.name != "data"]
    matches = {
        (str(file.relative_to(TESTS)), module)
        for folder in folders
        for file in folder.rglob("*.py")
        for module in foreign_imports(file.read_text(), folder.name)
    }

    assert matches == EXCEPTIONS


def test_an_import_from_another_folder_is_found() -> None:
    source = "from tests.cli.stage import Stage\nfrom tests.support import stage\nimport tests.e2e"

    assert foreign_imports(source, "unit") == ["tests.cli.stage.Stage", "tests.e2e"]
    assert foreign_imports("from tests.unit import stage", "unit") == []
