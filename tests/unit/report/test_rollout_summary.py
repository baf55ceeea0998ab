"""The report at the end of a rollout: a summary, how to resume, or why it failed."""

from __future__ import annotations

from collections.abc import Iterable

from tests.support.recorded_wording import RecordedWording
from tests.unit.report.rollout_events import (
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
from tidegate.planning.refusals import preflight_findings
from tidegate.report.rollout.explain import explain_failure
from tidegate.report.rollout.summary import NextCommands, killed_message, stopped_rows, summary_rows
from tidegate.report.styled_text import Row, plain_text

WEB, LATE = a_ref("web"), a_ref("late")
ONE, TWO = a_step("wave 1", WEB), a_step("wave 2", LATE)
POD = Ref(Kind("", "v1", "Pod"), "default", "web-1")
AGAIN = NextCommands(repeat="tidegate sync shop", kubectl="kubectl --context prod")


def read_result(*events: Event) -> RolloutProgress:
    progress = course_of(ONE, TWO)
    for event in events:
        progress.add_event(event)
    return progress


def a_failure(
    message: str = "Deployment default/web: it crashed", ref: Ref | None = WEB
) -> RolloutProgress:
    return read_result(
        *applied(ONE, 0),
        failed(ONE, 3_000, message, ref),
        Event(Ms(3_000), EventType.STEP_SKIPPED, TWO.id),
        ended(3_000, "failed"),
    )


def text_of(rows: Iterable[Row]) -> list[str]:
    return [plain_text(row) for row in rows]


def test_a_rollout_that_passed_counts_what_it_did(wording: RecordedWording) -> None:
    progress = read_result(
        *applied(ONE, 0),
        *passed(ONE, 10),
        *applied(TWO, 10, EventType.OBJECT_UNCHANGED),
        *passed(TWO, 2_000),
        ended(2_000),
    )

    wording(text_of(summary_rows(progress)))


def test_an_object_that_is_written_twice_counts_once(wording: RecordedWording) -> None:
    progress = read_result(
        *applied(ONE, 0), *applied(ONE, 10), *applied(ONE, 20, EventType.OBJECT_UNCHANGED)
    )
    progress.add_event(ended(30))

    wording(text_of(summary_rows(progress)))


def test_gates_that_were_not_proven_are_named(wording: RecordedWording) -> None:
    unproven = Event(Ms(5), EventType.GATE_UNPROVEN, ONE.id, WEB, "NoNewerStatus", "old status")

    progress = read_result(*applied(ONE, 0), unproven, *passed(ONE, 5), ended(5))

    wording(text_of(summary_rows(progress))[1:])


def test_a_stopped_rollout_reports_what_it_applied_and_how_to_resume(
    wording: RecordedWording,
) -> None:
    progress = read_result(
        *applied(ONE, 0), *passed(ONE, 10), ended(4_000, "stopped", "interrupted")
    )

    wording(text_of([*summary_rows(progress), *stopped_rows(progress, AGAIN)]))


def test_a_killed_rollout_is_not_finished_and_can_be_resumed(wording: RecordedWording) -> None:
    wording(killed_message(AGAIN))


def test_a_rollout_in_a_deleted_cluster_starts_again_instead_of_resuming(
    wording: RecordedWording,
) -> None:
    commands = NextCommands(repeat="tidegate sync shop --sandbox", can_resume=False)

    wording(text_of(stopped_rows(a_failure(), commands)))
    wording(text_of(explain_failure(a_failure(), commands=commands))[-1:])


def test_a_failure_shows_reason_log_events_applied_objects_skipped_steps_and_next_commands(
    wording: RecordedWording,
) -> None:
    container = ContainerFailure(
        name="app", reason="Error", message="no database", exit_code=1, log=("dialling", "gave up")
    )
    evidence = Evidence(
        ref=WEB,
        pods=(PodFailure(ref=POD, phase="Failed", containers=(container,)),),
        events=(KubeEvent(subject="Pod web-1", reason="BackOff", message="restarting", count=3),),
    )

    wording(text_of(explain_failure(a_failure(), [evidence], commands=AGAIN)))


def test_pods_with_the_same_failure_are_shown_once(wording: RecordedWording) -> None:
    container = ContainerFailure(name="app", reason="Error", exit_code=1)
    other = Ref(POD.kind, "default", "web-2")
    pods = tuple(PodFailure(ref=ref, containers=(container,)) for ref in (POD, other))

    shown = text_of(explain_failure(a_failure(), [Evidence(ref=WEB, pods=pods)]))

    wording(shown[1])
    assert "default/web-2" not in "".join(shown)


def test_a_pod_without_failed_containers_is_shown_with_its_own_status(
    wording: RecordedWording,
) -> None:
    pod = PodFailure(ref=POD, phase="Pending", reason="Unschedulable", message="no node is free")

    shown = text_of(explain_failure(a_failure(), [Evidence(ref=WEB, pods=(pod,))]))

    wording(shown[1:4])


def test_a_missing_object_is_shown_with_its_producer_and_the_step_of_that(
    wording: RecordedWording,
) -> None:
    login = Ref(Kind("", "v1", "Secret"), "default", "login")
    settings = Ref(Kind("", "v1", "ConfigMap"), "default", "settings")
    missing = (
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

    shown = text_of(explain_failure(a_failure(), [Evidence(ref=WEB, missing=missing)]))

    wording(shown[1:5])


def test_a_kind_without_an_operator_is_the_first_reason() -> None:
    pod = PodFailure(ref=POD, phase="Pending")
    evidence = Evidence(ref=WEB, pods=(pod,), not_served_reason="not served")

    shown = text_of(explain_failure(a_failure(), [evidence]))

    assert shown[1].endswith(" not served")


def test_a_failure_without_evidence_is_still_shown(wording: RecordedWording) -> None:
    progress = a_failure("reason unknown", None)

    assert failing_objects(progress) == []
    wording(text_of(explain_failure(progress))[0])


def test_objects_that_the_cluster_would_refuse_are_listed_before_the_first_write(
    wording: RecordedWording,
) -> None:
    refused = Event(Ms(0), EventType.OBJECT_REFUSED, TWO.id, LATE, "NotServed", "unknown kind")

    progress = read_result(refused, ended(0, "invalid"))
    unserved = Evidence(ref=LATE, not_served_reason="not served")
    shown = text_of(explain_failure(progress, [unserved]))

    assert refused_objects(progress) == [ClusterRef("", LATE)]
    wording(shown[0])
    (fault,) = preflight_findings(progress, [unserved])
    assert fault.message == "Deployment default/late: unknown kind"
    assert fault.reason == "not served"


def test_several_faults_of_one_object_count_as_one(wording: RecordedWording) -> None:
    faults = ("spec.replicas: -1", "spec.paused: expected boolean")
    refused = [
        Event(Ms(0), EventType.OBJECT_REFUSED, TWO.id, LATE, "Invalid", fault) for fault in faults
    ]

    progress = read_result(*refused, ended(0, "invalid"))

    wording(text_of(explain_failure(progress))[0])
    assert len(preflight_findings(progress, ())) == 2
