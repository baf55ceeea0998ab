"""Failures that random rollouts found, each as small as it could be made."""

from __future__ import annotations

from dataclasses import replace

from tests.support.builders import (
    annotate,
    make_config_map,
    make_deployment,
    make_object,
    make_plan_from,
)
from tests.support.cluster_history import assert_counted
from tests.support.killable_processes import Absence
from tests.support.recorded_wording import RecordedWording
from tests.support.rollout_cases import Case, Shape, down
from tests.support.rollout_stages import NOTHING, ProcessOptions, Stage, finished
from tidegate.model.plans.plan import Plan
from tidegate.model.rollouts.event import EventType
from tidegate.model.times import Ms
from tidegate.sandbox.faults import ERROR, CallFault, FaultSelector, Frequency, Rejection
from tidegate.world.messages import WatchEventType

CONFIG = Shape("ConfigMap", 0, 0, "well")
SERVER = Shape("Deployment", 900, 0, "well")
SICK = Shape("Deployment", 0, 4_000, "well")
BRIEF = Shape("Fleeting", 900, 0, "well")
SLOW = Shape("Fleeting", 7_000, 0, "well")
TWO_UNITS = Case((((CONFIG,),), ((CONFIG,),)), ((), ()))


def a_case(*waves: tuple[Shape, ...]) -> Case:
    return Case((waves,), ((),))


def times_made(stage: Stage, name: str) -> int:
    """How often an object was created."""
    made = [event for event in stage.record.changes if event.change is WatchEventType.ADDED]
    return sum(event.stored.ref.name == name for event in made)


def test_a_lease_that_runs_out_does_not_take_along_the_journal_of_another_unit() -> None:
    case = replace(TWO_UNITS, faults=(down(Ms(45), 10),))

    run = Stage(case).roll_out(case.plan()).run

    assert run.result == "passed"


def test_a_rollout_is_over_only_when_its_journal_is_written() -> None:
    case = replace(TWO_UNITS, faults=(down(Ms(57), 2),))
    stage = Stage(case)
    stage.roll_out(case.plan())
    before = len(stage.realm.landed)

    stage.roll_out(case.plan())

    assert len(stage.realm.landed) == before


def test_a_server_that_refuses_the_journal_for_a_while_costs_time() -> None:
    secrets = CallFault(
        Rejection(ERROR),
        FaultSelector(kind="Secret", verbs=("create", "replace")),
        Frequency(times=7),
    )
    case = replace(TWO_UNITS, faults=(secrets,))

    run = Stage(case).roll_out(case.plan()).run

    assert run.result == "passed"


def test_a_rollout_that_is_stopped_before_it_began_has_stopped() -> None:
    stage = Stage(TWO_UNITS)

    stopped = stage.roll_out(
        TWO_UNITS.plan(), ProcessOptions(calls={9: lambda item: item.stop("enough")})
    )
    after = stage.realm.now()
    next_one = stage.roll_out(TWO_UNITS.plan(), ProcessOptions(holder="two"))

    assert stopped.run.result == "stopped"
    assert not stopped.run.events_of(EventType.ROLLOUT_STARTED)
    assert next_one.run.result == "passed"
    assert stage.realm.now() - after < 1_000


def test_a_newer_plan_before_the_start_replaces_the_plan() -> None:
    stage, newer = Stage(TWO_UNITS), TWO_UNITS.plan(image="app:2")

    part = ProcessOptions(calls={3: lambda item: item.supersede(newer)})
    run = stage.roll_out(TWO_UNITS.plan(), part).run

    assert [event.reason for event in run.events_of(EventType.ROLLOUT_STARTED)] == [newer.digest]
    assert stage.objects() == finished(newer)


def superseded(stage: Stage, older: Plan, newer: Plan) -> list[EventType]:
    """The events of objects when a plan takes over from one whose gate still waits."""
    part = ProcessOptions(answers={EventType.STEP_GATING: lambda item: item.supersede(newer)})
    run = stage.roll_out(older, part).run
    assert run.result == "passed"
    assert run.events_of(EventType.ROLLOUT_SUPERSEDED)
    kinds = (EventType.OBJECT_WRITTEN, EventType.OBJECT_UNCHANGED)
    return [
        event.type for event in run.events_of(*kinds) if event.ref and event.ref.name == "u-more"
    ]


def test_an_object_of_a_kind_that_is_watched_already_is_seen() -> None:
    stage, slow = Stage(NOTHING), annotate(make_deployment("u-slow"), after="9000")
    more = make_deployment("u-more")
    stage.roll_out(make_plan_from(more))

    result = superseded(stage, make_plan_from(slow), make_plan_from(slow, more))

    assert result == [EventType.OBJECT_UNCHANGED]


def test_an_object_in_a_namespace_that_is_not_watched_yet_is_seen() -> None:
    stage, slow = Stage(NOTHING), annotate(make_deployment("u-slow"), after="9000")
    stage.realm.preload([make_object("v1 Namespace", "other", namespace="")])
    spec = make_deployment("u-more")["spec"]
    more = make_object("apps/v1 Deployment", "u-more", namespace="other", spec=spec)

    result = superseded(stage, make_plan_from(slow), make_plan_from(slow, more))

    assert result == [EventType.OBJECT_WRITTEN]


def test_the_journal_names_objects_of_a_newer_plan_before_they_are_there() -> None:
    stage, slow = Stage(NOTHING), annotate(make_deployment("u-slow"), after="9000")
    newer = make_plan_from(slow, make_config_map("u-more"))

    superseded(stage, make_plan_from(slow), newer)

    assert_counted(stage.record)


def test_a_newer_plan_after_the_end_is_ignored() -> None:
    taken: list[bool] = []
    stage, newer = Stage(TWO_UNITS), TWO_UNITS.plan(image="app:2")

    def ask_each_turn(turn: int) -> ProcessOptions:
        return ProcessOptions(calls={turn: lambda item: taken.append(item.supersede(newer))})

    turns = stage.roll_out(TWO_UNITS.plan()).life.turns
    for turn in range(1, turns):
        Stage(TWO_UNITS).roll_out(TWO_UNITS.plan(), ask_each_turn(turn))

    assert taken[0]
    assert not taken[-1]


def test_a_gate_does_not_fail_of_what_was_true_before_the_connection_broke() -> None:
    case = a_case((SICK,))
    stage = Stage(case)
    actor = stage.actor(case.plan())

    stage.play(actor, happenings=Absence(200, 12, "cut").happenings(actor.life))

    assert actor.run.result == "passed"


def test_a_disconnected_rollout_does_not_undo_a_newer_plan(
    wording: RecordedWording,
) -> None:
    case = a_case((SERVER,), (CONFIG,))
    stage, newer = Stage(case), case.plan(image="app:2")
    first = stage.actor(case.plan())
    second = stage.actor(newer, ProcessOptions(holder="two", begins=6_000))

    stage.play(first, second, happenings=Absence(400, 36, "cut").happenings(first.life))

    last = first.run.events[-1]
    assert (first.life.error, last.type, last.reason) == (
        None,
        EventType.ROLLOUT_FINISHED,
        "stopped",
    )
    wording(last.message)
    assert stage.objects() == finished(newer)


def test_a_job_that_another_rollout_finished_is_not_run_again() -> None:
    case = a_case((SERVER,), (BRIEF,))
    stage = Stage(case)
    first = stage.actor(case.plan())
    second = stage.actor(case.plan(), ProcessOptions(holder="two", begins=100))

    stage.play(first, second, happenings=Absence(100, 10, "cut").happenings(first.life))

    assert (first.run.result, second.run.result) == ("passed", "passed")
    assert times_made(stage, "u0-w1-0") == 1


def test_two_jobs_at_once_that_another_rollout_finished_are_not_run_again() -> None:
    case = a_case((SLOW, SLOW), (SLOW, SLOW))
    stage = Stage(case)
    first = stage.actor(case.plan())
    second = stage.actor(case.plan(), ProcessOptions(holder="two", begins=5_000))

    stage.play(first, second, happenings=Absence(8_000, 18, "cut").happenings(first.life))

    # Once by each: an end that no process observed is not known.
    assert times_made(stage, "u0-w1-0") == 2
    assert times_made(stage, "u0-w1-1") == 2


def test_a_frozen_process_checks_its_lease_before_it_writes() -> None:
    case = a_case((SERVER,), (CONFIG,))
    stage, newer = Stage(case), case.plan(image="app:2")
    first = stage.actor(case.plan())
    second = stage.actor(newer, ProcessOptions(holder="two", begins=300))

    stage.play(first, second, happenings=Absence(200, 40, "frozen").happenings(first.life))

    assert stage.objects() == finished(newer)


def test_a_job_finished_by_another_rollout_is_not_run_again() -> None:
    case = a_case((Shape("Fleeting", 0, 4_000, "well"),))
    stage = Stage(case)
    first = stage.actor(case.plan())
    second = stage.actor(case.plan(), ProcessOptions(holder="two", begins=100))

    stage.play(first, second, happenings=Absence(100, 33, "cut").happenings(first.life))

    assert (first.run.result, second.run.result) == ("passed", "passed")
    # Once by each: an end that no process observed is not known.
    assert times_made(stage, "u0-w0-0") == 2
