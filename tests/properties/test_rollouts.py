"""Rollouts of any shape under any faults: they end, in order, and the same way each time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given

from tests.fakes.rollout_cases import BRISK, WELL, Case, cases, every_case
from tests.fakes.rollout_plays import PATIENCE, Script, Stage
from tests.fakes.rollout_record import assert_counted, assert_record_in_order
from tidegate.engine.turns.rollout import Rollout
from tidegate.model.event import FINAL, Told
from tidegate.model.plan import Plan
from tidegate.testing.rollouts import Run

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.timeout(PATIENCE)


@every_case
@given(cases())
def test_every_plan_comes_to_rest_in_order(case: Case) -> None:
    stage, plan = Stage(case), case.plan()

    run = stage.roll_out(plan).run

    assert all(state in FINAL for state in run.states.values())
    assert_events_in_order(plan, run)
    assert_record_in_order(plan, stage.record)
    assert_counted(stage.record)
    if case.is_well:
        assert run.result == "passed"


@every_case
@given(cases(most=2))
def test_what_was_heard_comes_to_the_same_decisions_again(case: Case) -> None:
    first = Stage(case).roll_out(case.plan()).script

    again = Script()
    fresh = Rollout(BRISK)
    for heard, now, _ in first.lines:
        again.decide(fresh, heard, now)

    assert again == first


@every_case
@given(cases(most=2))
def test_the_same_seed_tells_the_same_bytes(case: Case) -> None:
    one = Stage(case, seed=7).roll_out(case.plan()).run
    other = Stage(case, seed=7).roll_out(case.plan()).run

    assert msgspec.json.encode(one.events) == msgspec.json.encode(other.events)


def test_no_order_of_hashes_shows_in_what_is_told() -> None:
    told = {_transcript(hash_seed) for hash_seed in ("0", "1", "4711")}

    assert len(told) == 1
    assert b"rollout.ended" in told.pop()


def _transcript(hash_seed: str) -> bytes:
    command = [sys.executable, "-m", "tests.fakes.rollout_transcript"]
    paths = f"{ROOT}:{ROOT / 'src'}"
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": paths}
    run = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
    return run.stdout


@every_case
@given(cases(most=2))
def test_faults_cost_time_and_never_order(case: Case) -> None:
    calm, rough = Stage(case.without_faults), Stage(case)
    plan = case.plan()

    quick = calm.roll_out(plan).run
    slow = rough.roll_out(plan).run

    assert slow.states == quick.states
    assert rough.objects() == calm.objects()
    assert _passed_by_unit(plan, slow) == _passed_by_unit(plan, quick)
    assert_record_in_order(plan, rough.record)


def _passed_by_unit(plan: Plan, run: Run) -> dict[str, list[str]]:
    units = {step.id: step.unit for step in plan.steps}
    passed: dict[str, list[str]] = {unit.name: [] for unit in plan.units}
    for event in run.told(Told.STEP_PASSED):
        passed[units[event.step]].append(event.step)
    return passed


@every_case
@given(cases(most=2, fates=WELL))
def test_an_update_waits_for_the_new_generation_of_what_comes_before(case: Case) -> None:
    stage, newer = Stage(case), case.plan(image="app:2")
    stage.roll_out(case.plan())

    run = stage.roll_out(newer).run

    assert run.result == "passed"
    assert_record_in_order(newer, stage.record, image="app:2")


@every_case
@given(cases(most=2, fates=WELL))
def test_a_second_run_finds_nothing_to_write(case: Case) -> None:
    stage, plan = Stage(case), case.plan()
    stage.roll_out(plan)
    before = len(stage.realm.landed)

    run = stage.roll_out(plan).run

    assert run.result == "passed"
    assert not run.told(Told.OBJECT_WRITTEN)
    assert len(stage.realm.landed) == before


def assert_events_in_order(plan: Plan, run: Run) -> None:
    """No step is applied before all before it have passed."""
    passed: set[str] = set()
    before: dict[str, set[str]] = {step.id: set() for step in plan.steps}
    for edge in plan.edges:
        before[edge.after].add(edge.before)
    for event in run.events:
        if event.told is Told.STEP_PASSED:
            passed.add(event.step)
        elif event.told in (Told.STEP_APPLYING, Told.OBJECT_WRITTEN):
            assert before[event.step] <= passed, event
