"""What is said at the end: a summary, how to go on, or why it failed."""

from __future__ import annotations

from collections.abc import Iterable

from tests.unit.report.telling import (
    a_ref,
    a_step,
    applied,
    course_of,
    ended,
    failed,
    passed,
)
from tidegate.model.k8s.objects import ClusterRef, Kind, Ref
from tidegate.model.rollouts.causes import failing_objects, refused_objects
from tidegate.model.rollouts.event import Event, EventType
from tidegate.model.rollouts.evidence import (
    ContainerFailure,
    Evidence,
    KubeEvent,
    MissingRef,
    PodFailure,
    ProducerRef,
    StepRelation,
)
from tidegate.model.rollouts.rollout_progress import RolloutProgress
from tidegate.model.times import Ms
from tidegate.planning.dry_run import preflight_findings
from tidegate.report.rollout.explain import explain_failure
from tidegate.report.rollout.summary import NextCommands, killed_message, stopped_rows, summary_rows
from tidegate.report.styled_text import Row, plain_text

WEB, LATE = a_ref("web"), a_ref("late")
ONE, TWO = a_step("wave 1", WEB), a_step("wave 2", LATE)
POD = Ref(Kind("", "v1", "Pod"), "default", "web-1")
AGAIN = NextCommands(repeat="tidegate sync shop", kubectl="kubectl --context prod")


def read_result(*events: Event) -> RolloutProgress:
    course = course_of(ONE, TWO)
    for event in events:
        course.add_event(event)
    return course


def a_failure(
    sentence: str = "Deployment default/web: it crashed", ref: Ref | None = WEB
) -> RolloutProgress:
    return read_result(
        *applied(ONE, 0),
        failed(ONE, 3_000, sentence, ref),
        Event(Ms(3_000), EventType.STEP_SKIPPED, TWO.id),
        ended(3_000, "failed"),
    )


def text_of(rows: Iterable[Row]) -> list[str]:
    return [plain_text(row) for row in rows]


def test_a_rollout_that_passed_counts_what_it_did() -> None:
    course = read_result(
        *applied(ONE, 0),
        *passed(ONE, 10),
        *applied(TWO, 10, EventType.OBJECT_UNCHANGED),
        *passed(TWO, 2_000),
        ended(2_000),
    )

    assert text_of(summary_rows(course)) == ["✓ passed in 2.0s: 1 written, 1 unchanged"]


def test_an_object_that_is_written_twice_counts_once() -> None:
    course = read_result(
        *applied(ONE, 0), *applied(ONE, 10), *applied(ONE, 20, EventType.OBJECT_UNCHANGED)
    )
    course.add_event(ended(30))

    assert text_of(summary_rows(course)) == ["✓ passed in 0.0s: 1 written"]


def test_gates_that_were_not_proven_are_named() -> None:
    doubt = Event(Ms(5), EventType.GATE_UNPROVEN, ONE.id, WEB, "NoNewerStatus", "its status is old")

    course = read_result(*applied(ONE, 0), doubt, *passed(ONE, 5), ended(5))

    assert text_of(summary_rows(course))[1:] == [
        "  not proven: Deployment default/web: its status is old"
    ]


def test_a_rollout_that_was_stopped_says_what_it_leaves_and_how_to_go_on() -> None:
    course = read_result(*applied(ONE, 0), *passed(ONE, 10), ended(4_000, "stopped", "interrupted"))

    assert text_of([*summary_rows(course), *stopped_rows(course, AGAIN)]) == [
        "- stopped after 4.0s (interrupted): 1 of 2 steps passed",
        "  applied 1 of 2 objects; they stay as they are",
        "  go on with:  tidegate sync shop",
    ]


def test_a_rollout_that_was_stopped_at_once_is_not_finished_and_can_be_gone_on_with() -> None:
    assert killed_message(AGAIN) == (
        "stopped at once: what was under way is not finished; go on with:  tidegate sync shop"
    )


def test_a_cluster_that_is_gone_is_not_gone_on_with() -> None:
    commands = NextCommands(repeat="tidegate sync shop --sandbox", can_resume=False)

    shown = text_of(
        [*stopped_rows(a_failure(), commands), *explain_failure(a_failure(), commands=commands)]
    )

    assert "  begin again with:  tidegate sync shop --sandbox" in shown
    assert "  next     tidegate sync shop --sandbox" in shown


def test_a_failure_tells_what_why_what_is_there_what_is_not_and_what_to_type() -> None:
    container = ContainerFailure(
        name="app", reason="Error", message="no database", exit_code=1, log=("dialling", "gave up")
    )
    evidence = Evidence(
        ref=WEB,
        pods=(PodFailure(ref=POD, phase="Failed", containers=(container,)),),
        events=(KubeEvent(subject="Pod web-1", reason="BackOff", message="restarting", count=3),),
    )

    shown = text_of(explain_failure(a_failure(), [evidence], commands=AGAIN))

    assert shown == [
        "✗ wave 1 failed after 3.0s: Deployment default/web: it crashed",
        "  why      Pod default/web-1: container app: Error, exit code 1",
        "           no database",
        "  log      dialling",
        "           gave up",
        "  events   BackOff: restarting (3 times)",
        "  applied  1 object (1 written)",
        "           Deployment default/web",
        "  not yet  wave 2: Deployment default/late",
        "  next     kubectl --context prod -n default describe deployment web",
        "           tidegate sync shop   # goes on where this ended",
    ]


def test_pods_that_end_alike_are_told_once() -> None:
    container = ContainerFailure(name="app", reason="Error", exit_code=1)
    other = Ref(POD.kind, "default", "web-2")
    pods = tuple(PodFailure(ref=ref, containers=(container,)) for ref in (POD, other))

    shown = text_of(explain_failure(a_failure(), [Evidence(ref=WEB, pods=pods)]))

    assert (
        "  why      Pod default/web-1 (and 1 pod more): container app: Error, exit code 1" in shown
    )


def test_a_pod_whose_containers_say_nothing_speaks_for_itself() -> None:
    pod = PodFailure(ref=POD, phase="Pending", reason="Unschedulable", message="no node is free")

    shown = text_of(explain_failure(a_failure(), [Evidence(ref=WEB, pods=(pod,))]))

    assert shown[1:4] == [
        "  why      Pod default/web-1: Pending",
        "           Unschedulable",
        "           no node is free",
    ]


def test_what_is_missing_is_told_with_who_would_make_it_and_where_that_stands() -> None:
    login = Ref(Kind("", "v1", "Secret"), "default", "login")
    settings = Ref(Kind("", "v1", "ConfigMap"), "default", "settings")
    lacks = (
        MissingRef(
            ref=login, producers=(ProducerRef(ref=LATE, step=TWO.id, relation=StepRelation.AFTER),)
        ),
        MissingRef(
            ref=settings,
            producers=(ProducerRef(ref=settings, step=ONE.id, relation=StepRelation.SAME_STEP),),
        ),
        MissingRef(ref=POD),
        MissingRef(
            ref=login, producers=(ProducerRef(ref=WEB, step=ONE.id, relation=StepRelation.BEFORE),)
        ),
    )

    shown = text_of(explain_failure(a_failure(), [Evidence(ref=WEB, missing=lacks)]))

    behind = "Deployment default/late would make it, in wave 2, behind this step"
    before = "Deployment default/web has not made it, in wave 1, before this step"
    assert shown[1:5] == [
        f"  why      Secret default/login is not there; {behind}",
        "           ConfigMap default/settings is not there; the plan brings it, in this same step",
        "           Pod default/web-1 is not there, and nothing in the plan makes it",
        f"           Secret default/login is not there; {before}",
    ]


def test_a_kind_that_nobody_serves_is_told_before_everything_else() -> None:
    pod = PodFailure(ref=POD, phase="Pending")
    evidence = Evidence(ref=WEB, pods=(pod,), not_served_reason="no operator for Deployment")

    shown = text_of(explain_failure(a_failure(), [evidence]))

    assert shown[1] == "  why      no operator for Deployment"


def test_a_failure_without_evidence_is_still_told() -> None:
    course = a_failure("nobody knows why", None)

    assert failing_objects(course) == []
    assert text_of(explain_failure(course))[0] == "✗ wave 1 failed after 3.0s: nobody knows why"


def test_what_the_cluster_would_refuse_is_listed_before_anything_is_written() -> None:
    refused = Event(Ms(0), EventType.OBJECT_REFUSED, TWO.id, LATE, "NotServed", "nobody knows it")

    course = read_result(refused, ended(0, "invalid"))
    unserved = Evidence(ref=LATE, not_served_reason="no operator for Deployment")
    shown = text_of(explain_failure(course, [unserved]))

    assert refused_objects(course) == [ClusterRef("", LATE)]
    assert shown[0] == "✗ nothing was written: the cluster would refuse 1 object"
    (fault,) = preflight_findings(course, [unserved])
    assert fault.message == "Deployment default/late: nobody knows it"
    assert fault.reason == "no operator for Deployment"


def test_several_faults_of_one_object_count_as_one() -> None:
    faults = ("spec.replicas: -1", "spec.paused: expected boolean")
    refused = [
        Event(Ms(0), EventType.OBJECT_REFUSED, TWO.id, LATE, "Invalid", fault) for fault in faults
    ]

    course = read_result(*refused, ended(0, "invalid"))

    assert text_of(explain_failure(course))[0].endswith("would refuse 1 object")
    assert len(preflight_findings(course, ())) == 2
