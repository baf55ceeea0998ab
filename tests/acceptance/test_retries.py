"""Retries: a sync that is tried again starts over, hooks and all."""

from __future__ import annotations

from tests.acceptance.objects import a_hook, a_pod, failed, succeeded
from tests.acceptance.stage import ArgoStage, case, open_stage
from tidegate.model.event import Told
from tidegate.model.semantics import ARGOCD
from tidegate.sandbox.faults import CallFault, Match, Often, Refuse
from tidegate.sandbox.world import Sandbox
from tidegate.testing import Body
from tidegate.testing.builders import a_config_map
from tidegate.world.facts import Forbidden


@case(59)
async def test_hooks_run_again_when_a_sync_is_tried_again() -> None:
    busy = CallFault(Refuse(Forbidden("not now")), Match(name="settings"), Often(times=1))
    stage = await open_stage(Sandbox(faults=(busy,)))
    hook = a_hook("PreSync", a_pod("hook"))

    syncing = await stage.begin_sync(hook, a_config_map(), semantics=ARGOCD)
    await _both_become(stage, hook, succeeded(), succeeded())
    run = await syncing.ends()

    assert run.result == "passed"
    assert [event.reason for event in run.told(Told.RETRY_PLANNED)] == ["Forbidden"]
    assert await stage.deeds("create", "delete") == [
        "create pods/hook",
        "delete pods/hook",
        "create pods/hook",
        "create configmaps/settings",
    ]


@case(59)
async def test_a_hook_that_failed_has_another_chance(stage: ArgoStage) -> None:
    hook = a_hook("PreSync", a_pod("hook"))

    syncing = await stage.begin_sync(hook, a_config_map(), semantics=ARGOCD)
    await _both_become(stage, hook, failed(), succeeded())
    run = await syncing.ends()

    assert run.result == "passed"
    assert [event.step for event in run.told(Told.RETRY_PLANNED)] == [
        f"{stage.namespace}/presync/0"
    ]
    assert await stage.lives(a_config_map())


async def _both_become(stage: ArgoStage, hook: Body, first: Body, second: Body) -> None:
    """What the hook ends with, and what the one ends with that takes its place."""
    await stage.becomes(hook, first)
    old = await stage.live(hook)
    await stage.desk.settled(old.ref, lambda live: live is not None and live.uid != old.uid)
    await stage.says(hook, second)
