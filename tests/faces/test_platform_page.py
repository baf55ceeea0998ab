"""Who knows the page of a platform finds its commands in ours, and what lint leaves to be said."""

from __future__ import annotations

import re

import pytest

from tests.fakes.tidegate_runs import ROOT
from tidegate.documents import read
from tidegate.model.reading import mappings, text

PAGE = (ROOT / "docs" / "five-platforms.md").read_text()
COMMANDS = (ROOT / "tests" / "data" / "platforms" / "commands.txt").read_text().splitlines()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_their_pages_is_in_ours(command: str) -> None:
    shown = re.sub(r"\\\|", "|", PAGE)
    parts = command.split("…")

    assert all(part in shown for part in parts)


@pytest.mark.parametrize("name", ["fineract", "homelab", "ladder", "layers"])
def test_what_lint_is_told_to_ignore_is_listed_and_has_a_reason(name: str) -> None:
    file = ROOT / "examples" / name / "tidegate.yaml"
    entries = mappings(read(file.read_bytes(), file.name)[0].body, "lint", "ignore")
    section = next(one for one in PAGE.split("\n## ") if f"examples/{name}" in one)

    assert all(text(one, "reason") for one in entries)
    assert [rule for one in entries if (rule := text(one, "rule")) not in section] == []
