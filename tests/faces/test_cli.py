"""The command line, from outside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import version

HEAVY = ("aiohttp", "yaml", "msgspec", "asyncio")


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tidegate", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_help_names_every_verb() -> None:
    shown = run("--help")

    assert shown.returncode == 0
    assert "version" in shown.stdout


def test_help_imports_nothing_heavy() -> None:
    code = "import sys, tidegate.cli.main; print(*sorted(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()

    assert [name for name in HEAVY if name in loaded] == []


def test_the_version_is_that_of_the_package() -> None:
    assert run("version").stdout.startswith(f"tidegate {version('tidegate')} ")
    assert json.loads(run("version", "-o", "json").stdout)["tidegate"] == version("tidegate")


def test_a_wrong_command_line_says_so_and_leaves_with_two() -> None:
    unknown = run("frobnicate")
    wrong = run("version", "--colour")

    assert (unknown.returncode, wrong.returncode) == (2, 2)
    assert "frobnicate" in unknown.stderr
    assert "--colour" in wrong.stderr
