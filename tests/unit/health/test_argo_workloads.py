"""Workloads and Pods as Argo CD judges them: messages, reasons, and what is final."""

from __future__ import annotations

from tests.support.recorded_wording import RecordedWording
from tidegate.health.argo import judge
from tidegate.model.k8s.objects import Json
from tidegate.model.k8s.verdict import Health, Verdict


def verdict_on(body: dict[str, Json]) -> Verdict:
    verdict = judge(body)
    assert verdict is not None
    return verdict


def a_deployment(*, available: int, reason: str = "NewReplicaSetUpdated") -> dict[str, Json]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "generation": 4},
        "spec": {"replicas": 3},
        "status": {
            "observedGeneration": 4,
            "replicas": 3,
            "updatedReplicas": 3,
            "availableReplicas": available,
            "conditions": [{"type": "Progressing", "status": "True", "reason": reason}],
        },
    }


def a_pod(
    phase: str, policy: str, state: dict[str, Json] | None = None, **annotations: str
) -> dict[str, Json]:
    notes: dict[str, Json] = {
        f"argocd.argoproj.io/{name.replace('_', '-')}": value for name, value in annotations.items()
    }
    container: dict[str, Json] = {"name": "web", "ready": False, "state": state or {}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "annotations": notes},
        "spec": {"restartPolicy": policy},
        "status": {"phase": phase, "containerStatuses": [container]},
    }


def test_a_progressing_deployment_counts_its_replicas() -> None:
    verdict = verdict_on(a_deployment(available=1))

    message = "Waiting for rollout to finish: 1 of 3 updated replicas are available..."
    assert verdict == Verdict(
        Health.PROGRESSING, "ReplicasNotAvailable", message, observed_generation=4
    )


def test_a_healthy_deployment_counts_its_replicas(wording: RecordedWording) -> None:
    verdict = verdict_on(a_deployment(available=3))

    assert verdict == Verdict(Health.HEALTHY, "Available", verdict.message, observed_generation=4)
    wording(verdict.message)


def test_a_passed_deadline_is_degraded_and_not_final() -> None:
    verdict = verdict_on(a_deployment(available=0, reason="ProgressDeadlineExceeded"))

    assert (verdict.health, verdict.reason) == (Health.DEGRADED, "ProgressDeadlineExceeded")
    assert not verdict.is_final


def test_another_version_of_a_known_kind_is_unknown() -> None:
    body: dict[str, Json] = {**a_deployment(available=3), "apiVersion": "apps/v1beta2"}

    verdict = verdict_on(body)

    assert verdict.health is Health.UNKNOWN
    assert verdict.message == "unsupported Deployment GVK: apps/v1beta2, Kind=Deployment"


def test_a_kind_without_a_check_has_no_verdict() -> None:
    body: dict[str, Json] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}}

    assert judge(body) is None


def test_any_object_that_is_being_deleted_is_progressing() -> None:
    metadata: dict[str, Json] = {"name": "web", "deletionTimestamp": "2026-01-01T00:00:00Z"}

    verdict = verdict_on({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})

    assert (verdict.health, verdict.message) == (Health.PROGRESSING, "Pending deletion")


def test_an_image_that_cannot_be_pulled_is_degraded_and_not_final() -> None:
    waiting: dict[str, Json] = {"waiting": {"reason": "ImagePullBackOff", "message": "no image"}}

    verdict = verdict_on(a_pod("Pending", "Always", waiting))

    assert verdict == Verdict(Health.DEGRADED, "ImagePullBackOff", "no image")


def test_a_pod_that_runs_to_completion_waits_for_its_image(
    wording: RecordedWording,
) -> None:
    waiting: dict[str, Json] = {"waiting": {"reason": "ImagePullBackOff"}}

    verdict = verdict_on(a_pod("Pending", "Never", waiting))

    assert verdict == Verdict(Health.PROGRESSING, "ImagePullBackOff", verdict.message)
    wording(verdict.message)


def test_a_failed_pod_has_its_exit_code_and_is_final() -> None:
    ended: dict[str, Json] = {"terminated": {"exitCode": 3, "reason": "Error"}}

    verdict = verdict_on(a_pod("Failed", "Never", ended))

    message = 'container "web" failed with exit code 3'
    assert verdict == Verdict(Health.DEGRADED, "Failed", message, is_final=True)


def test_an_annotation_makes_a_pod_a_long_running_one() -> None:
    waiting: dict[str, Json] = {"waiting": {"reason": "CrashLoopBackOff", "message": "again"}}

    verdict = verdict_on(a_pod("Running", "Never", waiting, ignore_restart_policy="true"))

    assert verdict.health is Health.DEGRADED


def test_the_annotation_does_not_apply_to_a_hook() -> None:
    waiting: dict[str, Json] = {"waiting": {"reason": "CrashLoopBackOff", "message": "again"}}

    pod = a_pod("Running", "Never", waiting, ignore_restart_policy="true", hook="PreSync")

    assert verdict_on(pod).health is Health.PROGRESSING


def test_an_object_that_is_only_skipped_is_no_hook() -> None:
    pod = a_pod("Running", "Never", None, ignore_restart_policy="true", hook="Skip")

    verdict = verdict_on(pod)

    assert (verdict.health, verdict.reason) == (Health.PROGRESSING, "ContainersNotReady")
