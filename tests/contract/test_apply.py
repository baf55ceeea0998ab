"""Promises about server-side apply: who owns what, and what becomes of it."""

from __future__ import annotations

from tests.support.cluster_client import ClusterClient, require_body, require_live
from tests.support.objects import (
    a_config_map,
    a_container,
    a_deployment,
    a_pod_template,
    a_service,
    at,
    labelled,
)
from tidegate.model.k8s.objects import JsonObject
from tidegate.world.messages import Conflict, FieldOwner, Success


def containers(outcome_body: JsonObject) -> dict[str, str]:
    result = at(outcome_body, "spec", "template", "spec", "containers")
    assert isinstance(result, list)
    return {str(at(item, "name")): str(at(item, "image")) for item in result}


async def test_an_apply_creates_what_is_not_there(client: ClusterClient) -> None:
    outcome = await client.apply(a_config_map(color="blue"))

    assert require_body(await client.get(require_live(outcome).ref))["data"] == {"color": "blue"}


async def test_an_apply_changes_what_is_there(client: ClusterClient) -> None:
    first = require_live(await client.apply(a_config_map(color="blue")))

    second = await client.apply(a_config_map(color="red"))

    assert require_body(second)["data"] == {"color": "red"}
    assert require_live(second).uid == first.uid
    assert require_live(second).resource_version != first.resource_version


async def test_an_apply_that_changes_nothing_keeps_the_version(client: ClusterClient) -> None:
    first = require_live(await client.apply(a_config_map(color="blue")))

    second = require_live(await client.apply(a_config_map(color="blue")))

    assert second.resource_version == first.resource_version


async def test_a_field_that_its_manager_no_longer_applies_is_removed(client: ClusterClient) -> None:
    await client.apply(a_config_map(color="blue", size="big"))

    outcome = await client.apply(a_config_map(color="blue"))

    assert require_body(outcome)["data"] == {"color": "blue"}


async def test_a_field_of_another_manager_is_kept(client: ClusterClient) -> None:
    await client.apply(a_config_map(color="blue"))
    await client.apply(a_config_map(size="big"), manager="other")

    outcome = await client.apply(a_config_map(color="red"))

    assert require_body(outcome)["data"] == {"color": "red", "size": "big"}


async def test_a_field_of_two_managers_stays_until_both_remove_it(client: ClusterClient) -> None:
    await client.apply(a_config_map(color="blue"))
    await client.apply(a_config_map(color="blue"), manager="other")

    one_left = require_body(await client.apply(a_config_map(size="big")))["data"]
    none_left = require_body(await client.apply(a_config_map(), manager="other"))["data"]

    assert one_left == {"color": "blue", "size": "big"}
    assert none_left == {"size": "big"}


async def test_a_conflict_names_the_manager_and_the_field(client: ClusterClient) -> None:
    await client.apply(a_config_map(color="blue"), manager="other")

    outcome = await client.apply(a_config_map(color="red"))

    assert isinstance(outcome, Conflict)
    assert outcome.owners == (FieldOwner("other", "data.color"),)


async def test_a_conflict_changes_nothing(client: ClusterClient) -> None:
    before = require_live(await client.apply(a_config_map(color="blue"), manager="other"))

    await client.apply(a_config_map(color="red"))

    assert require_live(await client.get(before.ref)).resource_version == before.resource_version


async def test_force_takes_the_field_over(client: ClusterClient) -> None:
    await client.apply(a_config_map(color="blue"), manager="other")

    forced = await client.apply(a_config_map(color="red"), force=True)
    theirs = await client.apply(a_config_map(color="blue"), manager="other")

    assert require_body(forced)["data"] == {"color": "red"}
    assert isinstance(theirs, Conflict)
    assert theirs.owners == (FieldOwner("tidegate", "data.color"),)


async def test_the_same_value_from_two_managers_is_no_conflict(client: ClusterClient) -> None:
    await client.apply(a_config_map(color="blue"), manager="other")

    outcome = await client.apply(a_config_map(color="blue"))

    assert isinstance(outcome, Success)


async def test_managed_fields_record_who_applied_what(client: ClusterClient) -> None:
    outcome = await client.apply(a_config_map(color="blue"))

    entries = at(require_body(outcome), "metadata", "managedFields")
    assert isinstance(entries, list)
    assert [(at(entry, "manager"), at(entry, "operation")) for entry in entries] == [
        ("tidegate", "Apply")
    ]
    assert at(entries[0], "fieldsV1") == {"f:data": {"f:color": {}}}


async def test_an_update_takes_fields_over_without_asking(client: ClusterClient) -> None:
    applied = await client.apply(a_config_map(color="blue"))
    await client.replace({**require_body(applied), "data": {"color": "red"}}, manager="editor")

    outcome = await client.apply(a_config_map(color="blue"))

    assert isinstance(outcome, Conflict)
    assert outcome.owners == (FieldOwner("editor", "data.color"),)


async def test_lists_are_merged_by_their_keys(client: ClusterClient) -> None:
    side = a_deployment(template=a_pod_template(a_container("app"), a_container("proxy")))
    await client.apply(a_deployment())

    await client.apply(side, manager="other")
    outcome = await client.apply(
        a_deployment(template=a_pod_template(a_container("app", "registry.example/app:2"))),
        force=True,
    )

    assert containers(require_body(outcome)) == {
        "app": "registry.example/app:2",
        "proxy": "registry.example/app:1",
    }


async def test_a_list_item_that_its_manager_no_longer_names_is_removed(
    client: ClusterClient,
) -> None:
    both = a_pod_template(a_container("app"), a_container("proxy"))
    await client.apply(a_deployment(template=both))

    outcome = await client.apply(a_deployment())

    assert set(containers(require_body(outcome))) == {"app"}


async def test_list_items_with_two_keys_are_identified_by_both(client: ClusterClient) -> None:
    tcp: JsonObject = {"name": "dns-tcp", "port": 53, "protocol": "TCP"}
    udp: JsonObject = {"name": "dns-udp", "port": 53, "protocol": "UDP"}
    await client.apply(a_service("web", tcp))

    outcome = await client.apply(a_service("web", udp), manager="other")

    ports = at(require_body(outcome), "spec", "ports")
    assert isinstance(ports, list)
    assert {at(port, "protocol") for port in ports} == {"TCP", "UDP"}


async def test_an_atomic_list_is_replaced_as_a_whole(client: ClusterClient) -> None:
    first = a_container("app") | {"command": ["serve", "--slow"]}
    second = a_container("app") | {"command": ["serve"]}
    await client.apply(a_deployment(template=a_pod_template(first)))

    outcome = await client.apply(a_deployment(template=a_pod_template(second)))

    path = ("spec", "template", "spec", "containers", 0, "command")
    assert at(require_body(outcome), *path) == ["serve"]


async def test_an_atomic_map_is_replaced_as_a_whole(client: ClusterClient) -> None:
    await client.apply(a_service("web", selector={"app": "web", "tier": "front"}))

    outcome = await client.apply(a_service("web", selector={"app": "web"}))

    assert at(require_body(outcome), "spec", "selector") == {"app": "web"}


async def test_a_set_holds_what_each_manager_put_in(client: ClusterClient) -> None:
    def held_by(*finalizers: str) -> JsonObject:
        metadata: JsonObject = {"name": "web", "finalizers": [*finalizers]}
        return {**a_config_map(color="blue"), "metadata": metadata}

    await client.apply(held_by("example.org/a", "example.org/b"))
    await client.apply(held_by("example.org/b", "example.org/c"), manager="other")

    outcome = await client.apply(held_by("example.org/a"))

    finalizers = at(require_body(outcome), "metadata", "finalizers")
    assert isinstance(finalizers, list)
    assert sorted(map(str, finalizers)) == ["example.org/a", "example.org/b", "example.org/c"]


async def test_an_apply_with_the_uid_of_another_life_is_a_conflict(client: ClusterClient) -> None:
    first = require_live(await client.apply(a_config_map(color="blue")))
    await client.delete(first.ref)
    await client.apply(a_config_map(color="blue"))

    outcome = await client.apply(a_config_map(color="red"), uid=first.uid)

    assert isinstance(outcome, Conflict)
    assert outcome.owners == ()


async def test_labels_of_other_managers_survive_an_apply(client: ClusterClient) -> None:
    await client.apply(labelled(a_config_map(color="blue"), team="blue"), manager="other")

    outcome = await client.apply(labelled(a_config_map(color="blue"), app="web"))

    assert at(require_body(outcome), "metadata", "labels") == {"app": "web", "team": "blue"}


async def test_an_apply_for_a_version_that_never_was_only_creates(client: ClusterClient) -> None:
    first = await client.apply(a_config_map(color="blue"), resource_version="1", force=True)

    second = await client.apply(a_config_map(color="red"), resource_version="1", force=True)

    assert isinstance(second, Conflict)
    assert require_body(await client.get(require_live(first).ref))["data"] == {"color": "blue"}
