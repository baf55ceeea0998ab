"""A cluster that stops answering at any moment, for good or for a while: every rollout ends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.cluster_history import assert_counted, assert_record_in_order
from tests.support.killable_processes import Absence
from tests.support.random_fleets import Fleet, fleets, hook_runs
from tests.support.rollout_cases import WELL, Case, cases, shared_by
from tests.support.rollout_stages import PATIENCE, ProcessOptions, Stage, finished
from tidegate.engine.driver import SILENT_STOP_LIMIT
from tidegate.model.rollouts.event import EventType
from tidegate.model.times import MINUTE, SECOND, Ms
from tidegate.sandbox.world import START

pytestmark = pytest.mark.timeout(PATIENCE)
calm = cases(fates=WELL, faulty=False, most=2)
moments = st.integers(0, 15_000)
ways = st.sampled_from(["cut", "silent"])
FOR_GOOD = 100_000
PATIENT = Ms(2 * MINUTE)
NOTICE = Ms(10 * SECOND)


@shared_by(4)
@given(calm, moments, ways)
def test_a_rollout_whose_cluster_never_answers_again_ends_and_is_resumed(
    case: Case, at: int, way: str
) -> None:
    plan, stage = case.plan(), Stage(case)
    left = stage.actor(plan, ProcessOptions(patience=PATIENT))
    stage.play(left, happenings=Absence(at, FOR_GOOD, way).happenings(left.life))

    run = stage.roll_out(plan, ProcessOptions(holder="two")).run

    assert left.run.result == "passed" or left.driver.is_unreachable
    assert left.run.events[-1].at <= max(START + at + PATIENT + NOTICE, left.run.events[0].at)
    assert run.result == "passed"
    assert stage.objects() == finished(plan)
    assert_record_in_order(plan, stage.record)
    assert_counted(stage.record)


@shared_by(4)
@given(calm, moments, ways, st.integers(0, 60_000))
def test_a_stop_ends_a_rollout_whatever_is_in_flight(
    case: Case, at: int, way: str, after: int
) -> None:
    plan, stage = case.plan(), Stage(case)
    actor, stop = stage.actor(plan), Ms(START + at + after)
    away = Absence(at, FOR_GOOD, way).happenings(actor.life)

    stage.play(actor, happenings=[*away, (stop, lambda: actor.driver.stop("enough"))])

    (last,) = actor.run.events_of(EventType.ROLLOUT_FINISHED)
    assert actor.run.result in {"passed", "stopped"}
    assert last.at <= stop + SILENT_STOP_LIMIT + SECOND
    assert_record_in_order(plan, stage.record)


@shared_by(4)
@given(calm, moments, ways, st.integers(1, 100))
def test_a_rollout_continues_when_its_cluster_answers_again(
    case: Case, at: int, way: str, seconds: int
) -> None:
    plan, stage = case.plan(), Stage(case)
    actor = stage.actor(plan, ProcessOptions(patience=PATIENT))

    stage.play(actor, happenings=Absence(at, seconds, way).happenings(actor.life))

    assert actor.run.result == "passed"
    assert stage.objects() == finished(plan)
    assert_record_in_order(plan, stage.record)


@shared_by(10)
@given(fleets(), moments, ways)
def test_a_fleet_whose_clusters_never_answer_again_is_finished_by_another_process(
    fleet: Fleet, at: int, way: str
) -> None:
    stage = fleet.stage()
    left = stage.actor(fleet.plan(), ProcessOptions(patience=PATIENT))
    happenings = [*fleet.strangers(stage), *Absence(at, FOR_GOOD, way).happenings(left.life)]
    stage.play(left, happenings=happenings)

    run = stage.roll_out(fleet.plan(), ProcessOptions(holder="two")).run

    assert run.result == "passed"
    assert_record_in_order(fleet.whole(), stage.record)
    assert set(hook_runs(stage.record).values()) <= {1}
