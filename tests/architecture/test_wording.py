"""User-visible sentences are plain English: no anonymous actors, no private verbs.

Texts of the command line, messages in the source, data files, examples, charts, prose of the
documentation, and docstrings and comments of all code are searched for words that were once used
for everything. Files with texts of others are listed with the reason.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tidegate.cli.main import cli

ROOT = Path(__file__).parents[2]
BANNED = re.compile(
    r"\b(somebody|anybody|nobody|whoever|brings?|bringing|brought|told|tells|untold"
    r"|leans?|leaned|leaning|(?:is|are|was|were|be|becomes?|become) well|stands|stood"
    r"|comes? to|came to|taken (?:for|to be)|at fault|played|behind|that which"
    r"|(?:could|can) ?not be had|greenfield|households?|in the place of|what lives|as wanted)\b",
    re.IGNORECASE,
)
THIRD_PARTY = {
    "definitions.yaml": "CustomResourceDefinitions of operators",
    "kubernetes-1.36.json": "the schemas of Kubernetes",
    "custom_resources.json": "the schemas of Argo CD and Flux",
}
"""Data files whose texts are those of others."""
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")
SOURCES = sorted((ROOT / "src" / "tidegate").rglob("*.py"))
CODE_FOLDERS = ("src", "tests", "bench", "plane", "charts", "examples")
WORD_LISTS = frozenset({"test_names.py", "test_wording.py"})
"""Modules that contain the banned words."""
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Yield all commands with their names, below groups as well."""
    context = click.Context(group, info_name="tidegate", **cli.context_settings)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield " ".join((*path, name)), command
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


COMMANDS = dict(commands(cli))
DATA = sorted(
    file
    for folder in ("src/tidegate", "examples", "charts")
    for file in (ROOT / folder).rglob("*")
    if file.suffix in {".json", ".yaml", ".yml", ".md", ".txt", ".tpl"}
    and not any(part.is_symlink() for part in [file, *file.parents])
    and file.name not in THIRD_PARTY
)
"""Data files of the source, the example repositories and the charts."""


def docstrings(tree: ast.Module) -> Iterator[ast.Constant]:
    """Yield the docstrings of a module, its classes, functions and fields."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for statement in node.body:
                if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                    yield statement.value


def messages(source: Path) -> Iterator[tuple[int, str]]:
    """Yield the string literals of a module that are no docstrings, with their lines."""
    tree = ast.parse(source.read_text())
    left_out = {id(docstring) for docstring in docstrings(tree)}
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            continue
        if id(node) not in left_out:
            yield node.lineno, node.value


def explanations(module: Path) -> Iterator[str]:
    """Yield the docstrings and the comments of a module."""
    text = module.read_text()
    yield from (str(docstring.value) for docstring in docstrings(ast.parse(text)))
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    yield from (token.string for token in tokens if token.type == tokenize.COMMENT)


def banned_lines(text: str) -> list[str]:
    """Return the lines with a banned word."""
    return [line.strip() for line in text.splitlines() if BANNED.search(line)]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_plain_english(name: str) -> None:
    command = COMMANDS[name]
    helps = [command.help or "", command.short_help or ""]
    helps += [parameter.help or "" for parameter in command.params if hasattr(parameter, "help")]

    assert [line for text in helps for line in banned_lines(text)] == []


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


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_into_80_columns_and_names_each_value(name: str) -> None:
    command = COMMANDS[name]
    settings = {**cli.context_settings, "terminal_width": 80}
    context = click.Context(command, info_name=f"tidegate {name}", **settings)

    lines = command.get_help(context).splitlines()
    unnamed = [
        parameter.name
        for parameter in command.get_params(context)
        if isinstance(parameter, click.Option)
        and not parameter.is_flag
        and parameter.make_metavar(context) in {"TEXT", "INTEGER"}
    ]
    assert [line for line in lines if len(line) > 80] == []
    assert unnamed == []


@pytest.mark.parametrize("source", SOURCES, ids=name_of)
def test_messages_are_plain_english(source: Path) -> None:
    assert [(number, text) for number, text in messages(source) if banned_lines(text)] == []


@pytest.mark.parametrize("folder", CODE_FOLDERS)
def test_docstrings_and_comments_are_plain_english(folder: str) -> None:
    modules = [module for module in (ROOT / folder).rglob("*.py") if module.name not in WORD_LISTS]

    assert [
        (name_of(module), line)
        for module in modules
        for text in explanations(module)
        for line in banned_lines(text)
    ] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_pages_are_plain_english(page: Path) -> None:
    prose = CODE.sub("", FENCE.sub("", page.read_text()))

    assert banned_lines(prose) == []


@pytest.mark.parametrize("file", DATA, ids=name_of)
def test_data_files_are_plain_english(file: Path) -> None:
    assert banned_lines(file.read_text()) == []
