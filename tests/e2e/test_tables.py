"""What `kubectl get` shows of an object is what a real server shows of it."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from plane import ControlPlane
from tests.support.cluster_client import ClusterClient, require_live
from tests.support.objects import ACCOUNT, a_namespace
from tests.support.printed_rows import PrintedRow, record
from tests.support.worlds import real_world
from tidegate.apiserver.discovery import ServedKinds, build_aggregated_discovery
from tidegate.apiserver.printers.tables import columns_for_kind
from tidegate.documents import read_documents
from tidegate.kube.http_requests import object_path
from tidegate.kube.http_responses import DISCOVERY_ACCEPT
from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text
from tidegate.model.k8s.objects import Json, JsonObject, Kind, LiveObject, Ref, ServedKind
from tidegate.model.times import SECOND, Ms
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.messages import ApiResources, RawResponse, Success
from tidegate.world.requests import Discover, RawGet
from tidegate.world.resilient import ResilientWorld

pytestmark = pytest.mark.kube

OBJECTS = Path(__file__).parents[1] / "data" / "tables" / "objects.yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
UNPRINTED = {
    "CertificateSigningRequest",
    "ComponentStatus",
    "CSIDriver",
    "CSINode",
    "DeviceClass",
    "FlowSchema",
    "IPAddress",
    "PriorityLevelConfiguration",
    "ResourceClaim",
    "ResourceClaimTemplate",
    "ResourceSlice",
    "ServiceCIDR",
    "VolumeAttachment",
    "VolumeAttributesClass",
}
"""Kinds that are not simulated: their names and ages are shown."""
LATE = 3
"""Seconds that may have passed between the server's look at its clock and ours."""

_numbers = itertools.count(1)


@pytest.fixture
async def client(plane: ControlPlane) -> AsyncIterator[ClusterClient]:
    async with real_world(kubeconfig=plane.kubeconfig("tidegate")) as world:
        dispatcher, name = Dispatcher(ResilientWorld(world)), f"tables-{next(_numbers)}"
        require_live(await ClusterClient(dispatcher).create(a_namespace(name)))
        result = ClusterClient(dispatcher, namespace=name)
        await result.settled(
            Ref(ACCOUNT, name, "default"), lambda live: isinstance(live, LiveObject)
        )
        yield result


async def served(client: ClusterClient) -> ServedKinds:
    (result,) = await client.ask(Discover())
    assert isinstance(result, ApiResources)
    return ServedKinds(
        tuple(kind for kind in result.kinds if "list" in kind.verbs and is_own(kind.kind))
    )


def is_own(kind: Kind) -> bool:
    """Whether Kubernetes creates it; other tests may have created others."""
    return "." not in kind.group or kind.group.endswith(".k8s.io")


async def table_of(client: ClusterClient, item: ServedKind) -> JsonObject:
    path = object_path(item, client.namespace if item.namespaced else "", "")
    (text,) = await client.ask(RawGet(f"{path}?includeObject=Object", TABLE))
    assert isinstance(text, RawResponse), text
    table: JsonObject = msgspec.json.decode(text.body)
    return table


async def test_every_kind_has_the_columns_of_a_real_server(client: ClusterClient) -> None:
    serving = await served(client)

    for kind in serving.kinds:
        if kind.kind.name in UNPRINTED:
            continue
        table = await table_of(client, kind)

        shown = [
            (
                get_text(column, "name"),
                get_text(column, "type"),
                get_text(column, "format"),
                column["priority"],
            )
            for column in get_mappings(table, "columnDefinitions")
        ]
        ours = [
            (column.title, column.type, column.format, int(column.is_wide))
            for column in columns_for_kind(kind.kind, serving)
        ]
        assert (str(kind.kind), ours) == (str(kind.kind), shown)


async def test_every_cell_equals_that_of_a_real_server(
    client: ClusterClient, pytestconfig: pytest.Config
) -> None:
    for document in read_documents(OBJECTS.read_bytes(), OBJECTS.name):
        await create(client, document.body)
    serving, seen = await served(client), list[PrintedRow]()

    for kind in serving.kinds:
        table = await table_of(client, kind) if kind.kind.name not in UNPRINTED else {}
        for row in get_mappings(table, "rows"):
            body, cells = get_mapping(row, "object"), row["cells"]
            now = client.world.now()
            printed = [
                [
                    column.cell(body, Ms(now - attempt * SECOND))
                    for column in columns_for_kind(kind.kind, serving)
                ]
                for attempt in range(LATE)
            ]
            assert cells in printed, (kind.kind, cells, printed[0])
            moment = Ms(now - printed.index(cells) * SECOND)
            seen.append(PrintedRow(kind.kind, body, cells, moment))

    desired = {
        get_text(document.body, "kind")
        for document in read_documents(OBJECTS.read_bytes(), OBJECTS.name)
    }
    assert desired <= {item.kind.name for item in seen}
    if pytestconfig.getoption("--golden"):
        places = [get_text(item.body, "metadata", "namespace") for item in seen]
        own_items = [
            item for item, place in zip(seen, places, strict=True) if place == client.namespace
        ]
        record([*own_items, *(item for item in seen if item.kind.name == "Node")])


async def create(client: ClusterClient, body: JsonObject) -> None:
    """Create an object, and write its status."""
    status = body.get("status")
    created = await client.eventually(
        lambda: client.create({key: part for key, part in body.items() if key != "status"}),
        lambda outcome: isinstance(outcome, Success),
    )
    ref = require_live(created).ref
    if status is not None:
        require_live(await client.patch(ref, {"status": status}, subresource="status"))
    if get_mapping(body, "metadata").get("finalizers"):
        await client.delete(ref)


async def test_kinds_have_the_names_of_a_real_server(client: ClusterClient) -> None:
    (result,) = await client.ask(Discover())
    assert isinstance(result, ApiResources)
    serving = ServedKinds(tuple(kind for kind in result.kinds if is_own(kind.kind)))

    for path in ("/api", "/apis"):
        (text,) = await client.ask(RawGet(path, DISCOVERY_ACCEPT))
        assert isinstance(text, RawResponse)
        ours = build_aggregated_discovery(serving, "v2", core=path == "/api")
        assert _names(ours) == _names(msgspec.json.decode(text.body))


def _names(discovered: Json) -> dict[str, list[Json]]:
    """By resource, what it is called, and what can be done with it."""
    return {
        f"{get_text(resource, 'resource')}.{get_text(group, 'metadata', 'name')}": [
            resource.get(key)
            for key in ("singularResource", "shortNames", "categories", "scope", "verbs")
        ]
        for group in get_mappings(discovered, "items")
        if is_own(Kind(get_text(group, "metadata", "name"), "", ""))
        for version in get_mappings(group, "versions")
        for resource in get_mappings(version, "resources")
    }
