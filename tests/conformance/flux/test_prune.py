"""Pruning: which objects are deleted or kept, and whether their deletion is awaited."""

from __future__ import annotations

import pytest

from tests.conformance.argocd.stage import named
from tests.conformance.flux.stage import FluxStage, case, open_flux
from tests.conformance.flux.test_apply import NOTE, setting
from tests.support.objects import held
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.rollouts.event import EventType
from tidegate.model.times import MINUTE, Ms
from tidegate.sandbox.faults import CallFault, FaultSelector, Frequency, Rejection
from tidegate.sandbox.world import Sandbox
from tidegate.world.messages import Forbidden


@case(23)
async def test_an_empty_unit_prunes_all_objects_and_creates_them_again_later(
    each_flux: FluxStage,
) -> None:
    flux, bodies = each_flux, [setting(name) for name in ("a", "b", "c")]
    await flux.reconcile(*bodies)

    emptied = await flux.reconcile()
    gone = [await flux.exists(body) for body in bodies]
    again = await flux.reconcile(*bodies)

    assert (emptied.result, again.result) == ("passed", "passed")
    assert gone == [False, False, False]
    assert [await flux.exists(body) for body in bodies] == [True, True, True]


@case(46)
@pytest.mark.parametrize(
    ("word", "value"), [("prune", "Disabled"), ("reconcile", "disabled"), ("ssa", "Ignore")]
)
async def test_prune_disabled_on_a_live_object_prevents_pruning(
    flux: FluxStage, word: str, value: str
) -> None:
    item = setting("one")
    await flux.reconcile(item)
    note: JsonObject = {"metadata": {"annotations": {f"{NOTE}{word}": value}}}
    await flux.client.patch(await flux.ref(item), note, manager="kubectl-edit")

    runs = [await flux.reconcile(setting("other")) for _ in range(2)]

    assert [run.result for run in runs] == ["passed", "passed"]
    assert await flux.exists(item)


@case(46)
async def test_an_object_adopted_by_another_unit_is_not_pruned(each_flux: FluxStage) -> None:
    flux, item = each_flux, setting("one")
    await flux.reconcile(item)
    taken: JsonObject = {"metadata": {"labels": {f"{NOTE}name": "other"}}}
    await flux.client.patch(await flux.ref(item), taken, manager="kustomize-controller")

    run = await flux.reconcile(setting("other"))

    assert run.result == "passed"
    assert await flux.exists(item)


@case(46)
async def test_without_prune_nothing_is_deleted(flux: FluxStage) -> None:
    item = setting("one")
    await flux.reconcile(item, prune=False)

    await flux.reconcile(setting("other"), prune=False)

    assert await flux.exists(item)


async def test_pruning_follows_all_writes_and_precedes_the_health_check(
    each_flux: FluxStage,
) -> None:
    flux, old, new = each_flux, setting("old"), setting("new")
    await flux.reconcile(old)
    await flux.record.mark()
    missing: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "name": "nowhere"}
    checks: Json = [{**missing, "namespace": flux.namespace}]

    rolling = await flux.begin_reconcile(new, healthChecks=checks)
    await rolling.waits_for("nowhere")

    assert await flux.changes("create", "delete") == [
        "create configmaps/new",
        "delete configmaps/old",
    ]
    await rolling.stops()


async def test_the_deletion_of_pruned_objects_is_not_awaited(each_flux: FluxStage) -> None:
    flux, old = each_flux, held(setting("old"))
    await flux.reconcile(old)

    run = await flux.reconcile(setting("new"), wait=True)

    assert run.result == "passed"
    assert named(run, EventType.OBJECT_PRUNED) == ["old"]
    assert await flux.exists(old), "somebody holds it"


@case(47)
async def test_a_rejected_deletion_is_retried_until_it_succeeds() -> None:
    refused = CallFault(
        Rejection(Forbidden("a policy keeps it")),
        FaultSelector(verbs=("delete",), name="old"),
        Frequency(times=1),
    )
    flux = await open_flux(Sandbox(faults=(refused,)))
    old = setting("old")
    await flux.reconcile(old)

    begun = flux.world.now()
    run = await flux.reconcile(setting("new"))

    (again,) = run.events_of(EventType.RETRY_SCHEDULED)
    assert "a policy keeps it" in again.message
    assert run.result == "passed"
    assert Ms(flux.world.now() - begun) >= MINUTE, "a minute is its `retryInterval`"
    assert not await flux.exists(old)
