"""Retries: a sync that is tried again starts over, hooks and all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec import structs

from tests.conformance.argocd.objects import a_hook, a_pod, failed, succeeded
from tests.conformance.argocd.stage import ArgoStage, case, open_stage
from tests.support.builders import make_config_map
from tests.support.repositories import Repository, application, namespace, setting
from tests.support.tidegate_runs import tidegate
from tidegate.engine.messages import Refresh
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.rollouts.event import EventType
from tidegate.model.times import SECOND, Ms
from tidegate.model.units.semantics import ARGOCD
from tidegate.sandbox.faults import CallFault, FaultSelector, Frequency, Rejection
from tidegate.sandbox.world import Sandbox
from tidegate.world.messages import Forbidden


@case(59)
async def test_hooks_run_again_in_a_retry() -> None:
    busy = CallFault(
        Rejection(Forbidden("not now")), FaultSelector(name="settings"), Frequency(times=1)
    )
    stage = await open_stage(Sandbox(faults=(busy,)))
    hook = a_hook("PreSync", a_pod("hook"))

    syncing = await stage.begin_sync(hook, make_config_map(), semantics=ARGOCD)
    await _both_become(stage, hook, succeeded(), succeeded())
    run = await syncing.ends()

    assert run.result == "passed"
    assert [event.reason for event in run.events_of(EventType.RETRY_SCHEDULED)] == ["Forbidden"]
    assert await stage.changes("create", "delete") == [
        "create pods/hook",
        "delete pods/hook",
        "create pods/hook",
        "create configmaps/settings",
    ]


@case(59)
async def test_a_failed_hook_runs_again_in_a_retry(stage: ArgoStage) -> None:
    hook = a_hook("PreSync", a_pod("hook"))

    syncing = await stage.begin_sync(hook, make_config_map(), semantics=ARGOCD)
    await _both_become(stage, hook, failed(), succeeded())
    run = await syncing.ends()

    assert run.result == "passed"
    assert [event.step for event in run.events_of(EventType.RETRY_SCHEDULED)] == [
        f"{stage.namespace}/presync/0"
    ]
    assert await stage.exists(make_config_map())


@case(59)
async def test_a_sync_is_retried_with_backoff_up_to_its_limit() -> None:
    busy = CallFault(Rejection(Forbidden("never")), FaultSelector(name="settings"), Frequency())
    stage = await open_stage(Sandbox(faults=(busy,)))
    retry = structs.replace(
        ARGOCD.retry, limit=3, backoff=Ms(4 * SECOND), backoff_limit=Ms(6 * SECOND)
    )
    rules = structs.replace(ARGOCD, retry=retry)

    run = await stage.sync(make_config_map(), semantics=rules)

    planned = run.events_of(EventType.RETRY_SCHEDULED)
    assert run.result == "failed"
    assert [(item.until - item.at) // SECOND for item in planned] == [4, 6, 6]
    assert not await stage.exists(make_config_map())


@case(59)
async def test_a_sync_terminated_during_its_backoff_is_not_retried() -> None:
    busy = CallFault(
        Rejection(Forbidden("not now")), FaultSelector(name="settings"), Frequency(times=1)
    )
    stage = await open_stage(Sandbox(faults=(busy,)))

    syncing = await stage.begin_sync(make_config_map(), semantics=ARGOCD)
    await stage.passes(Ms(5 * SECOND))
    before = await stage.exists(make_config_map())
    await syncing.stops()
    run = await syncing.ends()

    assert not before, "its pause is ten seconds: the duration, times the factor"
    assert run.result == "stopped"
    assert len(run.events_of(EventType.RETRY_SCHEDULED)) == 1
    assert not await stage.exists(make_config_map())


@case(59)
@pytest.mark.parametrize("limit", [1, 1_000])
async def test_a_retry_with_refresh_uses_a_newer_commit(limit: int) -> None:
    busy = CallFault(Rejection(Forbidden("never")), FaultSelector(name="settings"), Frequency())
    stage = await open_stage(Sandbox(faults=(busy,)))
    retry = structs.replace(
        ARGOCD.retry, limit=limit, backoff=Ms(4 * SECOND), uses_current_revision=True
    )
    rules = structs.replace(ARGOCD, retry=retry)
    fixed = await stage.planned(make_config_map("mended"), semantics=rules)
    request: list[Ms] = []

    def commits(_: Refresh) -> None:
        request.append(stage.world.now())
        syncing.goes_on_with(fixed)

    broken = await stage.planned(make_config_map(), semantics=rules)
    syncing = stage.start_plan(broken, commits)
    run = await syncing.ends()

    (planned,) = run.events_of(EventType.RETRY_SCHEDULED)
    assert run.result == "passed"
    assert request == [planned.until], "its pause is over"
    assert await stage.exists(make_config_map("mended"))
    assert not await stage.exists(make_config_map())


@case(59)
async def test_a_retry_without_a_newer_commit_uses_the_same_revision() -> None:
    busy = CallFault(
        Rejection(Forbidden("not now")), FaultSelector(name="settings"), Frequency(times=1)
    )
    stage = await open_stage(Sandbox(faults=(busy,)))
    rules = structs.replace(ARGOCD, retry=structs.replace(ARGOCD.retry, uses_current_revision=True))

    run = await stage.sync(make_config_map(), semantics=rules)

    assert run.result == "passed"
    assert len(run.events_of(EventType.RETRY_SCHEDULED)) == 1


@case(59)
@pytest.mark.parametrize("engine", ["argocd", "tidegate"])
def test_each_application_has_its_own_retries(tmp_path: Path, engine: str) -> None:
    repository = Repository(tmp_path / "repo")
    repository.put("bootstrap/root.yaml", application("root", "apps", into="argocd"))
    for name, limit, duration in (("web", 2, "30"), ("db", 1, "10s")):
        backoff: Json = {"duration": duration, "factor": 3, "maxDuration": "2m"}
        policy: Json = {"automated": {}, "retry": {"limit": limit, "backoff": backoff}}
        repository.put(f"apps/{name}.yaml", application(name, name, sync=policy))
        repository.put(f"{name}/all.yaml", setting(name, wave=0))
    repository.put("apps/ground.yaml", namespace("shop", wave=-1))
    scenario = tmp_path / "refused.yaml"
    refusals = [
        {"effect": "conflict", "when": {"verb": "apply", "name": name}} for name in ("web", "db")
    ]
    scenario.write_text(json.dumps({"faults": refusals}))

    ran = tidegate(
        "simulate", repository.root, "--scenario", scenario, "--engine", engine, "-o", "json"
    )

    events = [json.loads(line) for line in ran.stdout.splitlines()]
    pauses: dict[str, list[int]] = {}
    for event in events:
        if event["event"] == "retry.scheduled":
            unit = event["unit"].rpartition("/")[2]
            pauses.setdefault(unit, []).append((event["until"] - event["at"]) // SECOND)
    assert ran.returncode == 4
    assert pauses == {"web": [90, 120], "db": [30]}


async def _both_become(
    stage: ArgoStage, hook: JsonObject, first: JsonObject, second: JsonObject
) -> None:
    """What the hook ends with, and what the one ends with that takes its place."""
    await stage.becomes(hook, first)
    old = await stage.live(hook)
    await stage.client.settled(old.ref, lambda live: live is not None and live.uid != old.uid)
    await stage.says(hook, second)
