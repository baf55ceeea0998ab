"""Two rollouts of the same units at once: they never interleave."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.cluster_history import assert_record_in_order
from tests.support.killable_processes import Absence
from tests.support.rollout_cases import WELL, Case, cases, fast_by, shared_by
from tests.support.rollout_stages import (
    PATIENCE,
    Actor,
    ProcessOptions,
    Stage,
    assert_two_blocks,
    blocks,
    finished,
)
from tidegate.model.times import Ms
from tidegate.sandbox.world import START

pytestmark = pytest.mark.timeout(PATIENCE)
calm = cases(fates=WELL, faulty=False, most=2)
moments = st.integers(100, 20_000)
clocks = st.tuples(fast_by, fast_by)
"""By how much the clock of each process is ahead."""
absences = st.builds(Absence, moments, st.integers(1, 40), st.sampled_from(["cut", "frozen"]))


@shared_by(4)
@given(calm, moments, clocks)
def test_the_second_of_two_rollouts_of_one_plan_changes_nothing(
    case: Case, begins: int, clocks: tuple[int, int]
) -> None:
    stage, plan = Stage(case), case.plan()
    first = stage.actor(plan, ProcessOptions(fast=clocks[0]))

    second = stage.actor(plan, ProcessOptions(holder="two", begins=begins, fast=clocks[1]))
    stage.play(first, second)

    assert (first.run.result, second.run.result) == ("passed", "passed")
    assert all(senders == ["1"] for senders in blocks(stage).values())
    assert_record_in_order(plan, stage.record)


@shared_by(4)
@given(calm, moments, clocks)
def test_a_rollout_is_superseded_by_another_plan(
    case: Case, begins: int, clocks: tuple[int, int]
) -> None:
    stage, newer = Stage(case), case.plan(image="app:2")
    first = stage.actor(case.plan(), ProcessOptions(fast=clocks[0]))

    second = stage.actor(newer, ProcessOptions(holder="two", begins=begins, fast=clocks[1]))
    stage.play(first, second)

    assert first.run.result in ("passed", "stopped")
    assert_second_took_over(stage, second)


@shared_by(4)
@given(calm, moments, absences, clocks)
def test_a_disconnected_rollout_leaves_the_rest_to_another_one_of_its_plan(
    case: Case, begins: int, absence: Absence, clocks: tuple[int, int]
) -> None:
    stage, plan = Stage(case), case.plan()
    first = stage.actor(plan, ProcessOptions(fast=clocks[0]))

    second = stage.actor(plan, ProcessOptions(holder="two", begins=begins, fast=clocks[1]))
    stage.play(first, second, happenings=absence.happenings(first.life))

    assert (first.run.result, second.run.result) == ("passed", "passed")
    assert_two_blocks(stage)
    assert_record_in_order(plan, stage.record)


@shared_by(4)
@given(calm, moments, absences, clocks)
def test_a_disconnected_rollout_does_not_revert_a_newer_plan(
    case: Case, begins: int, absence: Absence, clocks: tuple[int, int]
) -> None:
    stage, newer = Stage(case), case.plan(image="app:2")
    first = stage.actor(case.plan(), ProcessOptions(fast=clocks[0]))

    second = stage.actor(newer, ProcessOptions(holder="two", begins=begins, fast=clocks[1]))
    stage.play(first, second, happenings=absence.happenings(first.life))

    error = first.life.error
    assert error is None or error.code == "cluster.superseded"
    assert_second_took_over(stage, second)


@shared_by(4)
@given(calm, moments, st.lists(moments, min_size=1, max_size=3), clocks)
def test_two_rollouts_do_not_interleave_when_their_leases_are_deleted(
    case: Case, begins: int, deletions: list[int], clocks: tuple[int, int]
) -> None:
    stage, plan = Stage(case), case.plan()
    first = stage.actor(plan, ProcessOptions(fast=clocks[0]))
    second = stage.actor(plan, ProcessOptions(holder="two", begins=begins, fast=clocks[1]))

    stage.play(
        first, second, happenings=[(Ms(START + at), stage.delete_leases) for at in deletions]
    )

    assert (first.run.result, second.run.result) == ("passed", "passed")
    assert_two_blocks(stage)
    assert_record_in_order(plan, stage.record)


def assert_second_took_over(stage: Stage, second: Actor) -> None:
    assert second.run.result == "passed"
    assert stage.objects() == finished(second.plan)
    assert_two_blocks(stage)
    assert_record_in_order(second.plan, stage.record, image="app:2")
