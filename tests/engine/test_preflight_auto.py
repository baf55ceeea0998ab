"""By default the server decides what the local rules cannot: once for all similar objects."""

from __future__ import annotations

import pytest

from tests.engine.test_preflight_server import DENIED, MUTATING, RecordingSandbox, a_hook, asking
from tests.support.builders import (
    make_config_map,
    make_deployment,
    make_job,
    make_object,
    make_plan_from,
)
from tests.support.rollout_runs import Run, roll_out
from tidegate.engine.cluster.preflight.dry_runs import DEFAULT_NAMESPACE
from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.plans.change import DiffAction
from tidegate.model.rollouts.event import EventType, StepState
from tidegate.model.units.policy import PreflightMode
from tidegate.sandbox.faults import CallFault, FaultSelector, Frequency, Rejection
from tidegate.world.messages import Forbidden, Invalid
from tidegate.world.requests import Call, Verb, Write

TRIED = ("apply", "create")
AUTO = asking(PreflightMode.AUTO)
SMALL = Invalid("spec.minReadySeconds: not so long")
SPACE = make_object("v1 Namespace", "shop", namespace="")


def with_spec(body: JsonObject, **spec: Json) -> JsonObject:
    return {**body, "spec": {**get_mapping(body, "spec"), **spec}}


def in_shop(body: JsonObject) -> JsonObject:
    return {**body, "metadata": {**get_mapping(body, "metadata"), "namespace": "shop"}}


def refused(run: Run) -> list[str]:
    return [event.ref.name for event in run.events_of(EventType.OBJECT_REFUSED) if event.ref]


async def test_no_dry_run_is_needed_for_what_local_rules_decide() -> None:
    world = RecordingSandbox()
    settled = (
        make_config_map("map", text="x"),
        make_object("v1 Secret", "login", stringData={"a": "b"}),
        make_object("v1 ServiceAccount", "own"),
        make_object("v1 Namespace", "other", namespace=""),
    )

    run = await roll_out(world, make_plan_from(settled), AUTO)

    assert run.result == "passed"
    assert world.dry_runs == []


async def test_one_dry_run_covers_all_similar_objects() -> None:
    world = RecordingSandbox()
    alike = tuple(make_deployment(name, image=f"{name}:1") for name in ("one", "two", "three"))
    other = with_spec(make_deployment("other"), minReadySeconds=3)

    run = await roll_out(world, make_plan_from(alike, other), AUTO)

    assert run.result == "passed"
    assert world.dry_runs == ["one", "other"]


async def test_after_a_rejection_each_object_gets_a_dry_run() -> None:
    world = RecordingSandbox(
        CallFault(Rejection(SMALL), FaultSelector(verbs=TRIED, kind="Deployment"))
    )
    alike = tuple(make_deployment(name) for name in ("one", "two", "three"))

    run = await roll_out(world, make_plan_from(make_config_map("first"), alike), AUTO)

    assert run.result == "invalid"
    assert refused(run) == ["one", "three", "two"]
    assert world.writes_for_good == []


async def test_a_matching_webhook_causes_a_dry_run_of_the_object() -> None:
    world = RecordingSandbox(
        CallFault(Rejection(DENIED), FaultSelector(kind="Deployment", name="two"))
    )
    world.give(a_hook(apiGroups=["apps"], resources=["deployments"]))

    run = await roll_out(
        world, make_plan_from((make_deployment("one"), make_deployment("two"))), AUTO
    )

    assert world.dry_runs == ["one", "two"]
    assert refused(run) == ["two"]


async def test_a_dry_run_of_a_change_contains_the_change() -> None:
    world = RecordingSandbox()
    old = tuple(make_deployment(name) for name in ("one", "two"))
    await roll_out(world, make_plan_from(old), AUTO)
    world.calls.clear()
    newer = tuple(make_deployment(name, image="app:2") for name in ("one", "two"))

    run = await roll_out(
        world, make_plan_from((*newer, make_deployment("three"))), asking(PreflightMode.AUTO, 1)
    )

    assert run.result == "passed"
    assert world.dry_runs == ["one", "three"]


async def test_an_object_of_a_new_namespace_is_tried_in_another_one() -> None:
    world = RecordingSandbox()

    run = await roll_out(world, make_plan_from(SPACE, in_shop(make_deployment("web"))), AUTO)

    assert run.result == "passed"
    (tried,) = [write for write in world.writes if write.dry_run]
    assert (tried.verb, tried.ref.namespace, tried.strict) == (Verb.CREATE, DEFAULT_NAMESPACE, True)


async def test_an_error_in_the_substitute_namespace_is_reported() -> None:
    world = RecordingSandbox(
        CallFault(Rejection(SMALL), FaultSelector(verbs=TRIED, kind="Deployment"))
    )

    run = await roll_out(world, make_plan_from(SPACE, in_shop(make_deployment("web"))), AUTO)

    assert refused(run) == ["web"]
    assert world.writes_for_good == []


@pytest.mark.parametrize("answer", [Forbidden("you may not"), DENIED])
async def test_errors_about_the_substitute_namespace_are_ignored(answer: Forbidden) -> None:
    there = FaultSelector(kind="Deployment", namespace=DEFAULT_NAMESPACE)
    world = RecordingSandbox(CallFault(Rejection(answer), there))

    run = await roll_out(world, make_plan_from(SPACE, in_shop(make_deployment("web"))), AUTO)

    assert run.result == "passed"
    assert len(world.dry_runs) == 2, "it is asked again in its step"


async def test_an_object_with_the_same_name_in_the_substitute_namespace_is_no_error() -> None:
    world = RecordingSandbox()
    world.give(make_deployment("web"))

    run = await roll_out(world, make_plan_from(SPACE, in_shop(make_deployment("web"))), AUTO)

    assert run.result == "passed"
    assert world.dry_runs == ["web"]


async def test_webhooks_of_the_substitute_namespace_are_not_called() -> None:
    world = RecordingSandbox()
    world.give(a_hook(apiGroups=["apps"], resources=["deployments"]))

    run = await roll_out(world, make_plan_from(SPACE, in_shop(make_deployment("web"))), AUTO)

    assert run.states["shop/sync/1"] is StepState.PASSED
    places = [write.ref.namespace for write in world.writes if write.dry_run]
    assert places == ["shop"], "when the namespace is there"


async def test_a_recreated_object_is_tried_as_a_new_one() -> None:
    world = RecordingSandbox()
    await roll_out(world, make_plan_from(make_job("migrate")), AUTO)
    world.calls.clear()

    run = await roll_out(
        world, make_plan_from(make_job("migrate", image="app:2")), asking(PreflightMode.AUTO, 1)
    )

    assert run.result == "passed"
    (tried,) = [write for write in world.writes if write.dry_run]
    assert (tried.verb, tried.ref.namespace) == (Verb.CREATE, "default")


class CrowdedSandbox(RecordingSandbox):
    """A sandbox in which an older rollout creates a Job just before ours is tried."""

    def submit(self, call: Call) -> None:
        is_first_trial = isinstance(call.request, Write) and call.request.dry_run
        if is_first_trial and not self.dry_runs:
            self.give(make_job("migrate"))
        super().submit(call)


async def test_an_object_that_was_created_before_its_dry_run_is_compared_again() -> None:
    world = CrowdedSandbox()

    run = await roll_out(world, make_plan_from(make_job("migrate", image="app:2")), AUTO)

    assert run.result == "passed"
    assert run.events_of(EventType.OBJECT_REFUSED) == []
    (written,) = run.events_of(EventType.OBJECT_WRITTEN)
    assert written.operation is DiffAction.RECREATE


async def test_an_exhausted_quota_is_no_error_yet() -> None:
    full = Forbidden('deployments.apps "web" is forbidden: exceeded quota: few, requested: 1')
    world = RecordingSandbox(
        CallFault(
            Rejection(full), FaultSelector(verbs=TRIED, kind="Deployment"), Frequency(times=1)
        )
    )

    run = await roll_out(
        world, make_plan_from(make_config_map("first"), make_deployment("web")), AUTO
    )

    assert run.events_of(EventType.OBJECT_REFUSED) == []
    assert run.result == "passed"


async def test_an_object_that_a_webhook_of_the_plan_may_change_is_no_error_yet() -> None:
    world = RecordingSandbox(
        CallFault(
            Rejection(SMALL), FaultSelector(verbs=TRIED, kind="Deployment"), Frequency(times=1)
        )
    )
    mending = {**a_hook(apiGroups=["apps"], resources=["deployments"]), "kind": MUTATING}

    run = await roll_out(world, make_plan_from(mending, make_deployment("web")), AUTO)

    assert run.events_of(EventType.OBJECT_REFUSED) == []
    assert run.result == "passed"
