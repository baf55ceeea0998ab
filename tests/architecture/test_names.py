"""Identifiers say what they hold: words that were once used for everything stay out.

Definitions are searched: variables, parameters, functions, classes, fields and the parameters of
`parametrize`. Uses of names that others define, such as `Path.home`, are not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("src", "tests", "bench", "plane", "charts", "examples")
BANNED = frozenset(
    {
        *("told", "said", "one", "found", "wanted", "asked", "own"),
        *("sentence", "where", "home", "story", "tell", "hear", "begin", "late"),
        *("brood", "kin", "beside", "craft", "met", "deed", "deeds", "spot", "lair"),
        *("errand", "courier", "outlook", "stands", "lives"),
    }
)
BANNED_PARTS = frozenset(
    {
        *("told", "said", "asked", "wanted", "heard", "brought", "brings"),
        *("somebody", "anybody", "nobody", "whoever"),
    }
)
"""Words that are no part of a name either, such as `test_what_is_told`."""
PUBLIC = {
    "src/tidegate/model/units/sync_window.py": {"where"},
    "src/tidegate/report/journal.py": {"found"},
    "src/tidegate/source/archive.py": {"tell"},
    "tests/cli/test_lint_unit_order.py": {"story"},
    "tests/corpus/results.py": {"story"},
}
"""Keys of stored documents and of JSON output, and the method of a file."""


def parametrized(call: ast.Call) -> Iterator[str]:
    """Yield the names in the first argument of a call of `parametrize`."""
    if not (isinstance(call.func, ast.Attribute) and call.func.attr == "parametrize"):
        return
    for node in ast.walk(call.args[0]):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from (name.strip() for name in node.value.split(","))


def defined_names(tree: ast.Module) -> Iterator[str]:
    """Yield every name that a module defines."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.ClassDef(name=name) | ast.alias(asname=str(name)):
                yield name
            case ast.MatchAs(name=str(name)) | ast.ExceptHandler(name=str(name)):
                yield name
            case ast.Call():
                yield from parametrized(node)
            case _:
                pass


def is_banned(name: str) -> bool:
    plain = name.strip("_")
    return plain in BANNED or not BANNED_PARTS.isdisjoint(plain.lower().split("_"))


def banned_names(source: str) -> set[str]:
    return {name for name in defined_names(ast.parse(source)) if is_banned(name)}


@pytest.mark.parametrize("folder", FOLDERS)
def test_identifiers_say_what_they_hold(folder: str) -> None:
    modules = (ROOT / folder).rglob("*.py")

    names = {
        str(path.relative_to(ROOT)): banned
        for path in modules
        if (banned := banned_names(path.read_text()))
    }

    assert names == {path: banned for path, banned in PUBLIC.items() if path.startswith(folder)}


def test_a_banned_name_is_found_in_each_kind_of_definition() -> None:
    source = (
        "def told(said): self.wanted = 1\n_own = 1\n"
        "class C:\n    where: str\n"
        "@pytest.mark.parametrize('own, x', [])\ndef test(own): ...\n"
        "match a:\n    case b as story: pass\n"
    )

    assert banned_names(source) == {"told", "said", "wanted", "where", "_own", "own", "story"}
    assert banned_names("Path.home()\nfound\n") == set()
    assert banned_names("def test_what_is_told(): ...\nNOBODY = 1\nis_own = 1") == {
        "test_what_is_told",
        "NOBODY",
    }
