"""Deletion of units: which objects are deleted, by policy and by the live objects."""

from __future__ import annotations

import pytest

from tests.conformance.argocd.stage import named
from tests.conformance.flux.stage import FluxStage, case
from tests.conformance.flux.test_apply import NOTE, setting
from tests.support.objects import held
from tests.support.rollout_runs import Run
from tidegate.clusters.evaluator import prune_candidate
from tidegate.health.readiness_timeout import readiness_timeout
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.plans.manifest import Manifests
from tidegate.model.rollouts.event import EventType
from tidegate.plan.build.build import plan_unit
from tidegate.plan.changes.delete_unit import build_deletion


async def end(flux: FluxStage, *bodies: JsonObject, **spec: Json) -> Run:
    """Delete the unit of which these live."""
    unit = flux.unit(spec)
    candidates = [prune_candidate(await flux.body(body), plan_unit(unit)) for body in bodies]
    going = [live for live in candidates if live is not None]
    plan = build_deletion(Manifests(unit=unit), going, readiness_timeout=readiness_timeout)
    rolling = flux.start_plan(plan)
    return await rolling.ends()


@case(48)
@pytest.mark.parametrize(
    ("policy", "prunes", "goes"),
    [
        ("MirrorPrune", True, True),
        ("MirrorPrune", False, False),
        ("Delete", False, True),
        ("WaitForTermination", False, True),
        ("Orphan", True, False),
    ],
)
async def test_the_deletion_policy_defines_which_objects_are_deleted(
    flux: FluxStage, policy: str, *, prunes: bool, goes: bool
) -> None:
    item = setting("one")
    await flux.reconcile(item)

    run = await end(flux, item, deletionPolicy=policy, prune=prunes)

    assert run.result == "passed"
    assert await flux.exists(item) is not goes


@case(48)
async def test_an_object_with_a_finalizer_is_awaited(flux: FluxStage) -> None:
    item = held(setting("one"))
    await flux.reconcile(item)
    unit = flux.unit({"deletionPolicy": "WaitForTermination"})
    stale = prune_candidate(await flux.body(item), plan_unit(unit))
    assert stale is not None
    rolling = flux.start_plan(
        build_deletion(Manifests(unit=unit), [stale], readiness_timeout=readiness_timeout)
    )

    await rolling.waits("Deleting")

    await rolling.stops()
    assert await flux.exists(item)


@case(46, 48)
async def test_prune_disabled_on_a_live_object_keeps_it(flux: FluxStage) -> None:
    item = setting("one")
    await flux.reconcile(item)
    note: JsonObject = {"metadata": {"annotations": {f"{NOTE}prune": "disabled"}}}
    await flux.client.patch(await flux.ref(item), note, manager="kubectl-edit")

    await end(flux, item)

    assert await flux.exists(item)


@case(18)
async def test_a_unit_that_cannot_start_can_be_deleted(flux: FluxStage) -> None:
    item = setting("one")
    await flux.reconcile(item)

    run = await end(flux, item, dependsOn=[{"name": "never-ready"}])

    assert (run.result, named(run, EventType.OBJECT_PRUNED)) == ("passed", ["one"])
    assert not await flux.exists(item)


async def test_kinds_are_deleted_in_reverse_apply_order(flux: FluxStage) -> None:
    account: JsonObject = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "who", "namespace": "default"},
    }
    service: JsonObject = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"ports": [{"port": 80}]},
    }
    bodies = (setting("one"), account, service)
    await flux.reconcile(*bodies)

    run = await end(flux, *bodies)

    assert named(run, EventType.OBJECT_PRUNED) == ["web", "one", "who"]
