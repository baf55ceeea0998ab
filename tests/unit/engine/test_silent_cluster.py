"""A cluster that stops answering, for a while or for good."""

from __future__ import annotations

import pytest

from tests.support.cluster_history import assert_record_in_order
from tests.support.killable_processes import Absence, Happening
from tests.support.rollout_cases import Case, Shape
from tests.support.rollout_stages import Actor, ProcessOptions, Stage, finished
from tidegate.engine.driver import SILENT_STOP_LIMIT
from tidegate.model.rollouts.event import EventType
from tidegate.model.times import MINUTE, SECOND, Ms
from tidegate.sandbox.world import START

SLOW = Shape("Deployment", 15_000, 0, "well")
CONFIG = Shape("ConfigMap", 0, 0, "well")
WAITS = Case((((SLOW,), (CONFIG,)),), ((),))
"""Fifteen seconds between its two writes."""
LOST = 7 * SECOND
FOR_GOOD = 100_000
NOTICE = Ms(10 * SECOND)
WAYS = pytest.mark.parametrize("way", ["cut", "silent"])


def away(actor: Actor, way: str, seconds: int = FOR_GOOD, at: int = LOST) -> list[Happening]:
    return Absence(at, seconds, way).happenings(actor.life)


@WAYS
def test_a_rollout_reports_within_ten_seconds_that_its_cluster_does_not_answer(way: str) -> None:
    stage = Stage(WAITS)
    actor = stage.actor(WAITS.plan(), ProcessOptions(patience=MINUTE))

    stage.play(actor, happenings=away(actor, way))

    (waiting,) = actor.run.events_of(EventType.CLUSTER_WAITING)
    assert START + LOST < waiting.at <= START + LOST + NOTICE


@WAYS
def test_a_stopped_rollout_ends_although_its_cluster_does_not_answer(way: str) -> None:
    stage, stop = Stage(WAITS), Ms(START + MINUTE)
    actor = stage.actor(WAITS.plan())
    happenings = [*away(actor, way), (stop, lambda: actor.driver.stop("enough"))]

    stage.play(actor, happenings=happenings)

    (last,) = actor.run.events_of(EventType.ROLLOUT_FINISHED)
    assert (actor.run.result, last.reason) == ("stopped", "stopped")
    assert last.at <= stop + SILENT_STOP_LIMIT + SECOND


@WAYS
def test_a_rollout_ends_when_its_patience_with_the_cluster_is_over(way: str) -> None:
    stage = Stage(WAITS)
    actor = stage.actor(WAITS.plan(), ProcessOptions(patience=Ms(5 * MINUTE)))

    stage.play(actor, happenings=away(actor, way))

    (last,) = actor.run.events_of(EventType.ROLLOUT_FINISHED)
    assert actor.driver.is_unreachable
    assert START + LOST + 5 * MINUTE <= last.at <= START + LOST + 5 * MINUTE + NOTICE


@WAYS
@pytest.mark.parametrize("seconds", [30, 150, 600])
@pytest.mark.parametrize("at", [0, 20, LOST])
def test_a_rollout_continues_when_its_cluster_answers_again(
    way: str, seconds: int, at: int
) -> None:
    stage, plan = Stage(WAITS), WAITS.plan()
    actor = stage.actor(plan, ProcessOptions(patience=Ms(15 * MINUTE)))

    stage.play(actor, happenings=away(actor, way, seconds, at))

    assert actor.run.result == "passed"
    assert stage.objects() == finished(plan)
    assert_record_in_order(plan, stage.record)
    (waiting,) = actor.run.events_of(EventType.CLUSTER_WAITING)
    (answered,) = actor.run.events_of(EventType.CLUSTER_ANSWERED)
    assert waiting.at < START + seconds * SECOND + at <= answered.at


@WAYS
def test_the_next_run_resumes_what_was_cut_off(way: str) -> None:
    stage, plan = Stage(WAITS), WAITS.plan()
    cut_off = stage.actor(plan, ProcessOptions(patience=MINUTE))
    stage.play(cut_off, happenings=away(cut_off, way))

    run = stage.roll_out(plan, ProcessOptions(holder="two")).run

    assert run.result == "passed"
    assert stage.objects() == finished(plan)
    assert_record_in_order(plan, stage.record)


def test_a_write_without_an_answer_is_reported_as_unknown() -> None:
    stage = Stage(WAITS)
    actor = stage.actor(WAITS.plan(), ProcessOptions(patience=MINUTE))

    def lose_the_write() -> None:
        if actor.run.events_of(EventType.STEP_APPLYING):
            actor.life.world.silence()

    moments = [(Ms(START + at), lose_the_write) for at in range(200)]
    stage.play(actor, happenings=moments)

    (unknown,) = actor.run.events_of(EventType.OBJECT_UNKNOWN)
    assert (unknown.ref and unknown.ref.name, unknown.reason) == ("u0-w0-0", "NoResponse")
    assert not actor.run.events_of(EventType.OBJECT_WRITTEN)
