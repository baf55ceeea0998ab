"""A version for a chart that nobody could fetch."""

from __future__ import annotations

import pytest

from tidegate.source.semver import read_range, read_version
from tidegate.workspace.rendering.charts import matching_version


@pytest.mark.parametrize(
    "wanted",
    [
        *("", "*", "1.2.3", "v1.2.3", "^1.2", "~0.3.1", ">=2", ">2.1", ">2.1.5", "<3", "<=0.4"),
        *("1.x", "2.*.*", ">=1.2 <2", "1.2 - 1.4", "!=1.0.0", "^0.0.3", "~1", "4.0.0-rc.1"),
        *(">=1.0.0-0", "1 || 2", "7.1.0+build.5"),
    ],
)
def test_it_is_one_that_the_range_takes(wanted: str) -> None:
    version, bounds = read_version(matching_version(wanted)), read_range(wanted or "*")

    assert version is not None
    assert bounds is not None
    assert bounds.matches(version)


def test_for_what_is_no_range_it_is_some_version() -> None:
    assert matching_version("the newest") == "0.0.0"
