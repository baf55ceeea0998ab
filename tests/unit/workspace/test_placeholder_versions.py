"""A version for a chart that could not be fetched."""

from __future__ import annotations

import pytest

from tidegate.source.semver import read_range, read_version
from tidegate.workspace.rendering.charts import matching_version


@pytest.mark.parametrize(
    "version_range",
    [
        *("", "*", "1.2.3", "v1.2.3", "^1.2", "~0.3.1", ">=2", ">2.1", ">2.1.5", "<3", "<=0.4"),
        *("1.x", "2.*.*", ">=1.2 <2", "1.2 - 1.4", "!=1.0.0", "^0.0.3", "~1", "4.0.0-rc.1"),
        *(">=1.0.0-0", "1 || 2", "7.1.0+build.5"),
    ],
)
def test_the_placeholder_version_matches_the_range(version_range: str) -> None:
    version, bounds = (
        read_version(matching_version(version_range)),
        read_range(version_range or "*"),
    )

    assert version is not None
    assert bounds is not None
    assert bounds.matches(version)


def test_an_invalid_range_has_some_placeholder_version() -> None:
    assert matching_version("the newest") == "0.0.0"
