"""The command line, from outside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import version

import pytest

from tidegate.cli.main import VERBS

HEAVY = ("aiohttp", "yaml", "msgspec", "asyncio", "tidegate.flows", "tidegate.engine")
"""What a verb imports when it runs, and not when its help is shown."""


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tidegate", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def imported(*arguments: str) -> set[str]:
    """What is imported while a command runs, as Python itself tells."""
    ran = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "tidegate", *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    told = (line for line in ran.stderr.splitlines() if line.startswith("import time:"))
    return {line.rpartition("|")[2].strip() for line in told}


def test_help_names_every_verb() -> None:
    shown = run("--help")

    assert shown.returncode == 0
    for verb, help_line in VERBS.items():
        assert f"  {verb} " in shown.stdout
        assert help_line.split()[0] in shown.stdout


def test_help_imports_nothing_heavy_and_no_verb() -> None:
    loaded = imported("--help")

    assert "tidegate.cli.main" in loaded
    assert loaded.isdisjoint(HEAVY)
    assert [name for name in loaded if name.startswith("tidegate.cli.commands.")] == []


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_the_help_of_a_verb_has_examples_and_imports_nothing_heavy(verb: str) -> None:
    shown = run(verb, "--help")

    assert shown.returncode == 0
    assert f"tidegate {verb}" in shown.stdout.partition("  Examples:\n")[2]
    assert imported(verb, "--help").isdisjoint(HEAVY)


def test_the_version_is_that_of_the_package() -> None:
    assert run("version").stdout.startswith(f"tidegate {version('tidegate')} ")
    assert json.loads(run("version", "-o", "json").stdout)["tidegate"] == version("tidegate")


def test_a_wrong_command_line_says_so_and_leaves_with_two() -> None:
    unknown = run("frobnicate")
    wrong = run("version", "--colour")

    assert (unknown.returncode, wrong.returncode) == (2, 2)
    assert "frobnicate" in unknown.stderr
    assert "--colour" in wrong.stderr
