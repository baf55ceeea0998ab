"""Versions and ranges, against recorded results of the library that Helm and Flux use."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tidegate.errors import SourceError
from tidegate.source.semver import pick_highest, read_range, read_version, require_range

RECORDED = Path(__file__).parents[2] / "data" / "source" / "version-ranges.json"


class Recorded(msgspec.Struct):
    library: str
    versions: list[str]
    taken: dict[str, list[int] | None]


def test_every_range_takes_what_the_library_takes() -> None:
    recorded = msgspec.json.decode(RECORDED.read_bytes(), type=Recorded)
    versions = [read_version(text) for text in recorded.versions]

    taken: dict[str, list[int] | None] = {}
    for text in recorded.taken:
        expected = read_range(text)
        taken[text] = (
            None
            if expected is None
            else [
                at for at, version in enumerate(versions) if version and expected.matches(version)
            ]
        )

    assert taken == recorded.taken
    assert len(taken) > 300


def test_prereleases_have_the_order_of_semver() -> None:
    texts = ["1.0.0-2", "1.0.0-11", "1.0.0-a", "1.0.0-a.1", "1.0.0-b", "1.0.0"]
    versions = [version for text in reversed(texts) if (version := read_version(text))]

    ordered = sorted(versions, key=lambda version: version.sort_key)

    assert [version.text for version in ordered] == texts


def test_the_highest_is_picked_among_what_is_a_version() -> None:
    result = pick_highest(require_range("^1.2"), ["latest", "v1.10.0", "v1.9.0", "2.0.0", "main"])

    assert result is not None
    assert result.text == "v1.10.0"


def test_nothing_is_picked_where_nothing_fits() -> None:
    assert pick_highest(require_range("~3"), ["1.0.0", "2.0.0"]) is None


@pytest.mark.parametrize("text", ["is_exact", "1 -", "9" * 600, "||".join("1" * 40)])
def test_an_invalid_range_is_an_error_with_an_example(text: str) -> None:
    with pytest.raises(SourceError) as caught:
        require_range(text)

    assert caught.value.code == "source.version.range"
    assert "^1.2" in caught.value.hint


def test_a_range_made_to_be_slow_is_not() -> None:
    slow = ("1.1.1-a" + " " * 8) * 34 + "!"

    assert read_range(slow) is None


@pytest.mark.parametrize(
    ("text", "is_exact"),
    [("1.2.3", True), ("v1.2.3-rc.1", True), ("1.2", False), ("^1.2.3", False)],
)
def test_a_version_in_full_is_no_range(text: str, *, is_exact: bool) -> None:
    assert require_range(text).is_exact is is_exact
