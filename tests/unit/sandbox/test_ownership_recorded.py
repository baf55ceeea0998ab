"""Writes whose results were recorded from a real API server, replayed on ours.

`make golden` with a control plane writes the answers; see tests/e2e/test_ownership.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.sequence_runner import answers_of
from tests.support.write_sequences import (
    DIGESTS,
    SEED,
    SEQUENCES,
    random_sequences,
    read_sequence,
    write_digests,
)
from tidegate.sandbox.world import Sandbox

RECORDED = sorted((Path(__file__).parents[2] / "data" / "ownership").glob("*.yaml"))


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
async def test_recorded_writes_end_as_on_a_real_server(path: Path) -> None:
    sequence = read_sequence(path)

    answers = await answers_of(Sandbox(), [sequence])

    assert answers == [[step.answer for step in sequence.steps]]


async def test_random_writes_end_as_they_did_on_a_real_server() -> None:
    answers = await answers_of(Sandbox(), random_sequences(SEQUENCES, seed=SEED))

    assert write_digests(answers) == DIGESTS.read_text()


def test_a_seed_always_gives_the_same_writes() -> None:
    assert random_sequences(8, seed=3) == random_sequences(8, seed=3)
    assert random_sequences(8, seed=3) != random_sequences(8, seed=4)
