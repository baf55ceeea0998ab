"""What was measured on Argo CD 3.5.6, simulated: docs/concepts/conformance.md has the records."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.repositories import (
    OF_CHILDREN,
    Repository,
    application,
    argo_settings,
    deployment,
    job,
    namespace,
    setting,
)
from tests.support.simulated_syncs import simulate_sync
from tidegate.model.k8s.json_fields import get_list
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


def slow_deployment(name: str = "slow", *, image: str = "main") -> JsonObject:
    """A Deployment whose pods count as ready when their probe succeeds."""
    containers: Json = [
        {"name": "main", "image": image, "readinessProbe": {"httpGet": {"port": 80}}}
    ]
    labels: Json = {"app": name}
    template: Json = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    spec: Json = {"selector": {"matchLabels": labels}, "template": template}
    return {**deployment(name), "spec": spec}


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
    pauses = [start - end for start, end in zip(attempts, ends, strict=False)]
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

    (opened,) = sync.times_of("late")
    assert opened == pytest.approx(10 + delay, abs=1)


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


def tracked(name: str, app: str, *, wave: int = 0) -> JsonObject:
    """A ConfigMap that Argo CD deployed for an Application."""
    body = setting(name, "shop", wave=wave)
    notes: JsonObject = {"argocd.argoproj.io/tracking-id": f"{app}:/ConfigMap:shop/{name}"}
    if wave:
        notes["argocd.argoproj.io/sync-wave"] = str(wave)
    return {**body, "metadata": {"name": name, "namespace": "shop", "annotations": notes}}


def test_objects_of_argo_cd_are_pruned_by_their_tracking_ids(
    repository: Repository,
) -> None:
    one_application(repository, setting("a"))
    earlier = given(tracked("gone", "web"), tracked("other", "mail"), setting("mine", "shop"))

    sync = simulate_sync(repository.root, earlier)

    pruned = [done.name for done in sync.events("object.pruned")]
    assert (sync.outcome, pruned) == ("passed", ["gone"])


def test_what_is_left_to_prune_swaps_waves_again_after_each_deletion(
    repository: Repository,
) -> None:
    one_application(repository, *(setting(name, wave=2 * at) for at, name in enumerate("abc")))

    sync = simulate_sync(repository.root, given(tracked("x", "web"), tracked("z", "web", wave=4)))

    ends = {done.name: done.seconds for done in sync.events("object.written", "object.pruned")}
    assert sorted(ends, key=lambda name: ends[name]) == ["a", "z", "x", "b", "c"]
    assert [ends[name] - ends["a"] for name in "xbc"] == [
        pytest.approx(pause, abs=0.1) for pause in (2, 4, 6)
    ]


def test_a_later_commit_reaches_children_wave_by_wave(repository: Repository) -> None:
    repository.put("apps/root.yaml", application("root", "children", into="argocd"))
    repository.put("apps/settings.yaml", argo_settings(OF_CHILDREN))
    newer = Repository(repository.root.parent / "newer")
    for at, name in enumerate("abc"):
        child = application(name, name, wave=at)
        repository.put(f"children/{name}.yaml", child)
        repository.put(f"{name}/all.yaml", slow_deployment(name))
        changed = application(name, f"{name}2", wave=at)
        newer.put(f"children/{name}.yaml", changed)
        newer.put(f"{name}2/all.yaml", slow_deployment(name, image="main:2"))
    commits: Json = [{"at": "5m", "files": str(newer.root)}]
    behaviours: Json = [{"effect": "slow", "by": "10s", "when": {"kind": "Deployment"}}]

    sync = simulate_sync(
        repository.root, given() | {"commits": commits, "behaviours": behaviours}, engine="native"
    )

    first, second, third = (sync.times_of(name)[-1] for name in "abc")
    assert [len(sync.times_of(name)) for name in "abc"] == [2, 2, 2]
    assert second - first > 9
    assert third - second > 9


def test_the_writes_of_a_later_sync_are_reported(repository: Repository) -> None:
    one_application(repository, setting("a"), setting("b", wave=1))
    newer = Repository(repository.root.parent / "newer")
    newer.put("web/all.yaml", setting("a", to="2"), setting("b", wave=1), setting("c", wave=2))
    commits: Json = [{"at": "5m", "files": str(newer.root)}]

    sync = simulate_sync(repository.root, given() | {"commits": commits})

    assert sync.written() == ["a", "b", "a", "c"]


def test_the_state_of_an_application_is_reported_as_argo_cd_shows_it(
    repository: Repository,
) -> None:
    one_application(repository, job("pre", hook="PreSync"), setting("a"))

    failed = simulate_sync(repository.root, given() | {"behaviours": FAILING_HOOK})
    passed = simulate_sync(repository.root, given())

    unit = "Application/argocd/web"
    assert get_list(failed.result, "units") == [
        {
            "unit": unit,
            "sync": "OutOfSync",
            "health": "Missing",
            "operation": "Failed",
            "retries": 2,
        }
    ]
    assert get_list(passed.result, "units") == [
        {"unit": unit, "sync": "Synced", "health": "Healthy", "operation": "Succeeded"}
    ]
