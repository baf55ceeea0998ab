"""Applying: stages, what an object says itself, drift, force."""

from __future__ import annotations

import pytest

from tests.conformance.argocd.objects import annotated
from tests.conformance.argocd.stage import named
from tests.conformance.flux.stage import FluxStage, case
from tests.support.builders import make_config_map, make_object
from tests.support.objects import a_namespace
from tidegate.dialect.semantics import with_controller_settings
from tidegate.errors import Location
from tidegate.model.config import ControllerSetting
from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.plans.plan import Plan, step_items
from tidegate.model.rollouts.event import EventType

NOTE = "kustomize.toolkit.fluxcd.io/"


def setting(name: str, **data: str) -> JsonObject:
    return {**make_config_map(name), "data": dict(data)}


def noted(body: JsonObject, word: str, value: str) -> JsonObject:
    return annotated(body, f"{NOTE}{word}", value)


def labelled(body: JsonObject, word: str, value: str) -> JsonObject:
    metadata = get_mapping(body, "metadata")
    return {**body, "metadata": {**metadata, "labels": {f"{NOTE}{word}": value}}}


async def data_of(stage: FluxStage, body: JsonObject) -> JsonObject:
    return get_mapping(await stage.body(body), "data")


@case(40)
async def test_an_unchanged_object_is_not_written(each_flux: FluxStage) -> None:
    flux, item = each_flux, setting("one", a="1")
    await flux.reconcile(item)
    before = (await flux.live(item)).resource_version

    run = await flux.reconcile(item)

    assert (run.result, named(run, EventType.OBJECT_WRITTEN)) == ("passed", [])
    assert (await flux.live(item)).resource_version == before


@case(41)
async def test_a_manual_edit_is_reverted(each_flux: FluxStage) -> None:
    flux, item = each_flux, setting("one", a="1")
    await flux.reconcile(item)
    await flux.client.patch(await flux.ref(item), {"data": {"a": "2"}}, manager="kubectl-edit")

    await flux.reconcile(item)

    assert await data_of(flux, item) == {"a": "1"}


@case(41)
async def test_reconcile_disabled_on_a_live_object_prevents_writes(each_flux: FluxStage) -> None:
    flux, item = each_flux, setting("one", a="1")
    await flux.reconcile(item)
    ref, note = await flux.ref(item), f"{NOTE}reconcile"
    edit: JsonObject = {"data": {"a": "2"}, "metadata": {"annotations": {note: "Disabled"}}}
    await flux.client.patch(ref, edit, manager="kubectl-edit")

    run = await flux.reconcile(setting("one", a="3"))
    kept = await data_of(flux, item)
    await flux.client.patch(ref, {"metadata": {"annotations": {note: "enabled"}}}, manager="other")
    await flux.reconcile(setting("one", a="3"))

    assert run.result == "passed"
    assert kept == {"a": "2"}
    assert await data_of(flux, item) == {"a": "3"}


@case(44)
async def test_ssa_if_not_present_creates_once_and_prunes(
    each_flux: FluxStage,
) -> None:
    flux, first = each_flux, noted(setting("one", a="1"), "ssa", "IfNotPresent")
    await flux.reconcile(first)

    run = await flux.reconcile(noted(setting("one", a="2"), "ssa", "ifnotpresent"))

    assert (run.result, named(run, EventType.OBJECT_WRITTEN)) == ("passed", [])
    assert await data_of(flux, first) == {"a": "1"}
    await flux.reconcile()
    assert not await flux.exists(first)


@case(53)
@pytest.mark.parametrize("word", [("ssa", "Ignore"), ("reconcile", "disabled")])
async def test_ssa_ignore_in_git_prevents_creation_and_the_health_check(
    flux: FluxStage, word: tuple[str, str]
) -> None:
    left = noted(make_object("apps/v1 Deployment", "never", spec={}), *word)

    run = await flux.reconcile(left, setting("one"), wait=True)

    assert run.result == "passed"
    assert named(run, EventType.OBJECT_SKIPPED) == ["never"]
    assert await flux.changes("create") == ["create configmaps/one"]


@case(53)
async def test_an_object_that_becomes_ignored_is_not_pruned(flux: FluxStage) -> None:
    item = setting("one", a="1")
    await flux.reconcile(item)

    await flux.reconcile(labelled(setting("one", a="2"), "ssa", "ignore"))

    assert await data_of(flux, item) == {"a": "1"}


@case(42)
async def test_an_ignored_field_keeps_its_live_value_when_others_are_reverted(
    each_flux: FluxStage,
) -> None:
    flux, item = each_flux, setting("one", x="1", y="1")
    rules: Json = [{"paths": ["/data/x"], "target": {"kind": "ConfigMap"}}]
    await flux.reconcile(item, ignore=rules)
    ref = await flux.ref(item)
    await flux.client.patch(ref, {"data": {"x": "2"}}, manager="other")

    first = await flux.reconcile(item, ignore=rules)
    await flux.client.patch(ref, {"data": {"y": "2"}}, manager="other")
    second = await flux.reconcile(item, ignore=rules)

    assert (named(first, EventType.OBJECT_WRITTEN), named(second, EventType.OBJECT_WRITTEN)) == (
        [],
        ["one"],
    )
    assert await data_of(flux, item) == {"x": "2", "y": "1"}


@case(43)
async def test_an_immutable_change_fails_and_force_recreates_the_object(
    each_flux: FluxStage,
) -> None:
    flux = each_flux
    secret: JsonObject = {
        **make_object("v1 Secret", "one"),
        "immutable": True,
        "stringData": {"a": "1"},
    }
    changed: JsonObject = {**secret, "stringData": {"a": "2"}}
    await flux.reconcile(secret)
    before = (await flux.live(secret)).uid

    refused = await flux.reconcile(changed)
    forced = await flux.reconcile(changed, force=True)

    assert (refused.result, forced.result) == ("invalid", "passed")
    assert (await flux.live(secret)).uid != before


@case(43)
async def test_the_force_annotation_of_an_object_recreates_it(flux: FluxStage) -> None:
    secret: JsonObject = {
        **make_object("v1 Secret", "one"),
        "immutable": True,
        "stringData": {"a": "1"},
    }
    changed = noted({**secret, "stringData": {"a": "2"}}, "force", "Enabled")
    await flux.reconcile(secret)

    assert (await flux.reconcile(changed)).result == "passed"


@case(36)
async def test_crds_and_namespaces_are_applied_first(
    each_flux: FluxStage,
) -> None:
    flux = each_flux
    group, place = flux.group, f"{flux.namespace}-more"
    definition = a_definition(group)
    thing: JsonObject = {
        "apiVersion": f"{group}/v1",
        "kind": "Thing",
        "metadata": {"name": "one", "namespace": place},
    }
    inside = setting("inside")
    inside = {**inside, "metadata": {**get_mapping(inside, "metadata"), "namespace": place}}

    run = await flux.reconcile(thing, inside, definition, a_namespace(place), targetNamespace="")

    assert run.result == "passed", run.events[-5:]
    order = named(run, EventType.OBJECT_WRITTEN)
    assert set(order[:2]) == {f"things.{group}", place}
    assert set(order[2:]) == {"one", "inside"}


def a_definition(group: str) -> JsonObject:
    spec: JsonObject = {
        "group": group,
        "scope": "Namespaced",
        "names": {"kind": "Thing", "plural": "things", "singular": "thing", "listKind": "Things"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }
        ],
    }
    kind: JsonObject = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
    }
    return {**kind, "metadata": {"name": f"things.{group}"}, "spec": spec}


@case(37, 38)
async def test_one_invalid_object_prevents_all_writes_of_its_unit(
    each_flux: FluxStage,
) -> None:
    """Flux writes stages before it looks at the next; here nothing is."""
    flux = each_flux
    bad: JsonObject = {**setting("bad"), "data": {"a": {"nested": "1"}}}

    run = await flux.reconcile(setting("one"), bad, setting("two"))

    assert run.result == "invalid"
    assert await flux.changes("create") == []


@case(39)
async def test_custom_stage_kinds_are_applied_before_the_rest(flux: FluxStage) -> None:
    """`--custom-apply-stage-kinds`; Roles come before what binds them in any case."""
    switch = ControllerSetting(
        "kustomize-controller.custom-apply-stage-kinds", "Secret", Location("flags.yaml")
    )
    unit = flux.unit({})
    policy = with_controller_settings(unit.policy, {switch.name: switch}, flux.namespace)
    secret: JsonObject = {**make_object("v1 Secret", "one"), "stringData": {}}
    role: JsonObject = make_object("rbac.authorization.k8s.io/v1 Role", "role", rules=[])
    reference: JsonObject = {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "Role",
        "name": "role",
    }
    binding: JsonObject = make_object(
        "rbac.authorization.k8s.io/v1 RoleBinding", "binding", roleRef=reference, subjects=[]
    )
    account: JsonObject = make_object("v1 ServiceAccount", "who")

    usual = await flux.wants(secret, account, binding, role)
    changed = await flux.wants(secret, account, binding, role, policy=policy)

    assert names_of(usual) == ["who", "role", "binding", "one"]
    assert names_of(changed) == ["one", "who", "role", "binding"]


def names_of(plan: Plan) -> list[str]:
    return [item.ref.name for step in plan.steps for item in step_items(step)]
