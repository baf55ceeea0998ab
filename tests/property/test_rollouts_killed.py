"""A rollout that is killed at any turn and restarted has the same result."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.cluster_history import assert_counted, assert_record_in_order
from tests.support.rollout_cases import WELL, Case, cases, fast_by, shared_by, some_turns
from tests.support.rollout_stages import PATIENCE, ProcessOptions, Stage, finished
from tidegate.engine.records.heartbeat import LEASE_DURATION
from tidegate.model.k8s.kinds import SECRET
from tidegate.model.times import SECOND
from tidegate.world.messages import is_error

pytestmark = pytest.mark.timeout(PATIENCE)
small = cases(fates=WELL, faulty=False, most=2)


@shared_by(20)
@given(small, st.integers(0, 7))
def test_a_rollout_killed_at_any_turn_has_the_same_result(case: Case, variant: int) -> None:
    plan = case.plan()
    turns = Stage(case).roll_out(plan).life.turns

    for turn in some_turns(turns, variant):
        stage = _killed(case, turn, variant)
        heir = ProcessOptions(holder="one" if (turn + variant) % 2 else "two")
        run = stage.roll_out(plan, heir).run

        assert run.result == "passed", turn
        assert stage.objects() == finished(plan), turn
        assert_record_in_order(plan, stage.record)
        assert_counted(stage.record)


def _killed(case: Case, turn: int, variant: int) -> Stage:
    """A cluster after a process died, to which some of its last writes still arrive."""
    stage = Stage(case)
    stage.play(
        stage.actor(case.plan(), ProcessOptions(dies_at=turn, lands=(turn + variant // 2) % 4))
    )
    return stage


@shared_by(20)
@given(small, st.integers(1, 60), fast_by)
def test_a_killed_holder_delays_the_next_by_its_term_whatever_the_clocks(
    case: Case, turn: int, fast: int
) -> None:
    plan, stage = case.plan(), Stage(case)
    stage.play(stage.actor(plan, ProcessOptions(dies_at=turn, lands=turn % 3)))
    begins, before = stage.realm.now(), len(stage.realm.landed)

    run = stage.roll_out(plan, ProcessOptions(holder="two", fast=fast)).run

    assert run.result == "passed"
    assert stage.objects() == finished(plan)
    assert_record_in_order(plan, stage.record)
    taken = [
        item.at
        for item in stage.realm.landed[before:]
        if item.write.ref.kind == SECRET and not is_error(item.outcome)
    ]
    assert min(taken, default=begins) <= begins + LEASE_DURATION + 3 * SECOND


@shared_by(60)
@given(small, st.integers(0, 7))
def test_jobs_deleted_by_another_client_run_again(case: Case, variant: int) -> None:
    plan = case.plan()
    turns = Stage(case).roll_out(plan).life.turns

    for turn in some_turns(turns, variant):
        stage = _killed(case, turn, variant)
        stage.delete_jobs()
        run = stage.roll_out(plan).run

        assert run.result == "passed", turn
        assert stage.objects() == finished(plan), turn
        assert_record_in_order(plan, stage.record)


@shared_by(4)
@given(cases(fates=WELL, most=2), st.lists(st.integers(1, 60), min_size=1, max_size=3))
def test_kill_after_kill_under_faults_costs_time_and_no_more(case: Case, kills: list[int]) -> None:
    plan, stage = case.plan(), Stage(case)

    for number, turn in enumerate(kills):
        part = ProcessOptions(holder=f"{number % 2}", dies_at=turn, lands=turn % 3)
        stage.play(stage.actor(plan, part))
    run = stage.roll_out(plan).run

    assert run.result == "passed"
    assert stage.objects() == finished(plan)
    assert_record_in_order(plan, stage.record)
    assert_counted(stage.record)
