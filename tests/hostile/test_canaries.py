"""Hundreds of runs over verbs, formats, failures and places: none lets the canary out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile.canaries import CANARY, LAIRS, all_runs, is_in, leaks, run_in
from tests.hostile.inside import Said

RUNS = [*all_runs()]


def test_there_are_at_least_three_hundred_runs() -> None:
    assert len(RUNS) >= 300


@pytest.mark.parametrize(("lair", "verb"), RUNS, ids=[f"{lair} {verb}" for lair, verb in RUNS])
def test_no_run_lets_the_canary_out(lair: str, verb: str, tmp_path: Path) -> None:
    said = run_in(tmp_path, LAIRS[lair], verb)

    assert leaks(said, tmp_path) == []
    assert "Traceback" not in said.stderr
    assert said.code in {0, 2, 3, 4, 5}


@pytest.mark.parametrize(
    "lair", ["secret", "sealed-config", "sealed-env", "set", "substituted", "values-from"]
)
def test_what_is_hidden_was_there(lair: str, tmp_path: Path) -> None:
    said = run_in(tmp_path, LAIRS[lair], "render")

    assert said.code == 0
    assert "***" in said.stdout


def test_the_search_finds_what_it_looks_for(tmp_path: Path) -> None:
    for name in ("home", "tmp"):
        (tmp_path / name).mkdir()
    (tmp_path / "home" / "note").write_text(f"it is {CANARY}")

    assert len(leaks(Said(0, CANARY, ""), tmp_path)) == 2
    assert not is_in(CANARY, b"nothing")
