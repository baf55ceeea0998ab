"""Durations and paths on the command line that cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.tidegate_runs import FIRST, tidegate, tidegate_in


@pytest.mark.parametrize("duration", ["-5s", "5", "soon"])
def test_an_invalid_or_negative_timeout_is_a_usage_error(duration: str) -> None:
    ran = tidegate("sync", FIRST, "--sandbox", "--timeout", duration)

    assert ran.returncode == 2
    assert f"`{duration}`" in ran.stderr
    assert ran.stdout == ""


def test_a_name_that_is_too_long_is_an_ordinary_error(tmp_path: Path) -> None:
    ran = tidegate_in(tmp_path, "plan", "x" * 300)

    assert ran.returncode == 3
    assert "error[file.unreadable]" in ran.stderr
    assert "Traceback" not in ran.stderr
