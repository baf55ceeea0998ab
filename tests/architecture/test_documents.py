"""Pages for contributors name modules and words that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "tidegate"
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text()
WORDS = (ROOT / "docs" / "reference" / "words.md").read_text()
LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?!https?:|mailto:|#)([^)\s]+)\)")
FILE = re.compile(r"`([a-z_/]+\.py)`")
DOTTED = re.compile(r"`((?:[a-z_]+\.)+[A-Za-z_]+)`")
MAX_WORDS = 40


def defines(file: Path, name: str) -> bool:
    """Whether a module defines a function, a class or a constant of this name."""
    names = set()
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign | ast.Assign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return name in names


def exists(dotted: str) -> bool:
    """Whether a dotted name is a package, a module or a definition in a module."""
    path = SOURCE.joinpath(*dotted.split("."))
    module = path.parent.with_suffix(".py")
    is_module = path.is_dir() or path.with_suffix(".py").is_file()
    return is_module or (module.is_file() and defines(module, path.name))


def test_the_architecture_page_names_files_that_exist() -> None:
    assert [name for name in FILE.findall(ARCHITECTURE) if not (SOURCE / name).is_file()] == []


def test_the_architecture_page_names_functions_that_exist() -> None:
    packages = {path.name for path in SOURCE.iterdir() if path.is_dir()}
    names = [name for name in DOTTED.findall(ARCHITECTURE) if name.split(".")[0] in packages]

    assert names
    assert [name for name in names if not exists(name)] == []


def test_the_architecture_page_describes_every_package() -> None:
    packages = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").is_file()}
    described = {
        name
        for heading in re.findall(r"^\*\*(`.+?`)\*\*", ARCHITECTURE, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", heading)
    }

    assert packages - described == set()


def test_the_glossary_is_short_and_has_each_word_once() -> None:
    words = re.findall(r"^\| (?!word|-)([^|]+?) \|", WORDS, re.MULTILINE)

    assert len(words) <= MAX_WORDS
    assert len(words) == len(set(words))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_resolve(page: Path) -> None:
    targets = (unquote(link.partition("#")[0]) for link in LINK.findall(page.read_text()))

    assert [target for target in targets if not (page.parent / target).exists()] == []
