"""How long platforms take by two sets of rules is what their page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from examples.times import HEADS, PLATFORMS, Staged, play, row_of, stage, table_lines
from tests.support.tidegate_runs import ROOT

PAGE = (ROOT / "docs" / "contributing" / "example-platforms.md").read_text()
COMMAND = "$ python -m examples.times\n"
SHOWN = PAGE.partition(COMMAND)[2].partition("```")[0].splitlines()
ROWS = [tuple(re.split(r" {2,}", line)) for line in SHOWN]


def test_the_page_has_the_table_that_the_command_prints() -> None:
    assert [row[0] for row in ROWS] == [HEADS[0], *(platform.name for platform in PLATFORMS)]
    assert [*table_lines(ROWS[1:])] == SHOWN


@pytest.mark.parametrize("platform", PLATFORMS, ids=lambda item: item.name)
def test_the_times_equal_those_of_the_page(platform: Staged, tmp_path: Path) -> None:
    played = play(platform, stage(platform.name, tmp_path))

    assert row_of(platform, played) in ROWS
