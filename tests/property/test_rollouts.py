"""Rollouts of any shape under any faults: they end, in order, and the same way each time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given

from tests.support.cluster_history import assert_counted, assert_record_in_order
from tests.support.rollout_cases import WELL, Case, Shape, cases, down, every_case, shared_by
from tests.support.rollout_runs import Run
from tests.support.rollout_stages import PATIENCE, Actor, Stage, finished, replayed
from tidegate.model.plans.plan import Plan
from tidegate.model.rollouts.event import FINAL_STATES, EventType
from tidegate.model.times import Ms
from tidegate.model.units.unit import UnitId

ROOT = Path(__file__).parents[2]
AWAY_AT_THE_END = Case(
    units=(((Shape("ConfigMap", 0, 0, "well"), Shape("Fleeting", 0, 4_000, "well")),),),
    depends=((),),
    faults=(down(Ms(278), 8),),
)
"""The lease runs out when all has passed, and what is remembered is not written yet."""
pytestmark = pytest.mark.timeout(PATIENCE)


@every_case
@given(cases(most=2))
def test_every_plan_finishes_in_order(case: Case) -> None:
    stage, plan = Stage(case), case.plan()

    actor = stage.roll_out(plan)

    assert_at_rest_in_order(stage, actor)
    if case.is_well:
        assert actor.run.result == "passed"
        assert stage.objects() == finished(plan)


@shared_by(10)
@given(cases())
def test_larger_plans_finish_in_order(case: Case) -> None:
    stage, plan = Stage(case), case.plan()

    actor = stage.roll_out(plan)

    assert_at_rest_in_order(stage, actor)


def assert_at_rest_in_order(stage: Stage, actor: Actor) -> None:
    assert all(state in FINAL_STATES for state in actor.run.states.values())
    assert_events_in_order(actor.plan, actor.run)
    assert_record_in_order(actor.plan, stage.record)
    assert_counted(stage.record)
    assert replayed(actor.script) == actor.script


@every_case
@given(cases(most=2))
def test_faults_cost_time_and_never_order(case: Case) -> None:
    calm, rough = Stage(case.without_faults), Stage(case)
    plan = case.plan()

    quick = calm.roll_out(plan).run
    slow = rough.roll_out(plan).run

    assert slow.states == quick.states
    assert rough.texts() == calm.texts()
    assert _passed_by_unit(plan, slow) == _passed_by_unit(plan, quick)


@shared_by(4)
@given(cases(most=2))
def test_the_same_seed_gives_the_same_events(case: Case) -> None:
    item = Stage(case, seed=7).roll_out(case.plan()).run
    other = Stage(case, seed=7).roll_out(case.plan()).run

    assert msgspec.json.encode(item.events) == msgspec.json.encode(other.events)


def test_events_do_not_depend_on_the_hash_seed() -> None:
    messages = {_transcript(hash_seed) for hash_seed in ("0", "1", "4711")}

    assert len(messages) == 1
    assert b"rollout.finished" in messages.pop()


@every_case
@given(cases(most=2, fates=WELL))
@example(AWAY_AT_THE_END)
def test_a_second_run_writes_nothing_and_an_update_waits_for_what_is_new(case: Case) -> None:
    stage, plan, newer = Stage(case), case.plan(), case.plan(image="app:2")
    stage.roll_out(plan)
    before = len(stage.realm.landed)

    second = stage.roll_out(plan).run
    written = len(stage.realm.landed) - before
    update = stage.roll_out(newer).run

    assert (second.result, update.result) == ("passed", "passed")
    assert not second.events_of(EventType.OBJECT_WRITTEN)
    assert case.faults or not written
    assert_record_in_order(newer, stage.record, image="app:2")


def assert_events_in_order(plan: Plan, run: Run) -> None:
    """No step is applied before all before it have passed."""
    passed: set[str] = set()
    before: dict[str, set[str]] = {step.id: set() for step in plan.steps}
    for edge in plan.edges:
        before[edge.after].add(edge.before)
    for event in run.events:
        if event.type is EventType.STEP_PASSED:
            passed.add(event.step)
        elif event.type in (EventType.STEP_APPLYING, EventType.OBJECT_WRITTEN):
            assert before[event.step] <= passed, event


def _passed_by_unit(plan: Plan, run: Run) -> dict[UnitId, list[str]]:
    units = {step.id: step.unit for step in plan.steps}
    passed: dict[UnitId, list[str]] = {unit.id: [] for unit in plan.units}
    for event in run.events_of(EventType.STEP_PASSED):
        passed[units[event.step]].append(event.step)
    return passed


def _transcript(hash_seed: str) -> bytes:
    command = [sys.executable, "-m", "tests.support.rollout_transcript"]
    paths = f"{ROOT}:{ROOT / 'src'}"
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": paths}
    run = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
    return run.stdout
