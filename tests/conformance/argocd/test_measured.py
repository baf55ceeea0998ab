"""What was measured on Argo CD 3.5.6, simulated: docs/concepts/conformance.md has the records."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.repositories import (
    Repository,
    application,
    deployment,
    job,
    namespace,
    setting,
)
from tests.support.simulated_syncs import simulate_sync
from tidegate.model.k8s.objects import Json, JsonObject

RETRIED: Json = {
    "automated": {"prune": True},
    "retry": {"limit": 2, "backoff": {"duration": "3s", "factor": 2}},
}
CREATES_NAMESPACE: Json = {
    "automated": {"prune": True},
    "syncOptions": ["CreateNamespace=true"],
}
FAILING_HOOK: Json = [{"effect": "fails", "when": {"kind": "Job", "name": "pre"}}]


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repo")


def one_application(repository: Repository, *bodies: JsonObject, sync: Json = RETRIED) -> None:
    repository.put("apps/web.yaml", application("web", "web", sync=sync))
    repository.put("web/all.yaml", *bodies)


def old_job(image: str) -> JsonObject:
    """A finished Job of an earlier sync."""
    body = job("once")
    containers: Json = [{"name": "main", "image": image}]
    template: Json = {"spec": {"restartPolicy": "Never", "containers": containers}}
    metadata: Json = {
        "name": "once",
        "namespace": "shop",
        "annotations": {"argocd.argoproj.io/tracking-id": "web:batch/Job:shop/once"},
    }
    return {**body, "metadata": metadata, "spec": {"backoffLimit": 0, "template": template}}


def slow_deployment() -> JsonObject:
    """A Deployment whose pods count as ready when their probe succeeds."""
    containers: Json = [
        {"name": "main", "image": "main", "readinessProbe": {"httpGet": {"port": 80}}}
    ]
    labels: Json = {"app": "slow"}
    template: Json = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    spec: Json = {"selector": {"matchLabels": labels}, "template": template}
    return {**deployment("slow"), "spec": spec}


def given(*objects: JsonObject) -> JsonObject:
    return {"given": {"objects": [namespace("shop"), *objects]}}


def test_a_changed_job_is_refused_in_its_wave_and_retried(repository: Repository) -> None:
    one_application(repository, setting("a"), job("once"), setting("z", wave=1))

    sync = simulate_sync(repository.root, given(old_job("busybox:1")))

    refused = sync.events("object.refused")
    assert sync.outcome == "failed"
    assert [done.name for done in refused] == ["once"] * 3
    assert sync.written() == ["a"], "the rest of its wave is written, and no later wave"


def test_a_changed_job_of_flux_fails_its_unit(repository: Repository) -> None:
    one_application(repository, setting("a"), job("once"))

    sync = simulate_sync(repository.root, given(old_job("busybox:1")), engine="flux")

    assert sync.outcome == "invalid"
    assert sync.written() == []


def test_with_tidegate_semantics_a_changed_job_is_recreated(repository: Repository) -> None:
    one_application(repository, job("once"))

    sync = simulate_sync(repository.root, given(old_job("busybox:1")), engine="tidegate")

    assert (sync.outcome, sync.written()) == ("passed", ["once"])


def test_syncfail_hooks_run_after_each_attempt_and_the_backoff_begins_at_their_end(
    repository: Repository,
) -> None:
    one_application(
        repository, job("pre", hook="PreSync"), setting("a"), job("sos", hook="SyncFail")
    )

    sync = simulate_sync(repository.root, given() | {"behaviours": FAILING_HOOK})

    assert sync.outcome == "failed"
    assert sync.written() == ["pre", "sos"] * 3
    ends = [done.seconds for done in sync.events("hook.finished") if done.name == "sos"]
    attempts = [done.seconds for done in sync.events("step.checking")][2::2]
    pauses = [begin - end for begin, end in zip(attempts, ends, strict=False)]
    assert pauses == [pytest.approx(6, abs=0.1), pytest.approx(12, abs=0.1)]


def test_a_failing_syncfail_hook_does_not_prevent_the_retry(repository: Repository) -> None:
    one_application(repository, setting("a"), job("sos", hook="SyncFail"))
    refusal: Json = {"effect": "conflict", "times": 1, "when": {"verb": "apply", "name": "a"}}
    behaviours: Json = [{"effect": "fails", "when": {"kind": "Job", "name": "sos"}}]

    sync = simulate_sync(repository.root, given() | {"behaviours": behaviours, "faults": [refusal]})

    assert (sync.outcome, sync.written()) == ("passed", ["sos", "a"])


def test_a_hook_that_hook_failed_deletes_runs_again_in_a_retry(repository: Repository) -> None:
    hook = job("pre", hook="PreSync")
    hook["metadata"] = {
        "name": "pre",
        "annotations": {
            "argocd.argoproj.io/hook": "PreSync",
            "argocd.argoproj.io/hook-delete-policy": "HookFailed",
        },
    }
    one_application(repository, hook, setting("a"))

    sync = simulate_sync(repository.root, given() | {"behaviours": FAILING_HOOK})

    assert (sync.outcome, sync.written()) == ("failed", ["pre"] * 3)


@pytest.mark.parametrize(("engine", "delay"), [("argocd", 0), ("argocd=3.5", 0), ("argocd=3.6", 5)])
def test_gates_open_when_an_object_changes_and_with_argo_cd_3_6_five_seconds_later(
    repository: Repository, engine: str, delay: int
) -> None:
    one_application(repository, slow_deployment(), setting("late", wave=1))
    behaviours: Json = [
        {"effect": "slow", "by": "10s", "when": {"kind": "Deployment", "name": "slow"}}
    ]

    sync = simulate_sync(repository.root, given() | {"behaviours": behaviours}, engine=engine)

    (late,) = sync.times_of("late")
    assert late == pytest.approx(10 + delay, abs=1)


def test_no_pause_follows_the_namespace_that_create_namespace_creates(
    repository: Repository,
) -> None:
    one_application(repository, setting("a"), setting("b", wave=1), sync=CREATES_NAMESPACE)

    sync = simulate_sync(repository.root)

    times = {done.name: done.seconds for done in sync.events("object.written")}
    assert times["a"] - times["shop"] < 1
    assert times["b"] - times["a"] == pytest.approx(2, abs=0.1)


def test_the_only_wave_waits_for_its_hooks_alone_although_a_namespace_is_created(
    repository: Repository,
) -> None:
    one_application(repository, job("now", hook="Sync"), slow_deployment(), sync=CREATES_NAMESPACE)
    behaviours: Json = [
        {"effect": "slow", "by": "60s", "when": {"kind": "Deployment", "name": "slow"}}
    ]

    sync = simulate_sync(repository.root, {"behaviours": behaviours})

    (end,) = sync.events("unit.finished")
    assert end.seconds < 10


def test_a_pause_separates_the_deletion_of_an_earlier_hook_from_its_successor(
    repository: Repository,
) -> None:
    one_application(repository, job("pre", hook="PreSync"), setting("a"))
    earlier = job("pre", hook="PreSync")
    metadata: Json = {
        "name": "pre",
        "namespace": "shop",
        "annotations": {"argocd.argoproj.io/hook": "PreSync"},
    }

    sync = simulate_sync(repository.root, given({**earlier, "metadata": metadata}))

    assert sync.written() == ["pre", "a"]
    assert sync.times_of("pre") == [pytest.approx(2, abs=0.1)]


def test_no_pause_follows_the_deletion_of_an_earlier_hook_in_the_last_wave(
    repository: Repository,
) -> None:
    one_application(repository, setting("a"), job("post", hook="PostSync"))
    earlier = job("post", hook="PostSync")
    metadata: Json = {
        "name": "post",
        "namespace": "shop",
        "annotations": {"argocd.argoproj.io/hook": "PostSync"},
    }

    sync = simulate_sync(repository.root, given({**earlier, "metadata": metadata}))

    assert sync.times_of("post") == [pytest.approx(2, abs=0.2)], "the pause after the wave before"
