"""Hundreds of runs over verbs, formats, failures and places: none lets the canary out."""

from __future__ import annotations

import base64
import zlib
from pathlib import Path

import pytest

from tests.support.canaries import (
    CANARY,
    REAL,
    SECRET_PLACES,
    VERBS,
    all_runs,
    leaks,
    run_in,
    some_runs,
)
from tests.support.canary_search import contents, is_in
from tests.support.in_process_command import CommandOutput

RUNS = [*some_runs()]


def test_at_least_three_hundred_runs_cover_everything() -> None:
    assert len([*all_runs()]) >= 300
    assert {secret_place for secret_place, _ in RUNS} == {*SECRET_PLACES}
    assert {verb for _, verb in RUNS} == {*VERBS, *REAL}


@pytest.mark.parametrize(
    ("secret_place", "verb"), RUNS, ids=[f"{secret_place} {verb}" for secret_place, verb in RUNS]
)
def test_no_run_leaks_the_canary(secret_place: str, verb: str, tmp_path: Path) -> None:
    run = run_in(tmp_path, SECRET_PLACES[secret_place], verb)

    assert leaks(run, tmp_path) == []
    assert "Traceback" not in run.stderr
    assert run.code in {0, 2, 3, 4, 5}


@pytest.mark.parametrize(
    "secret_place", ["secret", "sealed-config", "sealed-env", "set", "substituted", "values-from"]
)
def test_every_hidden_value_was_in_the_input(secret_place: str, tmp_path: Path) -> None:
    run = run_in(tmp_path, SECRET_PLACES[secret_place], "render")

    assert run.code == 0
    assert "***" in run.stdout


def test_the_search_finds_a_leaked_value(tmp_path: Path) -> None:
    for name in ("home", "tmp"):
        (tmp_path / name).mkdir()
    (tmp_path / "home" / "note").write_text(f"it is {CANARY}")
    (tmp_path / "tmp" / "packed").write_bytes(
        zlib.compress(base64.b64encode(f"password={CANARY};".encode()))
    )

    result = leaks(CommandOutput(0, CANARY, ""), tmp_path)

    assert [location.rpartition("/")[2] for location in result] == [
        f"{CANARY} in stdout",
        "note",
        "packed",
    ]
    assert [is_in(CANARY, text) for _, text in contents(tmp_path / "tmp")] == [False, True]
