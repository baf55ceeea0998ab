"""Every promise names its tests, and they are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ("SECURITY.md", *(f"docs/concepts/{name}.md" for name in ("gates", "preflight", "secrets")))
LINK = re.compile(r"\[`(?P<shown>tests/[^`]+)`\]\((?P<path>[^)]+)\)")


def promises(page: Path) -> list[str]:
    """The rows of its table of promises."""
    table = page.read_text().partition("| promise | tests |\n|---|---|\n")[2].partition("\n\n")[0]
    return table.strip().splitlines()


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
