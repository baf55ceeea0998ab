"""Every promise names its tests, and they are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ("SECURITY.md", "docs/contributing/promises.md")
LINK = re.compile(r"\[`(?P<shown>tests/[^`]+)`\]\((?P<path>[^)]+)\)")


def promises(page: Path) -> list[str]:
    """Return the rows of its tables of promises."""
    tables = page.read_text().split("| promise | tests |\n|---|---|\n")[1:]
    return [row for table in tables for row in table.partition("\n\n")[0].strip().splitlines()]


@pytest.mark.parametrize("page", PAGES)
def test_each_promise_names_tests_that_are_there(page: str) -> None:
    path = ROOT / page

    rows = promises(path)

    assert rows
    for row in rows:
        links = [*LINK.finditer(row)]
        assert links, row
        for link in links:
            target = (path.parent / link["path"]).resolve()
            assert target.exists(), row
            assert target == ROOT / link["shown"], row
