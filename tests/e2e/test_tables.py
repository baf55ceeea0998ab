"""What `kubectl get` shows of an object is what a real server shows of it."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from plane import ControlPlane
from tests.support.cluster_client import Desk, live_of
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
"""Kinds of which nobody simulates anything: their names and ages are shown."""
LATE = 3
"""Seconds that may have passed between the server's look at its clock and ours."""

_numbers = itertools.count(1)


@pytest.fixture
async def desk(plane: ControlPlane) -> AsyncIterator[Desk]:
    async with real_world(kubeconfig=plane.kubeconfig("tidegate")) as world:
        exchange, name = Dispatcher(ResilientWorld(world)), f"tables-{next(_numbers)}"
        live_of(await Desk(exchange).create(a_namespace(name)))
        found = Desk(exchange, namespace=name)
        await found.settled(
            Ref(ACCOUNT, name, "default"), lambda live: isinstance(live, LiveObject)
        )
        yield found


async def served(desk: Desk) -> ServedKinds:
    (found,) = await desk.ask(Discover())
    assert isinstance(found, ApiResources)
    return ServedKinds(
        tuple(one for one in found.kinds if "list" in one.verbs and is_own(one.kind))
    )


def is_own(kind: Kind) -> bool:
    """Whether Kubernetes brings it; others may be there for other tests."""
    return "." not in kind.group or kind.group.endswith(".k8s.io")


async def table_of(desk: Desk, one: ServedKind) -> JsonObject:
    path = object_path(one, desk.namespace if one.namespaced else "", "")
    (said,) = await desk.ask(RawGet(f"{path}?includeObject=Object", TABLE))
    assert isinstance(said, RawResponse), said
    table: JsonObject = msgspec.json.decode(said.body)
    return table


async def test_every_kind_has_the_columns_of_a_real_server(desk: Desk) -> None:
    serving = await served(desk)

    for one in serving.kinds:
        if one.kind.name in UNPRINTED:
            continue
        table = await table_of(desk, one)

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
            for column in columns_for_kind(one.kind, serving)
        ]
        assert (str(one.kind), ours) == (str(one.kind), shown)


async def test_every_cell_is_what_a_real_server_writes_into_it(
    desk: Desk, pytestconfig: pytest.Config
) -> None:
    for document in read_documents(OBJECTS.read_bytes(), OBJECTS.name):
        await bring(desk, document.body)
    serving, seen = await served(desk), list[PrintedRow]()

    for one in serving.kinds:
        table = await table_of(desk, one) if one.kind.name not in UNPRINTED else {}
        for row in get_mappings(table, "rows"):
            body, cells = get_mapping(row, "object"), row["cells"]
            now = desk.world.now()
            printed = [
                [
                    column.cell(body, Ms(now - late * SECOND))
                    for column in columns_for_kind(one.kind, serving)
                ]
                for late in range(LATE)
            ]
            assert cells in printed, (one.kind, cells, printed[0])
            moment = Ms(now - printed.index(cells) * SECOND)
            seen.append(PrintedRow(one.kind, body, cells, moment))

    wanted = {
        get_text(one.body, "kind") for one in read_documents(OBJECTS.read_bytes(), OBJECTS.name)
    }
    assert wanted <= {one.kind.name for one in seen}
    if pytestconfig.getoption("--golden"):
        places = [get_text(one.body, "metadata", "namespace") for one in seen]
        own = [one for one, place in zip(seen, places, strict=True) if place == desk.namespace]
        record([*own, *(one for one in seen if one.kind.name == "Node")])


async def bring(desk: Desk, body: JsonObject) -> None:
    """Create an object, and say of it what its status says."""
    status = body.get("status")
    created = await desk.eventually(
        lambda: desk.create({key: part for key, part in body.items() if key != "status"}),
        lambda outcome: isinstance(outcome, Success),
    )
    ref = live_of(created).ref
    if status is not None:
        live_of(await desk.patch(ref, {"status": status}, subresource="status"))
    if get_mapping(body, "metadata").get("finalizers"):
        await desk.delete(ref)


async def test_kinds_go_by_the_names_that_a_real_server_has_for_them(desk: Desk) -> None:
    (found,) = await desk.ask(Discover())
    assert isinstance(found, ApiResources)
    serving = ServedKinds(tuple(one for one in found.kinds if is_own(one.kind)))

    for path in ("/api", "/apis"):
        (said,) = await desk.ask(RawGet(path, DISCOVERY_ACCEPT))
        assert isinstance(said, RawResponse)
        ours = build_aggregated_discovery(serving, "v2", core=path == "/api")
        assert _names(ours) == _names(msgspec.json.decode(said.body))


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
