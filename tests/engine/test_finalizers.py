"""Objects to delete that a finalizer of another controller holds."""

from __future__ import annotations

import pytest
from msgspec import structs

from tests.support.builders import (
    make_config_map,
    make_job,
    make_manifest,
    make_plan_from,
    make_unit,
)
from tests.support.cluster_client import require_live
from tests.support.rollout_stage import PATIENT, RunningRollout, Stage
from tests.support.rollout_statuses import complete
from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import JsonObject
from tidegate.model.plans.manifest import Phase
from tidegate.model.plans.plan import HookPolicy
from tidegate.model.rollouts.event import EventType
from tidegate.model.times import SECOND, Ms

PROMPT = structs.replace(PATIENT, deadline=Ms(3 * SECOND), is_deadline_exact=True)
HOLD = "example.org/hold"
OLD, NEW = make_job("migrate"), make_job("migrate", image="app:2")


def held(body: JsonObject) -> JsonObject:
    return {**body, "metadata": {**get_mapping(body, "metadata"), "finalizers": [HOLD]}}


def start_hook(stage: Stage) -> RunningRollout:
    """Start a unit whose hook is deleted before it is created again."""
    manifest = make_manifest(stage.here(NEW), phase=Phase.PRE_SYNC)
    hook = structs.replace(manifest, hook_policies=(HookPolicy.BEFORE_CREATION,))
    unit = make_unit((stage.here(make_config_map()),), name=stage.namespace)
    return stage.start_plan(
        make_plan_from(structs.replace(unit, manifests=(hook, *unit.manifests)))
    )


async def release(stage: Stage) -> None:
    ref = await stage.ref(OLD)
    require_live(await stage.client.patch(ref, {"metadata": {"finalizers": None}}))


@pytest.mark.parametrize("kind", ["plain", "hook"])
async def test_a_gate_names_the_finalizer_that_keeps_an_object_from_being_recreated(
    stage: Stage, kind: str
) -> None:
    require_live(await stage.client.create(stage.here(held(OLD))))

    rolling = start_hook(stage) if kind == "hook" else stage.start(NEW, make_config_map())
    waiting = await rolling.waits("Deleting", message=HOLD)
    await release(stage)
    await rolling.waits("Running")
    await stage.says(NEW, complete())
    run = await rolling.ends()

    assert (waiting.ref and waiting.ref.name, bool(waiting.until)) == ("migrate", True)
    assert run.result == "passed"


async def test_a_finalizer_that_is_not_removed_fails_the_step_at_its_deadline(
    stage: Stage,
) -> None:
    require_live(await stage.client.create(stage.here(held(OLD))))

    run = await stage.roll_out(NEW, make_config_map(), semantics=PROMPT)

    await release(stage)
    (failed,) = run.events_of(EventType.STEP_FAILED)
    assert failed.reason == "Deadline"
    assert HOLD in failed.message
    assert not run.events_of(EventType.OBJECT_WRITTEN)
