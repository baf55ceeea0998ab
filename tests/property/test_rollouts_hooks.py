"""Hooks run once per rollout, in order, and no object of theirs remains, despite kills."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.rollout_cases import Shape, down, fast_by, shared_by, some_turns
from tests.support.rollout_hooks import (
    HookCase,
    HookShape,
    assert_hooks_in_order,
    assert_let_go,
    died,
    faulty_hooked,
    ill_hooked,
    left,
    runs_of,
    twice_hooked,
    well_hooked,
)
from tests.support.rollout_stages import PATIENCE, ProcessOptions, Stage
from tidegate.engine.messages import DeleteHooks
from tidegate.model.plans.manifest import Phase
from tidegate.model.plans.plan import HookPolicy
from tidegate.model.times import Ms
from tidegate.world.messages import WatchEventType

pytestmark = pytest.mark.timeout(PATIENCE)
JOB = Shape("Job", 0, 0, "well")
DEFAULT = (HookPolicy.BEFORE_CREATION,)
SETTINGS = Shape("ConfigMap", 0, 0, "well")
FLUSHED_AT_THE_END = HookCase(
    waves=((Shape("Deployment", 900, 4_000, "well"), SETTINGS), (SETTINGS,)),
    hooks=(HookShape(JOB, Phase.PRE_SYNC, DEFAULT),),
)
"""A journal is on its way when all has passed: its head must not say so before its parts do."""
LEAVING = HookCase(
    waves=((Shape("Deployment", 7_000, 0, "well"), Shape("Deployment", 900, 0, "well")),),
    hooks=(HookShape(Shape("Fleeting", 0, 0, "well"), Phase.SYNC, (HookPolicy.SUCCEEDED,)),),
)
"""A hook that has finished is on its way out, and only held, when the next rollout finds it."""
LATE_LEASE = HookCase(
    waves=((Shape("Deployment", 7_000, 0, "well"),),),
    hooks=(HookShape(JOB, Phase.PRE_SYNC, DEFAULT, generates=True),),
    faults=(down(Ms(14), 4),),
)
"""Names are made of a beginning that the journal gets to know seconds later."""
SWIFT = (Shape("ConfigMap", 0, 0, "well"), Shape("Deployment", 0, 0, "well"))
COME_AND_GONE = HookCase(
    waves=(SWIFT, SWIFT),
    hooks=(HookShape(Shape("Job", 20, 0, "well"), Phase.PRE_SYNC, DEFAULT),),
)
"""The first rollout ends while the second has read the journal and does not hold the unit yet."""
ORDINARY = (Phase.PRE_SYNC, Phase.SYNC, Phase.POST_SYNC)


@shared_by(3)
@given(ill_hooked)
def test_hooks_run_in_order_and_follow_their_delete_policies(case: HookCase) -> None:
    stage = Stage(case)

    run = stage.roll_out(case.plan()).run

    assert run.result == ("passed" if case.is_well else "failed")
    assert_all_hooks_ended(case, stage)


@shared_by(50)
@given(ill_hooked, st.integers(0, 7))
@example(FLUSHED_AT_THE_END, 0)
def test_a_rollout_killed_at_any_turn_runs_no_hook_twice(case: HookCase, variant: int) -> None:
    plan = case.plan()
    turns = Stage(case).roll_out(plan).life.turns

    for turn in some_turns(turns - 1, variant):
        stage = Stage(case)
        dying = stage.actor(plan, ProcessOptions(dies_at=turn, lands=(turn + variant // 2) % 4))
        stage.play(dying)
        fast = (0, 16_000, -3_600_000)[turn % 3]
        heir = ProcessOptions(holder="one" if (turn + variant) % 2 else "two", fast=fast)
        run = stage.roll_out(plan, heir).run

        assert run.result == ("passed" if case.is_well else "failed"), turn
        was_over = any(isinstance(item, DeleteHooks) for item in dying.script.ordered)
        assert_all_hooks_ended(case, stage, most=2 if was_over and not case.is_well else 1)


@shared_by(5)
@given(well_hooked, st.integers(1, 40))
def test_hooks_deleted_by_another_client_block_nothing(case: HookCase, turn: int) -> None:
    stage, plan = Stage(case), case.plan()
    stage.play(stage.actor(plan, ProcessOptions(dies_at=turn)))
    stage.delete_jobs()

    first = stage.roll_out(plan).run
    last = first if first.result == "passed" else stage.roll_out(plan).run

    assert last.result == "passed"
    assert max(runs_of(case, stage.record.changes).values(), default=0) <= 2
    assert_let_go(stage.planned())


@shared_by(5)
@given(well_hooked, st.integers(1, 40))
def test_a_rollout_stopped_at_any_turn_runs_no_hook_twice(case: HookCase, turn: int) -> None:
    stage, plan = Stage(case), case.plan()

    stage.roll_out(plan, ProcessOptions(calls={turn: lambda driver: driver.stop("enough")}))
    run = stage.roll_out(plan, ProcessOptions(holder="two")).run

    assert run.result == "passed"
    assert_all_hooks_ended(case, stage)


@shared_by(5)
@given(well_hooked, st.integers(1, 40))
def test_a_newer_plan_leaves_no_hook_held(case: HookCase, turn: int) -> None:
    stage, newer = Stage(case), case.plan(image="app:2")

    part = ProcessOptions(calls={turn: lambda driver: driver.supersede(newer)})
    run = stage.roll_out(case.plan(), part).run

    assert run.result == "passed"
    assert max(runs_of(case, stage.record.changes).values(), default=0) <= 2
    assert_let_go(stage.planned())


@shared_by(100)
@given(twice_hooked, st.integers(0, 7))
def test_a_hook_of_two_phases_runs_once_in_each(case: HookCase, variant: int) -> None:
    plan = case.plan()
    turns = Stage(case).roll_out(plan).life.turns

    for turn in some_turns(turns - 1, variant):
        stage = Stage(case)
        stage.play(stage.actor(plan, ProcessOptions(dies_at=turn, lands=(turn + variant) % 4)))
        run = stage.roll_out(plan).run

        assert run.result == "passed", turn
        assert runs_of(case, stage.record.changes) == {0: 2}, turn
        assert_let_go(stage.planned())


@shared_by(3)
@given(faulty_hooked)
def test_faults_cause_no_second_run_and_no_blocked_hook(case: HookCase) -> None:
    stage = Stage(case)

    run = stage.roll_out(case.plan()).run

    assert run.result == "passed"
    assert_all_hooks_ended(case, stage)


@shared_by(8)
@given(faulty_hooked, st.lists(st.integers(1, 60), min_size=1, max_size=3))
@example(LATE_LEASE, [50])
def test_kill_after_kill_under_faults_runs_no_hook_twice(case: HookCase, kills: list[int]) -> None:
    plan, stage = case.plan(), Stage(case)

    for number, turn in enumerate(kills):
        part = ProcessOptions(holder=f"{number % 2}", dies_at=turn, lands=turn % 3)
        stage.play(stage.actor(plan, part))
    run = stage.roll_out(plan).run

    assert run.result == "passed"
    assert_all_hooks_ended(case, stage)


@shared_by(8)
@given(well_hooked, st.integers(100, 20_000), fast_by)
@example(COME_AND_GONE, 100, 0)
def test_two_rollouts_of_one_plan_run_its_hooks_once(
    case: HookCase, begins: int, fast: int
) -> None:
    stage, plan = Stage(case), case.plan()
    first = stage.actor(plan)

    second = stage.actor(plan, ProcessOptions(holder="two", begins=begins, fast=fast))
    stage.play(first, second)

    assert (first.run.result, second.run.result) == ("passed", "passed")
    assert_all_hooks_ended(case, stage)


@shared_by(5)
@given(well_hooked, st.integers(0, 60))
@example(LEAVING, 29)
def test_every_rollout_runs_its_hooks_again(case: HookCase, dies_at: int) -> None:
    stage, newer = Stage(case), case.plan(image="app:2")
    stage.play(stage.actor(case.plan(), ProcessOptions(dies_at=dies_at)))
    before, kept = len(stage.record.changes), left(case, stage.planned())

    run = stage.roll_out(newer).run

    assert run.result == "passed"
    assert_all_hooks_ended(case, stage, since=before, kept={n for n in kept if counts(case, n)})


@shared_by(5)
@given(ill_hooked)
def test_a_failed_hook_runs_again_in_the_next_rollout(case: HookCase) -> None:
    stage, plan = Stage(case), case.plan()
    stage.roll_out(plan)
    before, kept = len(stage.record.changes), left(case, stage.planned())
    failed = died(case, stage.record)

    stage.roll_out(plan)

    again = set(runs_of(case, stage.record.changes[before:]))
    assert case.is_well or failed - {n for n in kept if counts(case, n)} <= again
    assert_let_go(stage.planned())


def counts(case: HookCase, number: int) -> bool:
    """Whether what is there of a hook counts as its run, as with Argo CD."""
    hook = case.hooks[number]
    return not hook.generates and HookPolicy.BEFORE_CREATION not in hook.policies


def assert_all_hooks_ended(
    case: HookCase,
    stage: Stage,
    *,
    since: int = 0,
    kept: AbstractSet[int] = frozenset(),
    most: int = 1,
) -> None:
    """Each hook that had to run did so once, and is there if its policy lets it.

    `kept`: of these an earlier run counts. `most`: two, where a rollout has failed and another one
    followed.
    """
    assert_hooks_in_order(case, stage.record, since=since, kept=kept)
    runs = runs_of(case, stage.record.changes[since:])
    assert max(runs.values(), default=0) <= most, runs
    if case.is_well:
        desired = {n for n, hook in enumerate(case.hooks) if hook.phase in ORDINARY}
        assert desired - kept <= set(runs) <= desired
    else:
        assert {n for n, hook in enumerate(case.hooks) if hook.phase not in ORDINARY} <= set(runs)
    assert_let_go(stage.planned())
    changes = stage.record.changes[since:]
    made = {change.stored.uid for change in changes if change.change is WatchEventType.ADDED}
    there = left(case, (item for item in stage.planned() if item.uid in made))
    gone = HookPolicy.SUCCEEDED if case.is_well else HookPolicy.FAILED
    assert {n for n in there if gone in case.hooks[n].policies} == set()
    expected = {n for n in runs if gone not in case.hooks[n].policies}
    assert {n for n in expected if case.hooks[n].shape.kind == "Job"} <= there
