"""Hooks in the cluster: when they are deleted, and how they are named."""

from __future__ import annotations

import re

import pytest

from tests.conformance.argocd.objects import a_hook, a_pod, failed, running, succeeded
from tests.conformance.argocd.stage import ArgoStage, case, finished, named, open_stage
from tests.support.builders import make_config_map, make_job
from tests.support.rollout_statuses import complete
from tidegate.model.k8s.objects import JsonObject
from tidegate.model.rollouts.event import EventType
from tidegate.model.times import SECOND, Ms
from tidegate.sandbox.faults import CallFault, FaultSelector, Frequency, ResponseLoss
from tidegate.sandbox.world import Sandbox


@case(35)
@pytest.mark.parametrize("policy", ["", "BeforeHookCreation"])
async def test_a_hook_of_the_previous_sync_is_deleted_before_it_is_created_again(
    each_stage: ArgoStage, policy: str
) -> None:
    stage = each_stage
    hook = a_hook("PreSync", a_pod("hook"), deletes=policy)
    await _sync_with(stage, hook)
    first = await stage.live(hook)

    await _sync_with(stage, hook, unless=first.uid)

    assert (await stage.live(hook)).uid != first.uid
    assert await stage.changes("create", "delete") == [
        "create pods/hook",
        "create configmaps/settings",
        "delete pods/hook",
        "create pods/hook",
    ]


@case(35)
async def test_a_hook_is_created_after_its_predecessor_is_deleted(stage: ArgoStage) -> None:
    held = a_hook("PreSync", a_pod("hook"))
    await _sync_with(stage, held)
    first = await stage.live(held)
    await stage.client.patch(first.ref, {"metadata": {"finalizers": ["example.org/hold"]}})

    syncing = await stage.begin_sync(held)
    await stage.client.settled(first.ref, lambda live: live is not None and _is_going(live.body))
    await stage.passes(Ms(30 * SECOND))
    created = await stage.changes("create")
    await stage.client.patch(first.ref, {"metadata": {"finalizers": []}})
    await stage.client.settled(first.ref, lambda live: live is not None and live.uid != first.uid)
    await stage.says(held, succeeded())

    assert created == ["create pods/hook", "create configmaps/settings"]
    assert (await syncing.ends()).result == "passed"


@case(36)
async def test_a_hook_is_created_if_its_predecessor_is_already_gone() -> None:
    lost = CallFault(
        ResponseLoss(is_performed=True),
        FaultSelector(verbs=("delete",), name="hook"),
        Frequency(times=1),
    )
    stage = await open_stage(Sandbox(faults=(lost,)))
    hook = a_hook("PreSync", a_pod("hook"))
    await _sync_with(stage, hook)
    first = await stage.live(hook)

    await _sync_with(stage, hook, unless=first.uid)

    assert (await stage.live(hook)).uid != first.uid


@case(37)
@pytest.mark.parametrize("ends", [succeeded(), failed()], ids=["passed", "failed"])
@pytest.mark.parametrize("policy", ["HookSucceeded", "HookFailed"])
async def test_a_hook_is_deleted_at_the_end_of_the_sync(
    each_stage: ArgoStage, policy: str, ends: JsonObject
) -> None:
    stage = each_stage
    hook, last = a_hook("PreSync", a_pod("hook"), deletes=policy), a_hook("PostSync", a_pod("last"))

    syncing = await stage.begin_sync(hook, last)
    await stage.becomes(hook, succeeded())
    await stage.client.settled(await stage.ref(last), lambda live: live is not None)
    lived = await stage.exists(hook)
    await stage.says(last, ends)
    run = await syncing.ends()

    goes = (run.result, policy) in (("passed", "HookSucceeded"), ("failed", "HookFailed"))
    assert lived
    assert await stage.changes("delete") == (["delete pods/hook"] if goes else [])
    assert named(run, EventType.HOOK_DELETED) == (["hook"] if goes else [])
    assert not await stage.holds(hook)


@case(38)
async def test_no_hook_is_deleted_while_another_hook_is_running(stage: ArgoStage) -> None:
    hooks = [a_hook("PreSync", a_pod(name), deletes="HookSucceeded") for name in "abc"]

    syncing = await stage.begin_sync(*hooks)
    for hook in hooks[:2]:
        await stage.becomes(hook, succeeded())
    await stage.becomes(hooks[2], running())
    await stage.passes(Ms(30 * SECOND))

    assert [await stage.holds(hook) for hook in hooks] == [True, True, True]
    await stage.says(hooks[2], succeeded())
    assert (await syncing.ends()).result == "passed"
    assert await stage.changes("delete") == [f"delete pods/{name}" for name in "abc"]


@case(39)
async def test_a_generated_name_contains_the_revision_and_the_phase(stage: ArgoStage) -> None:
    hook = a_hook("PreSync,PostSync", {**make_config_map(), "metadata": {"generateName": "note-"}})

    run = await stage.sync(hook)

    assert run.result == "passed"
    before, after = await stage.changes("create")
    begun = run.events[0].at // SECOND
    assert re.fullmatch(rf"create configmaps/note-[0-9a-z]{{7}}-presync-{begun}", before)
    assert after == before.replace("presync", "postsync")


@case(44)
async def test_a_hook_deleted_by_its_ttl_still_has_a_result(
    each_stage: ArgoStage,
) -> None:
    stage = each_stage
    hook = a_hook("PreSync", make_job("hook", ttl=0))

    syncing = await stage.begin_sync(hook, make_config_map())
    await stage.becomes(hook, complete())
    await stage.client.delete(await stage.ref(hook))
    run = await syncing.ends()

    assert run.result == "passed"
    assert finished(run) == {"hook": "passed"}
    await stage.goes(hook)
    assert await stage.changes("create") == ["create jobs/hook", "create configmaps/settings"]


async def _sync_with(stage: ArgoStage, hook: JsonObject, *, unless: str = "") -> None:
    """A sync that passes, with a hook that ends well; `unless` it is that of an earlier one."""
    syncing = await stage.begin_sync(hook, make_config_map())
    ref = await stage.ref(hook)
    await stage.client.settled(ref, lambda live: live is not None and live.uid != unless)
    await stage.says(hook, succeeded())
    assert (await syncing.ends()).result == "passed"


def _is_going(body: bytes) -> bool:
    return b"deletionTimestamp" in body
