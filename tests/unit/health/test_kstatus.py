"""What our kstatus adds to that of Flux: the generation, finality, and when to look again."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.support.recorded_wording import RecordedWording
from tidegate.health.kstatus import judge, judge_with_pods, next_verdict_change
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.k8s.verdict import Health
from tidegate.model.times import Ms

CREATED = Ms(1_800_000_000_000)
STAMP = datetime.fromtimestamp(CREATED // 1000, UTC).isoformat()
LATER = Ms(CREATED + 60_000)


def an_object(
    kind: str, status: JsonObject, *, generation: int = 2, spec: JsonObject | None = None
) -> JsonObject:
    api_version, _, name = kind.rpartition(" ")
    metadata: JsonObject = {"name": "web", "generation": generation, "creationTimestamp": STAMP}
    written = {"metadata": metadata, "spec": spec or {}, "status": status}
    return {"apiVersion": api_version, "kind": name, **written}


def a_condition(name: str, status: str = "True", **more: Json) -> Json:
    return [{"type": name, "status": status, **more}]


def a_set(**status: Json) -> JsonObject:
    spec: JsonObject = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}}
    return an_object("apps/v1 StatefulSet", {"observedGeneration": 2, **status}, spec=spec)


def a_waiting_pod(reason: str = "Unschedulable") -> JsonObject:
    scheduled = a_condition("PodScheduled", "False", reason=reason)
    return an_object("v1 Pod", {"phase": "Pending", "conditions": scheduled})


def a_crash_looping_pod(**metadata: Json) -> JsonObject:
    state: Json = {"waiting": {"reason": "CrashLoopBackOff"}}
    status: JsonObject = {
        "phase": "Running",
        "containerStatuses": [{"name": "app", "state": state}],
    }
    return {"metadata": {"name": "web-0", **metadata}, "status": status}


def test_a_verdict_has_the_observed_generation() -> None:
    body = an_object(
        "example.com/v1 Thing",
        {"observedGeneration": 2, "conditions": a_condition("Ready", observedGeneration=1)},
    )

    assert judge(body, LATER).observed_generation == 2


@pytest.mark.parametrize(
    ("kind", "condition"),
    [
        ("cert-manager.io/v1 Certificate", "Ready"),
        ("example.com/v1 Thing", "Stalled"),
        ("example.com/v1 Thing", "Reconciling"),
        ("apiextensions.k8s.io/v1 CustomResourceDefinition", "Established"),
        ("batch/v1 Job", "Complete"),
    ],
)
def test_without_one_a_verdict_has_the_generation_of_the_deciding_condition(
    kind: str, condition: str
) -> None:
    other: Json = {"type": "Other", "status": "True", "observedGeneration": 9}
    deciding: Json = {"type": condition, "status": "True", "observedGeneration": 4}

    verdict = judge(an_object(kind, {"conditions": [other, deciding]}), LATER)

    assert verdict.observed_generation == 4


def test_a_verdict_on_an_available_deployment_has_the_generation_of_that_condition() -> None:
    available = a_condition("Available", observedGeneration=4)
    body = an_object("apps/v1 Deployment", {"conditions": available}, spec={"replicas": 0})

    verdict = judge(body, LATER)

    assert (verdict.health, verdict.observed_generation) == (Health.HEALTHY, 4)


def test_a_verdict_on_an_older_generation_has_that_generation() -> None:
    body = an_object("apps/v1 Deployment", {"observedGeneration": 1})

    verdict = judge(body, LATER)

    assert (verdict.health, verdict.observed_generation) == (Health.PROGRESSING, 1)


def test_an_object_without_a_status_is_healthy_but_not_checked() -> None:
    verdict = judge(an_object("example.com/v1 Thing", {}), LATER)

    assert (verdict.health, verdict.is_checked, verdict.observed_generation) == (
        Health.HEALTHY,
        False,
        0,
    )


@pytest.mark.parametrize("kind", ["v1 ConfigMap", "apps/v1 Deployment", "batch/v1 CronJob"])
def test_a_kind_that_has_a_rule_is_checked(kind: str) -> None:
    assert judge(an_object(kind, {}), LATER).is_checked


@pytest.mark.parametrize("condition", ["Failed", "Complete"])
def test_a_job_that_ended_is_final(condition: str) -> None:
    body = an_object("batch/v1 Job", {"conditions": a_condition(condition)})

    assert judge(body, LATER).is_final


def test_a_rollout_past_its_deadline_is_not_final() -> None:
    condition = a_condition("Progressing", "False", reason="ProgressDeadlineExceeded")
    body = an_object("apps/v1 Deployment", {"observedGeneration": 2, "conditions": condition})

    verdict = judge(body, LATER)

    assert (verdict.health, verdict.is_final) == (Health.DEGRADED, False)


def test_a_job_that_runs_is_in_progress_even_while_it_is_deleted() -> None:
    body = an_object("batch/v1 Job", {"observedGeneration": 1, "startTime": STAMP})
    body["metadata"] = {"generation": 2, "deletionTimestamp": STAMP}

    verdict = judge(body, LATER)

    assert (verdict.health, verdict.reason) == (Health.PROGRESSING, "JobInProgress")


def test_an_object_that_is_being_deleted_is_progressing() -> None:
    body = an_object("apps/v1 Deployment", {})
    body["metadata"] = {"deletionTimestamp": STAMP}

    verdict = judge(body, LATER)

    assert (verdict.health, verdict.reason) == (Health.PROGRESSING, "Terminating")


def test_a_field_of_a_wrong_type_is_named_without_its_value(wording: RecordedWording) -> None:
    body = an_object("argoproj.io/v1alpha1 Rollout", {"observedGeneration": "hunter2"})

    verdict = judge(body, LATER)

    assert verdict.health is Health.UNKNOWN
    assert "hunter2" not in verdict.message
    wording(verdict.message)


@pytest.mark.parametrize(
    ("age", "health"),
    [(14_999, Health.PROGRESSING), (15_000, Health.DEGRADED), (15_001, Health.DEGRADED)],
)
def test_a_pod_has_fifteen_seconds_to_be_scheduled(age: int, health: Health) -> None:
    assert judge(a_waiting_pod(), Ms(CREATED + age)).health is health


def test_a_pod_without_a_valid_creation_time_has_no_time_left() -> None:
    pod = a_waiting_pod()
    pod["metadata"] = {"creationTimestamp": "2027-01-15"}

    assert judge(pod, Ms(0)).reason == "PodUnschedulable"


def test_the_time_at_which_a_verdict_on_a_pod_changes_is_known() -> None:
    pod = a_waiting_pod()

    moment = next_verdict_change(pod, Ms(CREATED + 4_000))

    assert moment == CREATED + 15_000
    assert judge(pod, Ms(moment - 1)).health is Health.PROGRESSING
    assert judge(pod, moment).health is Health.DEGRADED


@pytest.mark.parametrize(
    ("body", "now"),
    [
        (a_waiting_pod(), LATER),
        (a_waiting_pod("SchedulingGated"), CREATED),
        (an_object("apps/v1 Deployment", {}), CREATED),
    ],
    ids=["failed pod", "gated pod", "deployment"],
)
def test_other_verdicts_change_only_with_their_object(body: JsonObject, now: Ms) -> None:
    assert next_verdict_change(body, now) is None


def test_a_condition_with_the_reason_of_a_rule_does_not_change_with_time() -> None:
    conditions = a_condition("Reconciling", reason="PodNotScheduled")

    assert next_verdict_change(an_object("v1 Pod", {"conditions": conditions}), LATER) is None


def test_a_crash_looping_pod_fails_the_set_that_waits_for_it() -> None:
    verdict = judge_with_pods(a_set(replicas=1), [a_crash_looping_pod()], LATER)

    assert (verdict.health, verdict.reason) == (Health.DEGRADED, "PodsFailed")
    assert (verdict.message, verdict.observed_generation) == ("1 pods have failed", 2)


def test_pods_count_though_items_of_a_list_do_not_name_their_kind() -> None:
    pods = [a_crash_looping_pod(), {**a_crash_looping_pod(), "apiVersion": "v1", "kind": "Pod"}]

    assert judge_with_pods(a_set(), pods, LATER).message == "2 pods have failed"


@pytest.mark.parametrize(
    "pod",
    [a_crash_looping_pod(deletionTimestamp=STAMP), a_waiting_pod()],
    ids=["being deleted", "not scheduled"],
)
def test_pods_that_are_deleted_or_pending_do_not_fail_their_set(pod: JsonObject) -> None:
    assert judge_with_pods(a_set(), [pod], LATER).health is Health.PROGRESSING


def test_a_set_that_is_complete_is_healthy_whatever_its_pods_do() -> None:
    body = a_set(replicas=2, readyReplicas=2, currentReplicas=2)

    assert judge_with_pods(body, [a_crash_looping_pod()], LATER).health is Health.HEALTHY


def test_a_set_that_is_being_deleted_is_not_failed_by_its_pods() -> None:
    body = a_set()
    body["metadata"] = {"deletionTimestamp": STAMP}

    verdict = judge_with_pods(body, [a_crash_looping_pod()], LATER)

    assert verdict.reason == "Terminating"


def test_the_pods_of_a_deployment_do_not_count() -> None:
    body = an_object("apps/v1 Deployment", {})

    assert judge_with_pods(body, [a_crash_looping_pod()], LATER).health is Health.PROGRESSING
