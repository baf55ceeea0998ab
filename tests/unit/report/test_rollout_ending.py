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
from tidegate.model.event import Event, Told
from tidegate.model.moment import Ms
from tidegate.model.objects import Kind, Ref, Spot
from tidegate.report.refusals import faults_of_rollout
from tidegate.report.rollout.course import Course
from tidegate.report.rollout.evidence import (
    Comes,
    ContainerEnd,
    Evidence,
    KubeEvent,
    Lack,
    Maker,
    PodEnd,
)
from tidegate.report.rollout.failure import explain_failure, failing_spots, refused_spots
from tidegate.report.rollout.rows import Row, plain
from tidegate.report.rollout.summary import Commands, cut_off, go_on, summarize

WEB, LATE = a_ref("web"), a_ref("late")
ONE, TWO = a_step("wave 1", WEB), a_step("wave 2", LATE)
POD = Ref(Kind("", "v1", "Pod"), "default", "web-1")
AGAIN = Commands(again="tidegate sync shop", kubectl="kubectl --context prod")


def told(*events: Event) -> Course:
    course = course_of(ONE, TWO)
    for event in events:
        course.take(event)
    return course


def a_failure(sentence: str = "Deployment default/web: it crashed") -> Course:
    return told(
        *applied(ONE, 0),
        failed(ONE, 3_000, sentence),
        Event(Ms(3_000), Told.STEP_SKIPPED, TWO.id),
        ended(3_000, "failed"),
    )


def text_of(rows: Iterable[Row]) -> list[str]:
    return [plain(row) for row in rows]


def test_a_rollout_that_passed_counts_what_it_did() -> None:
    course = told(
        *applied(ONE, 0),
        *passed(ONE, 10),
        *applied(TWO, 10, Told.OBJECT_UNCHANGED),
        *passed(TWO, 2_000),
        ended(2_000),
    )

    assert text_of(summarize(course)) == ["✓ passed in 2.0s: 1 written, 1 unchanged"]


def test_an_object_that_is_written_twice_counts_once() -> None:
    course = told(*applied(ONE, 0), *applied(ONE, 10), *applied(ONE, 20, Told.OBJECT_UNCHANGED))
    course.take(ended(30))

    assert text_of(summarize(course)) == ["✓ passed in 0.0s: 1 written"]


def test_gates_that_were_not_proven_are_named() -> None:
    doubt = Event(Ms(5), Told.GATE_UNPROVEN, ONE.id, WEB, "NoNewerStatus", "its status is old")

    course = told(*applied(ONE, 0), doubt, *passed(ONE, 5), ended(5))

    assert text_of(summarize(course))[1:] == [
        "  not proven: Deployment default/web: its status is old"
    ]


def test_a_rollout_that_was_stopped_says_what_it_leaves_and_how_to_go_on() -> None:
    course = told(*applied(ONE, 0), *passed(ONE, 10), ended(4_000, "stopped", "interrupted"))

    assert text_of([*summarize(course), *go_on(course, AGAIN)]) == [
        "- stopped after 4.0s (interrupted): 1 of 2 steps passed",
        "  applied 1 of 2 objects; they stay as they are",
        "  go on with:  tidegate sync shop",
    ]


def test_a_rollout_that_was_stopped_at_once_is_not_finished_and_can_be_gone_on_with() -> None:
    assert cut_off(AGAIN) == (
        "stopped at once: what was under way is not finished; go on with:  tidegate sync shop"
    )


def test_a_cluster_that_is_gone_is_not_gone_on_with() -> None:
    commands = Commands(again="tidegate sync shop --sandbox", resumes=False)

    shown = text_of(
        [*go_on(a_failure(), commands), *explain_failure(a_failure(), commands=commands)]
    )

    assert "  begin again with:  tidegate sync shop --sandbox" in shown
    assert "  next     tidegate sync shop --sandbox" in shown


def test_a_failure_tells_what_why_what_is_there_what_is_not_and_what_to_type() -> None:
    container = ContainerEnd(
        name="app", reason="Error", message="no database", exit_code=1, log=("dialling", "gave up")
    )
    evidence = Evidence(
        ref=WEB,
        pods=(PodEnd(ref=POD, phase="Failed", containers=(container,)),),
        notes=(KubeEvent(subject="Pod web-1", reason="BackOff", message="restarting", times=3),),
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
    container = ContainerEnd(name="app", reason="Error", exit_code=1)
    other = Ref(POD.kind, "default", "web-2")
    pods = tuple(PodEnd(ref=ref, containers=(container,)) for ref in (POD, other))

    shown = text_of(explain_failure(a_failure(), [Evidence(ref=WEB, pods=pods)]))

    assert (
        "  why      Pod default/web-1 (and 1 pod more): container app: Error, exit code 1" in shown
    )


def test_a_pod_whose_containers_say_nothing_speaks_for_itself() -> None:
    pod = PodEnd(ref=POD, phase="Pending", reason="Unschedulable", message="no node is free")

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
        Lack(ref=login, makers=(Maker(ref=LATE, step=TWO.id, comes=Comes.BEHIND),)),
        Lack(ref=settings, makers=(Maker(ref=settings, step=ONE.id, comes=Comes.SAME),)),
        Lack(ref=POD),
        Lack(ref=login, makers=(Maker(ref=WEB, step=ONE.id, comes=Comes.BEFORE),)),
    )

    shown = text_of(explain_failure(a_failure(), [Evidence(ref=WEB, lacks=lacks)]))

    behind = "Deployment default/late would make it, in wave 2, behind this step"
    before = "Deployment default/web has not made it, in wave 1, before this step"
    assert shown[1:5] == [
        f"  why      Secret default/login is not there; {behind}",
        "           ConfigMap default/settings is not there; the plan brings it, in this same step",
        "           Pod default/web-1 is not there, and nothing in the plan makes it",
        f"           Secret default/login is not there; {before}",
    ]


def test_a_kind_that_nobody_serves_is_told_before_everything_else() -> None:
    pod = PodEnd(ref=POD, phase="Pending")
    found = Evidence(ref=WEB, pods=(pod,), unserved="no operator for Deployment")

    shown = text_of(explain_failure(a_failure(), [found]))

    assert shown[1] == "  why      no operator for Deployment"


def test_a_failure_without_evidence_is_still_told() -> None:
    course = a_failure("nobody knows why")

    assert failing_spots(course) == []
    assert text_of(explain_failure(course))[0] == "✗ wave 1 failed after 3.0s: nobody knows why"


def test_the_object_that_failed_is_the_one_that_the_sentence_names() -> None:
    near = a_ref("web-2")
    step = a_step("wave 1", WEB, near)
    course = course_of(step)
    course.take(failed(step, 0, "Deployment default/web-2 took too long: no pod yet"))

    assert failing_spots(course) == [Spot("", near)]


def test_what_the_cluster_would_refuse_is_listed_before_anything_is_written() -> None:
    refused = Event(Ms(0), Told.OBJECT_REFUSED, TWO.id, LATE, "NotServed", "nobody knows it")

    course = told(refused, ended(0, "invalid"))
    unserved = Evidence(ref=LATE, unserved="no operator for Deployment")
    shown = text_of(explain_failure(course, [unserved]))

    assert refused_spots(course) == [Spot("", LATE)]
    assert shown[0] == "✗ nothing was written: the cluster would refuse 1 object"
    (fault,) = faults_of_rollout(course, [unserved])
    assert fault.sentence == "Deployment default/late: nobody knows it"
    assert fault.why == "no operator for Deployment"


def test_several_faults_of_one_object_count_as_one() -> None:
    faults = ("spec.replicas: -1", "spec.paused: expected boolean")
    refused = [Event(Ms(0), Told.OBJECT_REFUSED, TWO.id, LATE, "Invalid", one) for one in faults]

    course = told(*refused, ended(0, "invalid"))

    assert text_of(explain_failure(course))[0].endswith("would refuse 1 object")
    assert len(faults_of_rollout(course, ())) == 2
