"""Promises about creating and reading."""

from __future__ import annotations

from tests.support.cluster_client import ClusterClient, require_body, require_items, require_live
from tests.support.objects import CONFIG_MAP, a_config_map, a_namespace, labelled
from tidegate.model.k8s.objects import JsonObject, Kind, Ref
from tidegate.world.messages import AlreadyExists, ListPage, NotFound, NotServed, RawResponse
from tidegate.world.requests import RawGet, Selection, View


async def test_a_created_object_can_be_read(client: ClusterClient) -> None:
    created = require_live(await client.create(a_config_map(color="blue")))

    read = await client.get(created.ref)

    assert require_live(read).uid == created.uid
    assert require_body(read)["data"] == {"color": "blue"}


async def test_a_created_object_has_a_uid_and_a_version(client: ClusterClient) -> None:
    created = require_live(await client.create(a_config_map()))

    assert created.uid
    assert created.resource_version
    assert created.ref == Ref(CONFIG_MAP, client.namespace, "web")


async def test_a_missing_object_is_not_found(client: ClusterClient) -> None:
    outcome = await client.get(Ref(CONFIG_MAP, client.namespace, "nobody"))

    assert isinstance(outcome, NotFound)


async def test_creating_an_existing_object_is_already_exists(client: ClusterClient) -> None:
    await client.create(a_config_map())

    outcome = await client.create(a_config_map())

    assert isinstance(outcome, AlreadyExists)


async def test_creating_in_a_missing_namespace_is_not_found(
    client: ClusterClient,
) -> None:
    elsewhere = ClusterClient(client.world, namespace="nowhere")

    outcome = await elsewhere.create(a_config_map())

    assert isinstance(outcome, NotFound)


async def test_a_generated_name_has_its_prefix_and_is_unique(
    client: ClusterClient,
) -> None:
    body: JsonObject = {**a_config_map(), "metadata": {"generateName": "web-"}}

    first = require_live(await client.create(body)).ref.name
    second = require_live(await client.create(body)).ref.name

    assert first.startswith("web-")
    assert second.startswith("web-")
    assert first != second


async def test_an_unknown_kind_is_not_served(client: ClusterClient) -> None:
    outcome = await client.get(Ref(Kind("example.org", "v1", "Unicorn"), client.namespace, "web"))

    assert isinstance(outcome, NotServed)


async def test_a_list_has_exactly_the_objects_of_its_namespace(
    client: ClusterClient,
) -> None:
    for name in ("a", "b"):
        await client.create(a_config_map(name))
    other = ClusterClient(client.world, namespace=f"{client.namespace}-other")
    await other.create(a_namespace(other.namespace))
    await other.create(a_config_map("c"))

    page = await client.page(Selection(CONFIG_MAP, client.namespace))

    names = {item.ref.name for item in require_items(page)}
    assert names - {"kube-root-ca.crt"} == {"a", "b"}


async def test_a_list_is_returned_in_pages(client: ClusterClient) -> None:
    names = {f"m{number}" for number in range(7)}
    for name in names:
        await client.create(labelled(a_config_map(name), group="pages"))
    selection = Selection(CONFIG_MAP, client.namespace, label_selector="group=pages")

    result, resume, pages = set(), "", 0
    while resume or not pages:
        page = await client.page(selection, limit=3, resume=resume)
        assert isinstance(page, ListPage)
        result |= {item.ref.name for item in page.items}
        resume, pages = page.continue_token, pages + 1

    assert result == names
    assert pages == 3


async def test_labels_select(client: ClusterClient) -> None:
    await client.create(labelled(a_config_map("a"), tier="front"))
    await client.create(labelled(a_config_map("b"), tier="back"))

    page = await client.page(
        Selection(CONFIG_MAP, client.namespace, label_selector="tier in (front, side)")
    )

    assert [item.ref.name for item in require_items(page)] == ["a"]


async def test_a_selector_can_exclude_a_label(client: ClusterClient) -> None:
    await client.create(labelled(a_config_map("a"), tier="front", chosen="yes"))
    await client.create(labelled(a_config_map("b"), chosen="yes"))

    page = await client.page(
        Selection(CONFIG_MAP, client.namespace, label_selector="chosen=yes,!tier")
    )

    assert [item.ref.name for item in require_items(page)] == ["b"]


async def test_fields_select_by_name(client: ClusterClient) -> None:
    await client.create(a_config_map("a"))
    await client.create(a_config_map("b"))

    page = await client.page(
        Selection(CONFIG_MAP, client.namespace, field_selector="metadata.name=b")
    )

    assert [item.ref.name for item in require_items(page)] == ["b"]


async def test_a_view_of_metadata_leaves_the_rest_out(client: ClusterClient) -> None:
    created = require_live(await client.create(a_config_map(color="blue")))

    read = await client.get(created.ref, view=View.METADATA)
    page = await client.page(
        Selection(
            CONFIG_MAP, client.namespace, field_selector="metadata.name=web", view=View.METADATA
        )
    )

    assert require_live(read).uid == created.uid
    assert "data" not in require_body(read)
    assert [item.ref for item in require_items(page)] == [created.ref]
    assert b"blue" not in require_items(page)[0].body


async def test_raw_paths_can_be_read(client: ClusterClient) -> None:
    (outcome,) = await client.ask(RawGet("/version"))

    assert isinstance(outcome, RawResponse)
    assert b'"gitVersion"' in outcome.body
