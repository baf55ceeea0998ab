"""User-visible sentences are plain English: no anonymous actors, no private verbs.

Texts of the command line, messages in the source, and prose of the documentation are searched for
words that were once used for everything. What Kubernetes, Argo CD, Flux or Helm print word for
word is not ours and is not searched.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tidegate.cli.main import cli

ROOT = Path(__file__).parents[2]
BANNED = re.compile(
    r"\b(somebody|nobody|whoever|brings?|brought|(?:is|are|was|were) told|leans?|leaned"
    r"|(?:is|are|be|becomes?|become) well|stands|comes? to|came to|taken (?:for|to be)|at fault"
    r"|played|behind|that which|could not be had|cannot be had|greenfield)\b",
    re.IGNORECASE,
)
IMITATIONS = ("apiserver", "sandbox")
"""Packages whose texts are those of Kubernetes and its operators."""
SENTENCE = re.compile(r"[A-Za-z]+ [a-z]+")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")
SOURCES = sorted((ROOT / "src" / "tidegate").rglob("*.py"))
TEST_NAMES = frozenset({"argocd-cases.md", "flux-cases.md"})
"""Pages that list the names of tests."""
PAGES = sorted(
    page
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    if page.name not in TEST_NAMES
)


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Yield all commands with their names, below groups as well."""
    context = click.Context(group, info_name="tidegate")
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield " ".join((*path, name)), command
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


COMMANDS = dict(commands(cli))


def messages(source: Path) -> Iterator[tuple[int, str]]:
    """Yield the string literals of a module that are no docstrings, with their lines."""
    tree = ast.parse(source.read_text())
    docstrings = {
        id(statement.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        for statement in node.body
        if isinstance(statement, ast.Expr)
    }
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            continue
        if id(node) not in docstrings and SENTENCE.search(node.value):
            yield node.lineno, node.value


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_plain_english(name: str) -> None:
    command = COMMANDS[name]
    helps = [command.help or "", command.short_help or ""]
    helps += [parameter.help or "" for parameter in command.params if hasattr(parameter, "help")]

    assert [text for text in helps if BANNED.search(text)] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_an_option_is_a_sentence(name: str) -> None:
    options = [
        option
        for option in COMMANDS[name].params
        if isinstance(option, click.Option) and option.help
    ]

    bad = [
        option.opts
        for option in options
        if not (option.help or "")[0].isupper() and not (option.help or "").endswith(".")
    ]
    assert bad == []


@pytest.mark.parametrize("source", SOURCES, ids=name_of)
def test_messages_are_plain_english(source: Path) -> None:
    package = source.relative_to(ROOT / "src" / "tidegate").parts[0]
    if package in IMITATIONS:
        return

    assert [(line, text) for line, text in messages(source) if BANNED.search(text)] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_pages_are_plain_english(page: Path) -> None:
    prose = CODE.sub("", FENCE.sub("", page.read_text()))

    assert [line for line in prose.splitlines() if BANNED.search(line)] == []
