"""Who owns what, asked of a real API server: random writes, and every recorded one."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from plane import ControlPlane
from tests.support.sequence_runner import answers_of
from tests.support.worlds import real_world
from tests.support.write_sequences import (
    DIGESTS,
    SEED,
    SEQUENCES,
    Answer,
    Sequence,
    random_sequences,
    read_sequence,
    write_digests,
    write_sequence,
)
from tidegate.sandbox.world import Sandbox

pytestmark = pytest.mark.kube

RECORDED = Path(__file__).parents[1] / "data" / "ownership"


async def really(plane: ControlPlane, sequences: list[Sequence]) -> list[list[Answer]]:
    """What a real server answers to each step."""
    async with real_world(kubeconfig=plane.kubeconfig("tidegate")) as world:
        return await answers_of(world, sequences)


async def test_random_writes_have_the_same_outcome_on_sandbox_and_server(
    plane: ControlPlane, pytestconfig: pytest.Config
) -> None:
    sequences = random_sequences(SEQUENCES, seed=SEED)

    answers = await really(plane, sequences)
    simulated = await answers_of(Sandbox(), sequences)
    if pytestconfig.getoption("--golden"):
        DIGESTS.write_text(write_digests(answers))

    different = [
        (sequence.shows, place, sequence.steps[place], ours, theirs)
        for sequence, result, text in zip(sequences, answers, simulated, strict=True)
        for place, (ours, theirs) in enumerate(zip(text, result, strict=True))
        if ours != theirs
    ]
    assert different == []
    assert DIGESTS.read_text() == write_digests(answers)


async def test_recorded_writes_have_their_recorded_outcome(
    plane: ControlPlane, pytestconfig: pytest.Config
) -> None:
    paths = sorted(RECORDED.glob("*.yaml"))
    sequences = [read_sequence(path) for path in paths]

    answers = await really(plane, sequences)

    messages = [with_answers(*pair) for pair in zip(sequences, answers, strict=True)]
    if pytestconfig.getoption("--golden"):
        for path, sequence in zip(paths, messages, strict=True):
            write_sequence(path, sequence)
    assert [read_sequence(path) for path in paths] == messages


def with_answers(sequence: Sequence, answers: list[Answer]) -> Sequence:
    steps = [
        msgspec.structs.replace(step, answer=answer)
        for step, answer in zip(sequence.steps, answers, strict=True)
    ]
    return msgspec.structs.replace(sequence, steps=steps)
