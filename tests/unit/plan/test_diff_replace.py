"""What a replacement changes: desired fields that differ, and live ones that are not desired."""

from __future__ import annotations

import pytest

from tests.support.cluster_client import ClusterClient, require_body
from tests.support.live_objects import OURS, a_live, an_entry
from tests.support.objects import (
    SECRET,
    a_claim,
    a_config_map,
    a_gate,
    a_job,
    a_namespace,
    a_pod_template,
    a_service,
    an_object,
    labelled,
)
from tests.support.worlds import sandbox_world
from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.plans.change import DiffAction
from tidegate.plan.diff.replace import compare_replacement, replacement_fingerprint
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.resilient import ResilientWorld

SETTINGS = a_config_map(color="red")


async def really_put(body: JsonObject, *patches: tuple[str, JsonObject]) -> JsonObject:
    """The live body in the sandbox: created by us, then patched by these managers."""
    dispatcher = Dispatcher(ResilientWorld(sandbox_world()))
    await ClusterClient(dispatcher).create(a_namespace("shop"))
    client = ClusterClient(dispatcher, namespace="shop")
    live = require_body(await client.create(body, manager=OURS))
    for manager, patch in patches:
        live = require_body(await client.patch(await client.ref(body), patch, manager=manager))
    return live


def action_for(expected: JsonObject, live: JsonObject | None, fingerprint: str = "") -> DiffAction:
    return compare_replacement(expected, live, manager=OURS, fingerprint=fingerprint).action


def paths(expected: JsonObject, live: JsonObject, fingerprint: str = "") -> list[str]:
    result = compare_replacement(expected, live, manager=OURS, fingerprint=fingerprint)
    return [field.path for field in result.fields]


def data(**values: Json) -> JsonObject:
    return {"data": {**values}}


def test_a_missing_object_is_created() -> None:
    assert action_for(SETTINGS, None) is DiffAction.CREATE


async def test_an_object_in_sync_is_kept_even_where_nothing_was_recorded() -> None:
    assert action_for(SETTINGS, await really_put(SETTINGS)) is DiffAction.KEEP


async def test_a_desired_field_that_differs_is_replaced() -> None:
    live = await really_put(SETTINGS, ("other-client", data(color="green")))

    assert action_for(SETTINGS, live) is DiffAction.REPLACE
    assert paths(SETTINGS, live) == ["data.color"]


@pytest.mark.parametrize("manager", ["other-client", "kubectl-edit", OURS])
async def test_the_first_replacement_removes_fields_of_all_managers(manager: str) -> None:
    live = await really_put(SETTINGS, (manager, data(size="1")))

    assert paths(SETTINGS, live) == ["data.size"]


@pytest.mark.parametrize(
    ("manager", "changed"), [("other-client", []), ("kubectl-edit", ["data.size"])]
)
async def test_a_later_replacement_removes_only_fields_added_manually(
    manager: str, changed: list[str]
) -> None:
    fingerprint = replacement_fingerprint(SETTINGS, await really_put(SETTINGS))

    live = await really_put(SETTINGS, (manager, data(size="1")))

    assert paths(SETTINGS, live, fingerprint) == changed


@pytest.mark.parametrize("manager", ["other-client", "kubectl-edit"])
async def test_a_changed_desired_field_is_a_difference_for_any_manager(manager: str) -> None:
    fingerprint = replacement_fingerprint(SETTINGS, await really_put(SETTINGS))

    live = await really_put(SETTINGS, (manager, data(color="green")))

    assert paths(SETTINGS, live, fingerprint) == ["data.color"]


async def test_allocated_fields_of_a_service_are_kept() -> None:
    live = await really_put(a_service())

    assert action_for(a_service(), live) is DiffAction.KEEP


async def test_a_job_is_not_run_again_for_what_the_server_has_added() -> None:
    live = await really_put(a_job())

    assert action_for(a_job(), live) is DiffAction.KEEP


async def test_defaults_of_a_kind_of_ones_own_count_until_they_are_known_to_be_defaults() -> None:
    """They are unknown here; a replacement shows that they come back by themselves."""
    desired_gate = a_gate("example.org")
    owned: JsonObject = {"f:spec": {"f:color": {}, "f:size": {}}}
    body = a_gate("example.org", size=1)
    live = a_live(body, an_entry(OURS, owned, operation="Update"))

    assert paths(desired_gate, live) == ["spec.size"]
    assert (
        action_for(desired_gate, live, replacement_fingerprint(desired_gate, live))
        is DiffAction.KEEP
    )


def test_generated_fields_of_a_job_do_not_recreate_it() -> None:
    """It has the labels of its pods, and one completion, and so our manager owns them."""
    desired_job = a_job(template=a_pod_template())
    body = labelled(a_job(template=a_pod_template(), completions=1), app="web")
    owned: JsonObject = {
        "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
        "f:spec": {"f:completions": {}, "f:template": {"f:metadata": {"f:labels": {}}}},
    }
    live = a_live(body, an_entry(OURS, owned, operation="Update"))

    assert action_for(desired_job, live) is DiffAction.KEEP


def test_a_status_is_no_difference() -> None:
    desired_gate = a_gate("example.org")
    owned: JsonObject = {"f:spec": {"f:color": {}}, "f:status": {"f:ready": {}}}
    live = a_live({**desired_gate, "status": {"ready": True}}, an_entry("operator", owned))

    assert action_for(desired_gate, live) is DiffAction.KEEP


async def test_a_changed_immutable_field_recreates_the_object() -> None:
    live = await really_put(a_claim(), ("binder", {"spec": {"volumeName": "disk-1"}}))

    result = compare_replacement(a_claim(), live, manager=OURS, fingerprint="")

    assert (result.action, result.immutable_fields) == (DiffAction.RECREATE, ("spec.volumeName",))


async def test_a_secret_is_compared_and_its_fingerprint_hides_its_values() -> None:
    red, green = (an_object(SECRET, "key", data={"color": color}) for color in ("cmVk", "Z3I="))
    live = await really_put(red)
    changed: JsonObject = {**live, "data": {"color": "Z3I="}}

    assert replacement_fingerprint(red, live) == replacement_fingerprint(green, changed)
    assert action_for(red, live, replacement_fingerprint(red, live)) is DiffAction.KEEP
    result = compare_replacement(green, live, manager=OURS, fingerprint="")
    assert [(field.before, field.after) for field in result.fields] == [("***", "***")]


def test_an_object_without_field_owners_is_replaced_once() -> None:
    live = a_live(SETTINGS)

    assert action_for(SETTINGS, live) is DiffAction.REPLACE
    assert action_for(SETTINGS, live, replacement_fingerprint(SETTINGS, live)) is DiffAction.KEEP


async def test_labels_that_are_not_desired_are_removed() -> None:
    live = await really_put(labelled(SETTINGS, team="shop"))

    assert paths(SETTINGS, live) == ["metadata.labels.team"]


def test_a_seal_changes_with_the_object_it_is_of() -> None:
    live = a_live(SETTINGS)
    other: JsonObject = {**live, "metadata": {**get_mapping(live, "metadata"), "uid": "2"}}

    assert replacement_fingerprint(SETTINGS, live) != replacement_fingerprint(SETTINGS, other)
    assert replacement_fingerprint(SETTINGS, live) == replacement_fingerprint(
        SETTINGS, {**live, "status": {"a": 1}}
    )
