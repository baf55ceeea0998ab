"""Names and sizes that no linter checks."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "tidegate"
MODULES = sorted([*SOURCE.rglob("*.py"), *(ROOT / "plane").rglob("*.py")])

BANNED_WORDS = re.compile(
    r"(^|_)(manager|helper|helpers|util|utils|handler|misc)($|_)|Manager|Helper|Handler|Util"
)
ALLOWED = {
    *("manager", "managers", "_conflicting_manager", "_format_manager"),
    "_add_signal_handler",
    "_cli_utils_dependency",
}
"""Field managers of Kubernetes, signal handlers of Unix, the cli-utils project."""

FORBIDDEN_MODULE_NAMES = {"utils", "helpers", "common", "misc", "base"}
"""Names that say nothing. `types.py` is allowed, once in a package."""

NOUNS_IN_ING = {"defaulting", "finding", "missing", "rendering", "scheduling", "tracking"}
"""Nouns and adjectives: defaulting and scheduling of Kubernetes, resource tracking of Argo CD."""

MAX_FUNCTION_LINES = 90
"""Ruff limits statements and branches; a formatted call may have many lines."""


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


class Definitions(NamedTuple):
    """The names that a module defines, and the length of its functions."""

    has_docstring: bool
    functions: list[tuple[str, int]]
    classes: list[str]


@cache
def definitions() -> dict[str, Definitions]:
    """Return the definitions of all modules, each of which is parsed once."""
    result: dict[str, Definitions] = {}
    for path in MODULES:
        tree = ast.parse(path.read_text())
        module = Definitions(bool(ast.get_docstring(tree)), [], [])
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                module.functions.append((node.name, (node.end_lineno or 0) - node.lineno))
            elif isinstance(node, ast.ClassDef):
                module.classes.append(node.name)
        result[name_of(path)] = module
    return result


def test_modules_have_docstrings() -> None:
    assert [name for name, module in definitions().items() if not module.has_docstring] == []


def test_functions_are_short() -> None:
    long = [
        (name, function)
        for name, module in definitions().items()
        for function, lines in module.functions
        if lines >= MAX_FUNCTION_LINES
    ]

    assert long == []


def test_class_names_are_unique_in_a_package() -> None:
    names = Counter(
        (Path(path).relative_to("src/tidegate").parts[0], name)
        for path, module in definitions().items()
        for name in module.classes
        if path.startswith("src/tidegate/") and not name.startswith("_")
    )

    assert [name for name, count in names.items() if count > 1] == []


def gerunds(stems: Iterable[str]) -> list[str]:
    """Return the module names that end in -ing and are no nouns."""
    return [stem for stem in stems if stem.endswith("ing") and stem not in NOUNS_IN_ING]


def test_modules_are_nouns_and_not_gerunds() -> None:
    modules = [*MODULES, *(ROOT / "bench").rglob("*.py")]

    assert gerunds(path.stem for path in modules) == []


def test_a_gerund_is_found() -> None:
    assert gerunds(["replanning", "replan", "finding"]) == ["replanning"]


def test_a_package_has_at_most_one_module_of_types() -> None:
    packages = Counter(path.relative_to(SOURCE).parts[0] for path in SOURCE.rglob("types.py"))

    assert [package for package, count in packages.items() if count > 1] == []


def vague_names(path: str, module: Definitions) -> set[str]:
    names = {*module.classes, *(name for name, _ in module.functions)}
    stem = {Path(path).stem} & FORBIDDEN_MODULE_NAMES
    return stem | {name for name in names - ALLOWED if BANNED_WORDS.search(name)}


def test_no_module_function_or_class_has_a_vague_name() -> None:
    names = {path: vague_names(path, module) for path, module in definitions().items()}

    assert {path: vague for path, vague in names.items() if vague} == {}


def test_only_real_clusters_and_servers_read_the_time() -> None:
    readers = [
        name_of(path)
        for path in sorted(SOURCE.rglob("*.py"))
        if re.search(r"^(import time|from time import)", path.read_text(), re.MULTILINE)
    ]

    allowed = ("src/tidegate/kube/", "src/tidegate/apiserver/")
    assert [path for path in readers if not path.startswith(allowed)] == []


NOT_IN_ENGINE_TEXTS = re.compile(
    r"argo|flux|sandbox|simulat|\bkube\b(?!-root-ca\.crt)", re.IGNORECASE
)
"""Dialects and clusters that no string of the engine names. Docstrings may name them."""


def texts_of(tree: ast.Module) -> Iterator[ast.Constant]:
    """Yield the literals of a module that are not docstrings."""
    docstrings = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in docstrings:
            yield node


def test_no_string_of_the_engine_names_a_dialect_or_a_cluster() -> None:
    files = sorted((SOURCE / "engine").rglob("*.py"))

    named = [
        f"{name_of(file)}:{text.lineno}"
        for file in files
        for text in texts_of(ast.parse(file.read_text()))
        if NOT_IN_ENGINE_TEXTS.search(str(text.value))
    ]

    assert files
    assert named == []


def test_the_engine_prints_nothing() -> None:
    printing = [
        name_of(file)
        for file in sorted((SOURCE / "engine").rglob("*.py"))
        if re.search(r"\bprint\(|\blogging\b", file.read_text())
    ]

    assert printing == []


def test_structs_are_not_changed_with_dataclasses_replace() -> None:
    """`dataclasses.replace` fails on a Struct at run time, and mypy does not report it."""
    changes = re.compile(
        r"^\s*from dataclasses import .*\breplace\b|\bdataclasses\.replace\b", re.MULTILINE
    )

    matches = [name_of(path) for path in MODULES if changes.search(path.read_text())]

    assert matches == []
