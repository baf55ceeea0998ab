"""Every command line in the documentation names commands and options that exist."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.support.documented_examples import PAGES, ROOT
from tidegate.cli.main import cli

INLINE = re.compile(r"`(tidegate [^`'\n]+)`")
FENCE = re.compile(r"^```(?:console|sh|)\n(.*?)^```", re.MULTILINE | re.DOTALL)
TYPED = re.compile(r"^\$ ", re.MULTILINE)
SEPARATOR = re.compile(r" (?:&&|\|\|?|;|>|#) ")


def command_lines(text: str) -> Iterator[str]:
    """Yield the command lines of a page, without output, pipes and comments."""
    yield from INLINE.findall(text)
    for block in FENCE.findall(text):
        lines = block.splitlines()
        if TYPED.search(block):
            lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        yield from (line.strip() for line in lines if line.strip().startswith("tidegate "))


def problem_of(line: str) -> str:
    """Return the command or option of a command line that does not exist; empty if all do."""
    words = shlex.split(SEPARATOR.split(line)[0].replace("…", ""))[1:]
    command: click.Command = cli
    context = click.Context(cli, info_name="tidegate", **cli.context_settings)
    while words and not words[0].startswith("-"):
        subcommand = (
            command.get_command(context, words[0])
            if isinstance(command, click.Group)
            else getattr(command, "subcommands", {}).get(words[0])
        )
        if subcommand is None:
            break
        command = subcommand
        context = click.Context(command, info_name=words.pop(0), parent=context)
    if isinstance(command, click.Group) and words and re.match("[a-z]", words[0]):
        return words[0]
    parameters = command.get_params(context)
    options = {name for item in parameters for name in (*item.opts, *item.secondary_opts)}
    options |= {"-h", "--help"}
    given = [word.split("=")[0] for word in words if re.match(r"--?[a-zA-Z]", word)]
    names = [word if word.startswith("--") else word[:2] for word in given]
    return next((name for name in names if name not in options), "")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_documented_commands_and_options_exist(page: Path) -> None:
    lines = command_lines(page.read_text())

    assert [(line, problem) for line in lines if (problem := problem_of(line))] == []


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("tidegate sync . --prune | jq -r .", ""),
        ("tidegate simulate learn --context prod", ""),
        ("tidegate flux get ks -A", ""),
        ("tidegate flux get ks -Q", "-Q"),
        ("tidegate sync . --pruned", "--pruned"),
        ("tidegate argocd app deploy shop", "deploy"),
        ("tidegate lints", "lints"),
    ],
)
def test_an_unknown_command_or_option_is_found(line: str, problem: str) -> None:
    assert problem_of(line) == problem
