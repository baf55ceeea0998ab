"""Hooks: when they run, what they hold up, and what their failure means."""

from __future__ import annotations

import pytest

from tests.conformance.argocd.objects import a_hook, a_pod, a_server_pod, failed, in_wave, succeeded
from tests.conformance.argocd.stage import ArgoStage, case, failure, finished, named, open_stage
from tests.support.builders import make_config_map, make_deployment
from tests.support.rollout_statuses import stuck
from tidegate.model.rollouts.event import EventType
from tidegate.model.times import SECOND, Ms
from tidegate.sandbox.faults import CallFault, FaultSelector, Rejection
from tidegate.sandbox.world import Sandbox
from tidegate.world.messages import Forbidden


@case(25)
@pytest.mark.parametrize("phase", ["PreSync", "Sync", "PostSync"])
async def test_the_sync_passes_after_a_successful_hook_and_its_finalizer_is_removed(
    stage: ArgoStage, phase: str
) -> None:
    hook = a_hook(phase, a_pod("hook"))

    syncing = await stage.begin_sync(hook, make_config_map())
    await stage.becomes(hook, succeeded())
    run = await syncing.ends()

    assert run.result == "passed"
    assert finished(run) == {"hook": "passed"}
    assert not await stage.holds(hook)


@case(26)
async def test_a_failed_presync_hook_prevents_the_sync(
    each_stage: ArgoStage,
) -> None:
    stage = each_stage
    hook = a_hook("PreSync", a_pod("hook"))

    syncing = await stage.begin_sync(hook, a_server_pod())
    await stage.becomes(hook, failed())
    run = await syncing.ends()

    assert run.result == "failed"
    assert 'container "main" failed with exit code 1' in failure(run)
    assert await stage.changes("create") == ["create pods/hook"]


@case(27)
@pytest.mark.parametrize("phase", ["Sync", "PostSync"])
async def test_a_failed_sync_or_postsync_hook_fails_the_sync_and_keeps_its_writes(
    stage: ArgoStage, phase: str
) -> None:
    hook = a_hook(phase, a_pod("hook"))

    syncing = await stage.begin_sync(hook, make_config_map())
    await stage.becomes(hook, failed())
    run = await syncing.ends()

    assert run.result == "failed"
    assert await stage.exists(make_config_map())


@case(28)
async def test_no_postsync_hook_runs_after_a_degraded_object(stage: ArgoStage) -> None:
    web, hook = a_server_pod(), a_hook("PostSync", a_pod("hook"))

    syncing = await stage.begin_sync(web, hook)
    await stage.becomes(web, failed())
    run = await syncing.ends()

    assert run.result == "failed"
    assert await stage.changes("create") == ["create pods/web"]


@case(29)
async def test_a_sync_with_one_wave_waits_for_its_hooks_only(stage: ArgoStage) -> None:
    web, hook = make_deployment(), a_hook("Sync", a_pod("hook"))

    syncing = await stage.begin_sync(web, hook)
    await syncing.waits_for("hook")
    await stage.says(hook, succeeded())
    run = await syncing.ends()

    assert run.result == "passed"
    assert named(run, EventType.GATE_WAITING) == ["hook"]


@case(29)
async def test_an_object_that_is_degraded_when_the_hooks_end_fails_the_sync(
    stage: ArgoStage,
) -> None:
    web, hook = make_deployment(), a_hook("Sync", a_pod("hook"))

    syncing = await stage.begin_sync(web, hook)
    await syncing.waits_for("hook")
    await stage.says(web, stuck(1))
    await stage.says(hook, succeeded())
    run = await syncing.ends()

    assert run.result == "failed"
    assert failure(run).startswith(f"Deployment {stage.namespace}/web")


@case(30)
async def test_a_successful_sync_does_not_run_syncfail_hooks(stage: ArgoStage) -> None:
    hook, rescue = a_hook("Sync", a_pod("hook")), a_hook("SyncFail", a_pod("rescue"))

    syncing = await stage.begin_sync(hook, rescue)
    await stage.becomes(hook, succeeded())

    assert (await syncing.ends()).result == "passed"
    assert await stage.changes("create") == ["create pods/hook"]


@case(31)
async def test_a_failed_sync_ends_after_its_syncfail_hooks(each_stage: ArgoStage) -> None:
    stage = each_stage
    hook, rescue = a_hook("Sync", a_pod("hook")), a_hook("SyncFail", a_pod("rescue"))

    syncing = await stage.begin_sync(hook, rescue)
    await stage.becomes(hook, failed())
    await syncing.waits_for("rescue")
    before = list(syncing.run.events)
    await stage.says(rescue, succeeded())
    run = await syncing.ends()

    assert not any(event.type is EventType.ROLLOUT_FINISHED for event in before)
    assert run.result == "failed"
    assert failure(run).startswith(f"Pod {stage.namespace}/hook")
    assert finished(run) == {"hook": "failed", "rescue": "passed"}
    assert await stage.changes("create") == ["create pods/hook", "create pods/rescue"]


@case(32)
async def test_a_rejected_syncfail_hook_does_not_stop_the_others() -> None:
    stage = await open_stage(_refusing("web", "bad"))
    good, bad = (a_hook("SyncFail", a_pod(name)) for name in ("good", "bad"))

    syncing = await stage.begin_sync(a_pod("web"), good, bad)
    await stage.becomes(good, succeeded())
    run = await syncing.ends()

    assert run.result == "failed"
    assert [event.message for event in run.events_of(EventType.OBJECT_REFUSED)] == [
        "web: no",
        "bad: no",
    ]
    assert finished(run) == {"good": "passed"}
    assert not await stage.holds(good)


@case(33)
async def test_an_error_of_several_objects_is_reported_once() -> None:
    stage = await open_stage(_refusing("one", "two", words="over quota"))

    run = await stage.sync(make_config_map("one"), make_config_map("two"))

    assert run.result == "failed"
    assert named(run, EventType.OBJECT_REFUSED) == ["one", "two"]
    assert failure(run).count("over quota") == 1


@case(34)
async def test_a_rejected_hook_fails_the_sync_after_the_other_hooks() -> None:
    stage = await open_stage(_refusing("bad"))
    good, bad = (a_hook("Sync", a_pod(name)) for name in ("good", "bad"))

    syncing = await stage.begin_sync(good, bad, in_wave(1, make_config_map()))
    await syncing.waits_for("good")
    before = list(syncing.run.events)
    await stage.says(good, succeeded())
    run = await syncing.ends()

    assert not any(event.type is EventType.STEP_FAILED for event in before)
    assert run.result == "failed"
    assert finished(run) == {"good": "passed"}
    assert not await stage.holds(good)
    assert not await stage.exists(make_config_map())


@case(43)
async def test_a_hook_is_not_among_the_objects_of_the_sync(stage: ArgoStage) -> None:
    hook = a_hook("PostSync", a_pod("hook"))

    syncing = await stage.begin_sync(hook, make_config_map())
    await stage.becomes(hook, succeeded())
    run = await syncing.ends()

    assert list(run.states) == [f"{stage.namespace}/sync/0", f"{stage.namespace}/postsync/0"]
    assert named(run, EventType.OBJECT_WRITTEN) == ["settings", "hook"]


@case(45)
async def test_a_terminated_sync_starts_no_further_step(stage: ArgoStage) -> None:
    hook = a_hook("PreSync", a_pod("hook"))

    syncing = await stage.begin_sync(hook, make_config_map())
    await syncing.waits_for("hook")
    await syncing.stops()
    await stage.says(hook, succeeded())
    await stage.passes(Ms(30 * SECOND))

    assert await stage.changes("create") == ["create pods/hook"]


@case(45)
async def test_a_resumed_sync_uses_the_hooks_of_the_terminated_one(stage: ArgoStage) -> None:
    hook = a_hook("PreSync", a_pod("hook"))
    syncing = await stage.begin_sync(hook, make_config_map())
    await syncing.waits_for("hook")
    await syncing.stops()
    await stage.says(hook, succeeded())

    run = await stage.sync(hook, make_config_map())

    assert run.result == "passed"
    assert await stage.changes("create", "delete") == [
        "create pods/hook",
        "create configmaps/settings",
    ]
    assert not await stage.holds(hook)


def _refusing(*names: str, words: str = "") -> Sandbox:
    """A cluster that takes no objects of these names."""
    return Sandbox(
        faults=[
            CallFault(
                Rejection(Forbidden(words or f"{name}: no")),
                FaultSelector(verbs=("apply",), name=name),
            )
            for name in names
        ]
    )
