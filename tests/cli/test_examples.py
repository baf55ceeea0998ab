"""Every command that a document shows is run, and prints what the document shows."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from tests.support.documented_examples import (
    CHANGES,
    EXAMPLE,
    EXAMPLES,
    ON_A_CLUSTER,
    ROOT,
    example_folder,
)
from tests.support.warm_start import WarmRun
from tidegate.cli.main import COMMANDS

ALONE = [(page, command) for page, command in EXAMPLES if ON_A_CLUSTER not in command]


def name_of(example: object) -> str:
    return str(example.relative_to(ROOT)) if isinstance(example, Path) else str(example)


def output_of(command: str, user_home: Path) -> str:
    """What a terminal would show."""
    arguments = shlex.split(command)[1:]
    known = {"PATH": os.environ["PATH"], "NO_COLOR": "1", "HOME": str(user_home)}
    folder = example_folder(command, user_home)
    return WarmRun(arguments, folder, known, is_merged=True).to_its_end().stdout


@pytest.mark.parametrize(("page", "command"), ALONE, ids=name_of)
def test_a_command_prints_what_its_document_shows(
    page: Path, command: str, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    shown = output_of(command, tmp_path)
    if pytestconfig.getoption("--golden"):
        text = page.read_text()
        start = text.index(f"$ {command}\n") + len(command) + 3
        page.write_text(text[:start] + shown + text[text.index("```", start) :])

    expected = dict(EXAMPLE.findall(page.read_text()))[command]
    assert shown == expected


@pytest.mark.parametrize(
    "change", [path.name for path in sorted((ROOT / CHANGES).iterdir()) if path.is_dir()]
)
def test_the_comment_about_a_change_is_recorded_beside_it(
    change: str, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    shown = output_of(f"tidegate diff {CHANGES}{change} -o markdown", tmp_path)
    comment = ROOT / CHANGES / change / "comment.md"
    if pytestconfig.getoption("--golden"):
        comment.write_text(shown)

    assert shown == comment.read_text()


@pytest.mark.parametrize("verb", [name for group in COMMANDS.values() for name in group])
def test_every_verb_has_a_page_with_an_example_and_its_exit_codes(verb: str) -> None:
    page = ROOT / "docs" / "commands" / f"{verb}.md"

    shown = [command.split()[1] for place, command in EXAMPLES if place == page]
    assert shown.count(verb) >= 1
    assert page.read_text().startswith(f"# tidegate {verb}\n")
    assert "## Exit codes\n" in page.read_text()
