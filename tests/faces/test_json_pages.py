"""What programs read is what the page on JSON says: no key that it does not name."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hostile.inside import typed

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reference/json.md").read_text()
CASES = {
    "units": "units examples/platform",
    "waves": "waves examples/platform",
    "graph": "graph examples/platform",
    "lint": "lint examples/broken/circle",
    "health": "health examples/first/app-service.yaml",
    "knowledge": "knowledge Certificate",
    "cache, doctor, version": "doctor",
    "plan": "plan examples/first",
    "sync": "sync examples/first --sandbox",
}
OPEN = {"object", "params", "summary"}
"""What is below these has keys of its own."""


def keys_of(value: object) -> Iterator[str]:
    if isinstance(value, list):
        for one in value:
            yield from keys_of(one)
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            if key not in OPEN:
                yield from keys_of(inner)


def section(title: str) -> str:
    """A chapter of the page, with the first, which counts for all."""
    (text,) = (one for one in PAGE.split("\n## ") if one.startswith((f"{title}\n", f"{title},")))
    return text + PAGE.split("\n## ")[1]


@pytest.mark.parametrize(("title", "words"), CASES.items(), ids=CASES)
def test_every_key_that_a_program_reads_is_on_the_page(
    title: str, words: str, tmp_path: Path
) -> None:
    home = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}

    ran = typed(ROOT, home, (*words.split(), "-o", "json"))

    named = {*re.findall(r"`([\w.]+)`", section(title))}
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    assert found, ran.stderr
    assert {*keys_of(found)} - named == set()
