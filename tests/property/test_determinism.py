"""Same seed, same bytes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def transcript(hash_seed: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "tests.support.transcript"],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_a_simulated_run_is_the_same_under_any_hash_seed() -> None:
    first = transcript("0")

    assert first.count("\n") > 100
    assert transcript("1") == first
    assert transcript("4242") == first
