"""Jobs and other kinds that end, as Argo CD judges them, and what is final."""

from __future__ import annotations

import pytest

from tests.support.recorded_wording import RecordedWording
from tidegate.health.argo import judge
from tidegate.model.k8s.objects import Json
from tidegate.model.k8s.verdict import Health, Verdict


def verdict_on(body: dict[str, Json]) -> Verdict:
    verdict = judge(body)
    assert verdict is not None
    return verdict


def a_job(*conditions: tuple[str, str], **status: int) -> dict[str, Json]:
    listed: list[Json] = [
        {"type": name, "status": value, "reason": f"Was{name}", "message": f"it was {name}"}
        for name, value in conditions
    ]
    counts: dict[str, Json] = {**status}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "migrate"},
        "spec": {"completions": 3},
        "status": {**counts, "conditions": listed},
    }


def a_run(kind: str, phase: str) -> dict[str, Json]:
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": "check"},
        "status": {"phase": phase, "message": "as measured"},
    }


def test_a_running_job_counts_its_pods(wording: RecordedWording) -> None:
    verdict = verdict_on(a_job(active=1, succeeded=1, failed=2))

    assert verdict == Verdict(Health.PROGRESSING, "Running", verdict.message)
    wording(verdict.message)


def test_a_failed_job_stays_failed() -> None:
    verdict = verdict_on(a_job(("FailureTarget", "True"), ("Failed", "True")))

    assert verdict == Verdict(Health.DEGRADED, "WasFailed", "it was Failed", is_final=True)


def test_a_condition_that_is_false_counts_and_is_not_final() -> None:
    verdict = verdict_on(a_job(("Failed", "False")))

    assert (verdict.health, verdict.is_final) == (Health.DEGRADED, False)


def test_a_job_that_was_resumed_and_still_runs_is_healthy_to_argo_cd() -> None:
    verdict = verdict_on(a_job(("Suspended", "False"), active=1))

    assert verdict == Verdict(Health.HEALTHY, "JobResumed", "it was Suspended")


def test_a_complete_job_stays_complete() -> None:
    verdict = verdict_on(a_job(("Suspended", "False"), ("Complete", "True")))

    assert verdict == Verdict(Health.HEALTHY, "WasComplete", "it was Complete", is_final=True)


def test_a_suspended_cron_job_is_healthy() -> None:
    body: dict[str, Json] = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "backup"},
        "spec": {"suspend": True},
    }

    assert verdict_on(body) == Verdict(Health.HEALTHY, "CronJobSuspended", "CronJob is Suspended")


@pytest.mark.parametrize("kind", ["Workflow", "AnalysisRun", "Experiment"])
def test_a_run_that_failed_stays_failed(kind: str) -> None:
    verdict = verdict_on(a_run(kind, "Failed"))

    assert verdict == Verdict(Health.DEGRADED, "Failed", "as measured", is_final=True)


def test_a_phase_that_argo_cd_does_not_know_is_unknown() -> None:
    verdict = verdict_on(a_run("Rollout", "Sideways"))

    assert (verdict.health, verdict.reason) == (Health.UNKNOWN, "PhaseUnknown")


def test_a_paused_rollout_is_suspended() -> None:
    verdict = verdict_on(a_run("Rollout", "Paused"))

    assert verdict == Verdict(Health.SUSPENDED, "Paused", "as measured")
