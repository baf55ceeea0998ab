"""Who knows the page of a platform finds it all in ours: sections, commands, what lint ignores."""

from __future__ import annotations

import ast
import json
import re
from functools import cache
from pathlib import Path

import pytest

from tests.support.platforms import PLATFORMS, lay_out, type_among
from tests.support.tidegate_runs import ROOT
from tidegate.documents import read_documents
from tidegate.model.k8s.json_fields import get_mappings, get_text

PAGE = (ROOT / "docs" / "contributing" / "example-platforms.md").read_text()
KEPT = ROOT / "tests" / "data" / "platforms"
COMMANDS = (KEPT / "commands.txt").read_text().splitlines()
SECTIONS = (KEPT / "sections.txt").read_text().splitlines()
SHOWN_BY = re.compile(r"`([\w/]+\.py)::(test_\w+)`")
IGNORED = re.compile(r"^.*ignored with a reason[^:\n]*: (.+)\.$", re.MULTILINE | re.IGNORECASE)
UNMADE = frozenset({"ORD049"})
"""Findings that appear only without the files that `make examples` writes."""


def part_of(name: str) -> str:
    """The section of the page about a platform."""
    heads = {"charts": "the charts"}
    return next(
        part
        for part in PAGE.split("\n## ")
        if f"`examples/{name}`" in part or heads.get(name, "\0") in part
    )


@cache
def functions_of(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / "tests" / file).read_text())
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(item.name for item in tree.body if isinstance(item, kinds))


@pytest.mark.parametrize("section", SECTIONS)
def test_every_section_of_their_pages_has_a_row_with_its_command(section: str) -> None:
    name, _, title = section.partition(": ")
    tables = (line.split(" | ") for line in part_of(name).splitlines() if line.startswith("| "))
    rows = [cells for cells in tables if title in cells[0].removeprefix("| ").split("; ")]

    assert [len(cells) for cells in rows] == [3], "one row with what is here, and who shows it"
    assert SHOWN_BY.findall(rows[0][2])


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_their_pages_is_in_our_page(command: str) -> None:
    shown = re.sub(r"\\\|", "|", PAGE)
    parts = command.split("…")

    assert all(part in shown for part in parts)


@pytest.fixture(scope="module")
def platforms(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lay_out(tmp_path_factory.mktemp("platforms"), *PLATFORMS)


@pytest.mark.parametrize("name", PLATFORMS)
def test_each_suppressed_finding_exists_is_listed_and_has_a_reason(
    platforms: Path, name: str
) -> None:
    file = platforms / name / "tidegate.yaml"
    settings = file.read_text()
    entries = get_mappings(read_documents(file.read_bytes(), file.name)[0].body, "lint", "ignore")
    file.write_text(settings.replace("  ignore:\n", "  ignore: []\n").partition("  - rule:")[0])

    result = json.loads(type_among(platforms, "lint", name, "-o", "json").stdout)["findings"]

    file.write_text(settings)
    ignored = {get_text(entry, "rule") for entry in entries}
    assert all(get_text(entry, "reason") for entry in entries)
    assert {item["code"] for item in result if item["severity"] != "note"} <= ignored
    assert ignored - UNMADE <= {item["code"] for item in result}, "nothing is ignored in vain"
    (listed,) = IGNORED.findall(part_of(name))
    assert {part.strip("`") for part in listed.split(", ")} == ignored


def test_every_test_that_the_page_names_exists() -> None:
    named = SHOWN_BY.findall(PAGE)

    assert [test for file, test in named if test not in functions_of(file)] == []
