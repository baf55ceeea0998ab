"""Killed at any turn and begun anew, a rollout comes to the same end."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.rollout_cases import EXAMPLES, WELL, Case, cases
from tests.fakes.rollout_plays import PATIENCE, Part, Stage
from tests.fakes.rollout_record import assert_counted, assert_record_in_order

pytestmark = pytest.mark.timeout(PATIENCE)
some_cases = settings(max_examples=max(1, EXAMPLES // 20), deadline=None)
small = cases(fates=WELL, faulty=False, most=2)


@some_cases
@given(small, st.integers(0, 7))
def test_a_rollout_killed_at_any_turn_goes_on_to_the_same_end(case: Case, variant: int) -> None:
    plan, whole = case.plan(), Stage(case)
    turns = whole.roll_out(plan).life.turns

    for turn in range(1, turns + 1):
        stage = _killed(case, turn, variant)
        heir = Part(holder="one" if (turn + variant) % 2 else "two")
        run = stage.roll_out(plan, heir).run

        assert run.result == "passed", turn
        assert stage.objects() == whole.objects(), turn
        assert_record_in_order(plan, stage.record)
        assert_counted(stage.record)


def _killed(case: Case, turn: int, variant: int) -> Stage:
    """A cluster in which somebody died, and some of whose last writes still arrive."""
    stage = Stage(case)
    stage.play(stage.actor(case.plan(), Part(dies_at=turn, lands=(turn + variant // 2) % 4)))
    return stage


@some_cases
@given(small, st.integers(0, 7))
def test_jobs_that_somebody_deletes_meanwhile_run_again(case: Case, variant: int) -> None:
    plan, whole = case.plan(), Stage(case)
    turns = whole.roll_out(plan).life.turns

    for turn in range(1, turns + 1, 3):
        stage = _killed(case, turn, variant)
        stage.delete_jobs()
        run = stage.roll_out(plan).run

        assert run.result == "passed", turn
        assert stage.objects() == whole.objects(), turn
        assert_record_in_order(plan, stage.record)
