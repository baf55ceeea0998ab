"""Replacing and forcing: what takes the place of what is there, and when it is made again."""

from __future__ import annotations

import pytest

from tests.conformance.argocd.objects import annotated, in_wave, operations, with_options
from tests.conformance.argocd.stage import ArgoStage, case, named
from tests.support.builders import make_config_map, make_deployment, make_job, make_object
from tests.support.objects import a_definition
from tidegate.dialect.argo.options import SYNC_OPTIONS
from tidegate.model.k8s.json_fields import get_mapping, get_text
from tidegate.model.k8s.objects import JsonObject
from tidegate.model.rollouts.event import EventType

REPLACE = "Replace=true"


@case(50)
@pytest.mark.parametrize("level", ["object", "unit", "live"])
async def test_replace_removes_fields_of_others_and_then_writes_nothing(
    each_stage: ArgoStage, level: str
) -> None:
    stage, settings = each_stage, make_config_map(color="red")
    await stage.sync(settings)
    added: JsonObject = {"data": {"size": "1"}}
    if level == "live":
        added = {**added, "metadata": {"annotations": {SYNC_OPTIONS: REPLACE}}}
    await stage.client.patch(await stage.ref(settings), added, manager="other-client")
    expected = with_options(REPLACE, settings) if level == "object" else settings
    options = (REPLACE,) if level == "unit" else ()
    await stage.record.mark()

    first = await stage.sync(expected, options=options)
    replaced = await stage.body(settings)
    second = await stage.sync(expected, options=options)

    assert (first.result, second.result) == ("passed", "passed")
    assert replaced["data"] == {"color": "red"}
    assert await stage.changes() == ["change configmaps/settings"]


@case(50)
async def test_without_replace_fields_of_others_stay(each_stage: ArgoStage) -> None:
    stage, settings = each_stage, make_config_map(color="red")
    await stage.sync(settings)
    ref = await stage.ref(settings)
    await stage.client.patch(ref, {"data": {"size": "1"}}, manager="other-client")
    await stage.record.mark()

    run = await stage.sync(settings)

    assert run.result == "passed"
    assert (await stage.body(settings))["data"] == {"color": "red", "size": "1"}
    assert await stage.changes() == []


@case(50)
async def test_replace_keeps_fields_that_controllers_add(
    each_stage: ArgoStage,
) -> None:
    stage, web = each_stage, with_options(REPLACE, make_deployment())
    await stage.sync(web)
    noted: JsonObject = {"metadata": {"annotations": {"deployment.kubernetes.io/revision": "1"}}}
    ref = await stage.ref(web)
    await stage.client.patch(ref, noted, manager="kube-controller-manager")
    await stage.record.mark()

    again = await stage.sync(web)
    untouched = await stage.changes()
    await stage.client.patch(ref, {"metadata": {"labels": {"by": "hand"}}}, manager="kubectl-label")
    fixed = await stage.sync(web)

    assert (again.result, fixed.result) == ("passed", "passed")
    assert untouched == []
    assert "labels" not in get_mapping(await stage.body(web), "metadata")


@case(50)
async def test_replace_reverts_a_drifted_field(each_stage: ArgoStage) -> None:
    stage, web = each_stage, with_options(REPLACE, make_deployment(replicas=2))
    await stage.sync(web)
    await stage.client.patch(
        await stage.ref(web), {"spec": {"replicas": 5}}, manager="other-client"
    )

    await stage.sync(web)
    body = await stage.body(web)
    await stage.record.mark()
    await stage.sync(web)

    assert get_mapping(body, "spec")["replicas"] == 2
    assert await stage.changes() == []


@case(50)
@pytest.mark.parametrize("options", [REPLACE, f"{REPLACE},ServerSideApply=true"])
async def test_replace_creates_a_missing_object_and_never_applies(
    each_stage: ArgoStage, options: str
) -> None:
    stage = each_stage

    await stage.sync(with_options(options, make_config_map(color="red")))
    created = await stage.body(make_config_map())
    await stage.sync(with_options(options, make_config_map(color="green")))
    replaced = await stage.body(make_config_map())

    assert operations(created) == operations(replaced) == {"Update"}
    assert replaced["data"] == {"color": "green"}
    assert get_text(created, "metadata", "uid") == get_text(replaced, "metadata", "uid")


@case(50)
async def test_a_namespace_and_a_crd_are_replaced_in_place(
    each_stage: ArgoStage,
) -> None:
    stage, group = each_stage, each_stage.group
    place = make_object("v1 Namespace", f"{stage.namespace}-own", namespace="")
    definition = a_definition(group)
    await stage.sync(place, definition)
    uids = [(await stage.live(item)).uid for item in (place, definition)]

    changed = [annotated(item, "example.org/team", "shop") for item in (place, definition)]
    run = await stage.sync(*changed, options=(REPLACE,))
    await stage.record.mark()
    again = await stage.sync(*changed, options=(REPLACE,))

    assert (run.result, again.result) == ("passed", "passed")
    assert [(await stage.live(item)).uid for item in changed] == uids
    assert await stage.changes() == []


async def test_an_impossible_replacement_is_rejected_in_its_wave(
    each_stage: ArgoStage,
) -> None:
    """Its server has put fields into it that must stay, and Git does not have them."""
    stage, job = each_stage, with_options(REPLACE, make_job())
    await stage.sync(job)
    await stage.record.mark()

    run = await stage.sync(
        make_config_map(), in_wave(1, annotated(job, "example.org/team", "shop"))
    )

    assert run.result == "failed"
    assert named(run, EventType.OBJECT_REFUSED) == ["migrate"]
    assert await stage.changes() == ["create configmaps/settings"]


@case(50)
async def test_force_with_replace_recreates_a_changed_object(
    each_stage: ArgoStage,
) -> None:
    stage, options = each_stage, f"Force=true,{REPLACE}"
    await stage.sync(with_options(options, make_config_map(color="red")))
    first = (await stage.live(make_config_map())).uid

    await stage.sync(with_options(options, make_config_map(color="red")))
    second = (await stage.live(make_config_map())).uid
    await stage.sync(with_options(options, make_config_map(color="green")))
    third = await stage.live(make_config_map())

    assert first == second != third.uid
    assert b"green" in third.body


@pytest.mark.parametrize("level", ["object", "live"])
async def test_force_recreates_an_object_with_a_changed_immutable_field(
    each_stage: ArgoStage, level: str
) -> None:
    stage, frozen = each_stage, {**make_config_map(color="red"), "immutable": True}
    await stage.sync(frozen)
    before = (await stage.live(frozen)).uid
    expected: JsonObject = {**frozen, "data": {"color": "green"}}
    refused = await stage.sync(expected)
    if level == "live":
        noted: JsonObject = {"metadata": {"annotations": {SYNC_OPTIONS: "Force=true"}}}
        await stage.client.patch(await stage.ref(frozen), noted, manager="other-client")
    else:
        expected = with_options("Force=true", expected)

    run = await stage.sync(expected)

    assert (refused.result, run.result) == ("failed", "passed")
    assert (await stage.live(frozen)).uid != before
    assert (await stage.body(frozen))["data"] == {"color": "green"}


async def test_without_the_replace_option_an_object_is_applied_without_its_former_fields(
    each_stage: ArgoStage,
) -> None:
    stage = each_stage
    await stage.sync(make_config_map(color="red", size="1"), options=(REPLACE,))

    await stage.sync(make_config_map(color="red"))
    body = await stage.body(make_config_map())
    await stage.record.mark()
    await stage.sync(make_config_map(color="red"))

    assert body["data"] == {"color": "red"}
    assert operations(body) == {"Apply"}
    assert await stage.changes() == []
