"""Ownership: objects of two units, adopted objects, and objects that are deleted with others."""

from __future__ import annotations

import pytest
from msgspec import structs

from tests.support.builders import (
    STAGED_POLICY,
    make_config_map,
    make_deployment,
    make_object,
    make_plan_from,
    make_unit,
)
from tests.support.cluster_client import require_live
from tests.support.objects import NAMESPACE, a_definition
from tests.support.rollout_objects import WEB, a_gate
from tests.support.rollout_runs import Run, with_policy
from tests.support.rollout_stage import PATIENT, Stage
from tests.support.rollout_statuses import ready
from tests.support.write_records import Record
from tidegate.dialect.ownership.tracking import UNIT
from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import JsonObject, Ref
from tidegate.model.plans.manifest import Manifests
from tidegate.model.plans.plan import Plan
from tidegate.model.rollouts.event import Event, EventType
from tidegate.world.messages import Success


def owned(body: JsonObject, unit: str) -> JsonObject:
    """An object that says whose it is."""
    metadata = get_mapping(body, "metadata")
    notes = get_mapping(metadata, "annotations")
    return {**body, "metadata": {**metadata, "annotations": {**notes, UNIT: unit}}}


def refused(run: Run) -> list[Event]:
    """The faults of a rollout that wrote nothing."""
    assert run.result == "invalid"
    assert not run.events_of(EventType.OBJECT_WRITTEN, EventType.ROLLOUT_STARTED)
    return run.events_of(EventType.OBJECT_REFUSED)


def two_units(stage: Stage, body: JsonObject) -> tuple[Manifests, Manifests]:
    """Two units that create the same object."""
    first, second = (f"{stage.namespace}-{suffix}" for suffix in ("one", "two"))
    extra = stage.here(make_config_map("extra"))
    return make_unit(extra, stage.here(body), name=first), make_unit(stage.here(body), name=second)


async def test_two_units_that_write_one_object_are_refused_before_the_first_write(
    living_stage: Stage, record: Record
) -> None:
    first, second = two_units(living_stage, make_config_map("shared"))
    await record.mark()

    run = await living_stage.start_plan(make_plan_from(first, second)).ends()

    faults = refused(run)
    assert [(fault.unit, fault.reason) for fault in faults] == [
        (first.unit.id, "Shared"),
        (second.unit.id, "Shared"),
    ]
    assert f"`{second.unit.id}`" in faults[0].message
    assert {fault.ref.name for fault in faults if fault.ref} == {"shared"}
    assert await record.written() == []


async def test_two_units_may_create_the_same_definition(living_stage: Stage) -> None:
    units = two_units(living_stage, a_definition(f"{living_stage.namespace}.example.org"))

    run = await living_stage.start_plan(make_plan_from(*units)).ends()

    assert run.result == "passed"


async def test_an_object_adopted_from_another_unit_is_reported_before_the_first_write(
    living_stage: Stage,
) -> None:
    stage = living_stage
    theirs = stage.here(owned(make_config_map("settings", mode="slow"), "their-unit"))
    live = require_live(await stage.client.apply(theirs))
    ours = owned(make_config_map("settings", mode="fast"), stage.namespace)

    run = await stage.roll_out(make_config_map("first"), ours)
    again = await stage.roll_out(make_config_map("first"), ours)

    (taken,) = run.events_of(EventType.OBJECT_ADOPTED)
    assert taken.ref == live.ref
    assert "`their-unit`" in taken.message
    first = run.events_of(EventType.OBJECT_WRITTEN)[0]
    assert run.events.index(taken) < run.events.index(first)
    assert (run.result, again.result) == ("passed", "passed")
    assert not again.events_of(EventType.OBJECT_ADOPTED)


def unshared_plan(stage: Stage) -> Plan:
    """A Deployment, and in the next wave an object that another unit may write, too."""
    plan = stage.plan(WEB, owned(make_config_map("shared", mode="ours"), stage.namespace))
    return with_policy(plan, fail_on_shared_resource=True, semantics=PATIENT)


@pytest.mark.parametrize("is_live", [True, False])
async def test_an_object_that_another_unit_takes_during_the_rollout_is_refused(
    stage: Stage, *, is_live: bool
) -> None:
    shared = stage.here(make_config_map("shared", mode="old"))
    if is_live:
        require_live(await stage.client.apply(shared))
    rollout = stage.start_plan(unshared_plan(stage))
    await rollout.waits("NotObserved")
    theirs = owned(shared, "their-unit")
    live = require_live(await stage.client.apply(theirs, manager="theirs", force=True))
    await stage.says(WEB, ready(1))

    run = await rollout.ends()

    (failed,) = run.events_of(EventType.STEP_FAILED)
    assert (run.result, failed.reason) == ("failed", "Shared")
    assert "`their-unit`" in failed.message
    assert require_live(await stage.client.get(live.ref)).resource_version == live.resource_version


class CreatedNamespace:
    """A namespace that a unit creates, with a Deployment of its own in it."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.name = f"{stage.namespace}-inner"
        self.ref = Ref(NAMESPACE, "", self.name)
        self._namespace = self._owned(make_object("v1 Namespace", self.name, namespace=""))
        web = make_deployment("web")
        inside = {**get_mapping(web, "metadata"), "namespace": self.name}
        self._web = self._owned({**web, "metadata": inside})
        self._rest = self._owned(make_config_map("rest"))

    def _owned(self, body: JsonObject) -> JsonObject:
        return owned(body, self._stage.namespace)

    async def create(self) -> None:
        run = await self._stage.roll_out(self._namespace, self._web, self._rest, semantics=PATIENT)
        assert run.result == "passed"

    async def give(self, name: str, *, owner: str = "") -> None:
        """Put an object into it that the unit does not create."""
        body = make_object("v1 ConfigMap", name, namespace=self.name)
        require_live(
            await self._stage.client.apply(owned(body, owner) if owner else body, manager="x")
        )

    def without(self) -> Plan:
        """The unit when the namespace has left Git."""
        return with_policy(self._stage.plan(self._rest), semantics=PATIENT, prune=True)


@pytest.fixture
async def inner(living_stage: Stage) -> CreatedNamespace:
    inner = CreatedNamespace(living_stage)
    await inner.create()
    return inner


async def test_a_namespace_with_objects_of_other_owners_is_not_pruned(
    living_stage: Stage, record: Record, inner: CreatedNamespace
) -> None:
    await inner.give("theirs", owner="their-unit")
    await inner.give("nobodys")
    await record.mark()

    (fault,) = refused(await living_stage.start_plan(inner.without()).ends())

    assert (fault.ref, fault.reason) == (inner.ref, "Contents")
    assert " 2 " in fault.message
    assert f"ConfigMap {inner.name}/nobodys" in fault.message
    assert f"ConfigMap {inner.name}/theirs" in fault.message
    assert "--yes-delete-contents" in fault.message
    assert await record.written() == []


async def test_with_permission_a_namespace_is_deleted_with_its_contents(
    living_stage: Stage, inner: CreatedNamespace
) -> None:
    await inner.give("theirs", owner="their-unit")

    agreed = with_policy(inner.without(), delete_contents=True)
    run = await living_stage.start_plan(agreed).ends()

    assert run.result == "passed"
    assert not isinstance(await living_stage.client.get(inner.ref), Success)


async def test_generated_objects_in_a_namespace_do_not_prevent_its_deletion(
    living_stage: Stage, inner: CreatedNamespace
) -> None:
    run = await living_stage.start_plan(inner.without()).ends()

    assert run.result == "passed"
    assert inner.ref in [event.ref for event in run.events_of(EventType.OBJECT_PRUNED)]


async def test_a_crd_with_objects_of_other_owners_is_not_pruned(living_stage: Stage) -> None:
    """Units in stages prune definitions; those in waves never do."""
    stage = living_stage
    group = f"{stage.namespace}.example.org"
    definition = owned(a_definition(group), stage.namespace)
    rest = stage.here(owned(make_config_map("rest"), stage.namespace))
    policy = structs.replace(STAGED_POLICY, semantics=PATIENT, prune=True)
    whole = make_unit((definition, rest), name=stage.namespace, policy=policy)
    assert (await stage.start_plan(make_plan_from(whole)).ends()).result == "passed"
    gate = require_live(await stage.client.apply(stage.here(a_gate(group)), manager="x"))

    left = make_unit(rest, name=stage.namespace, policy=policy)
    (fault,) = refused(await stage.start_plan(make_plan_from(left)).ends())

    assert fault.reason == "Contents"
    assert str(gate.ref) in fault.message
