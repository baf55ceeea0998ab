"""A comparison foresees what an apply does: on random writes by several managers."""

from __future__ import annotations

from tests.support.predicted_changes import surprises_of
from tests.support.write_sequences import random_sequences
from tidegate.sandbox.world import Sandbox


async def test_a_comparison_foresees_exactly_what_an_apply_changes() -> None:
    sequences = random_sequences(240, seed=7)

    surprises = await surprises_of(Sandbox(), sequences)

    assert surprises == []
