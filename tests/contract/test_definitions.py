"""Promises about kinds: those a cluster serves, and those that arrive and leave."""

from __future__ import annotations

from tests.support.cluster_client import ClusterClient, require_body, require_live
from tests.support.objects import CRD, DEPLOYMENT, NAMESPACE, a_definition, a_gate, at
from tidegate.model.k8s.objects import JsonObject, Kind, LiveObject, Propagation, Ref, ServedKind
from tidegate.world.messages import (
    ApiResources,
    Expired,
    Invalid,
    NotServed,
    Success,
    WatchEnded,
    WatchEvent,
)
from tidegate.world.requests import Discover, Selection


def group_of(client: ClusterClient) -> str:
    """A group of the test's own."""
    return f"{client.namespace}.example.org"


def is_established(live: LiveObject | None) -> bool:
    return live is not None and b'"type":"Established"' in live.body


async def kinds_of(client: ClusterClient) -> dict[Kind, ServedKind]:
    (catalogue,) = await client.ask(Discover())
    assert isinstance(catalogue, ApiResources)
    return {served.kind: served for served in catalogue.kinds}


async def a_served_gate(client: ClusterClient) -> Kind:
    """The kind of the test's own, served."""
    group = group_of(client)
    definition = require_live(await client.create(a_definition(group)))
    await client.settled(definition.ref, is_established)
    await client.eventually(
        lambda: client.create(a_gate(group, "probe"), dry_run=True),
        lambda outcome: isinstance(outcome, Success),
    )
    return Kind(group, "v1", "Gate")


async def test_discovery_returns_plural_scope_and_subresources(client: ClusterClient) -> None:
    kinds = await kinds_of(client)

    assert (kinds[DEPLOYMENT].plural, kinds[DEPLOYMENT].namespaced) == ("deployments", True)
    assert (kinds[NAMESPACE].plural, kinds[NAMESPACE].namespaced) == ("namespaces", False)
    assert {"scale", "status"} <= set(kinds[DEPLOYMENT].subresources)
    assert {"list", "watch", "patch"} <= set(kinds[DEPLOYMENT].verbs)


async def test_a_kind_is_not_served_before_its_definition_is_there(client: ClusterClient) -> None:
    outcome = await client.apply(a_gate(group_of(client)))

    assert isinstance(outcome, NotServed)


async def test_a_definition_becomes_established_and_its_kind_is_served(
    client: ClusterClient,
) -> None:
    kind = await a_served_gate(client)

    outcome = await client.apply(a_gate(kind.group))

    assert require_live(outcome).ref == Ref(kind, client.namespace, "north")
    assert (await kinds_of(client))[kind].namespaced


async def test_a_kind_that_was_not_served_is_found_after_its_crd(client: ClusterClient) -> None:
    await client.apply(a_gate(group_of(client)))
    await client.create(a_definition(group_of(client)))

    outcome = await client.eventually(
        lambda: client.apply(a_gate(group_of(client))), lambda outcome: isinstance(outcome, Success)
    )

    assert isinstance(outcome, Success)


async def test_a_crd_gets_its_finalizer_when_it_is_deleted(client: ClusterClient) -> None:
    kind = await a_served_gate(client)
    ref = Ref(CRD, "", f"gates.{kind.group}")
    await client.apply(a_gate(kind.group))
    before = require_body(await client.get(ref))

    outcome = await client.delete(ref, propagation=Propagation.FOREGROUND)

    assert at(before, "metadata", "finalizers") is None
    leaving = require_body(outcome)
    assert at(leaving, "metadata", "finalizers") == ["customresourcecleanup.apiextensions.k8s.io"]
    assert at(leaving, "metadata", "generation") == at(before, "metadata", "generation")
    result = at(leaving, "status", "conditions")
    assert isinstance(result, list)
    assert [at(item, "reason") for item in result][-1] == "InstanceDeletionPending"


async def test_an_instance_of_the_wrong_shape_is_refused_by_field(client: ClusterClient) -> None:
    kind = await a_served_gate(client)

    wrong_type = await client.create(a_gate(kind.group, color=7))
    missing = await client.create({**a_gate(kind.group), "spec": {"size": 3}})

    assert isinstance(wrong_type, Invalid)
    assert [cause.field for cause in wrong_type.causes] == ["spec.color"]
    assert isinstance(missing, Invalid)
    assert [cause.field for cause in missing.causes] == ["spec.color"]


async def test_defaults_of_a_definition_are_filled_in(client: ClusterClient) -> None:
    kind = await a_served_gate(client)

    outcome = await client.apply(a_gate(kind.group))

    assert at(require_body(outcome), "spec", "size") == 1


async def test_fields_that_a_definition_does_not_know_are_dropped(client: ClusterClient) -> None:
    kind = await a_served_gate(client)

    outcome = await client.create(a_gate(kind.group, shape="round"))

    assert at(require_body(outcome), "spec", "shape") is None


async def test_lists_are_merged_by_the_schema_of_the_crd(client: ClusterClient) -> None:
    kind = await a_served_gate(client)

    def gate(name: str, port: int) -> JsonObject:
        return a_gate(kind.group, map=[{"name": name, "port": port}], set=[name], atomic=[name])

    await client.apply(gate("a", 1))
    outcome = await client.apply(gate("b", 2), manager="other", force=True)

    spec = at(require_body(outcome), "spec")
    assert at(spec, "map") == [{"name": "a", "port": 1}, {"name": "b", "port": 2}]
    assert at(spec, "set") == ["a", "b"]
    assert at(spec, "atomic") == ["b"]


async def test_status_of_a_definition_s_kind_is_its_own_subresource(client: ClusterClient) -> None:
    kind = await a_served_gate(client)
    ref = require_live(await client.apply(a_gate(kind.group))).ref

    status: JsonObject = {**a_gate(kind.group), "status": {"open": True}}
    through = await client.apply(status, subresource="status", manager="operator", force=True)
    both = await client.apply({**a_gate(kind.group), "status": {"open": False}}, force=True)

    assert at(require_body(through), "status", "open") is True
    assert require_live(through).generation == 1
    assert at(require_body(both), "status", "open") is True
    assert require_live(await client.get(ref)).generation == 1


async def test_deleting_a_definition_takes_its_instances_along(client: ClusterClient) -> None:
    kind = await a_served_gate(client)
    ref = require_live(await client.apply(a_gate(kind.group))).ref

    await client.delete(Ref(CRD, "", f"gates.{kind.group}"))
    await client.eventually(lambda: client.get(ref), lambda outcome: isinstance(outcome, NotServed))
    await a_served_gate(client)

    assert not isinstance(await client.get(ref), Success)


async def test_a_watch_of_an_unknown_kind_is_not_found(client: ClusterClient) -> None:
    request_id = client.watch(Selection(Kind(group_of(client), "v1", "Gate"), client.namespace))

    messages = await client.until(lambda message: isinstance(message, WatchEnded))

    ended = messages[-1]
    assert isinstance(ended, WatchEnded)
    assert ended.request_id == request_id
    assert isinstance(ended.outcome, NotServed)


async def test_a_version_from_before_a_kind_was_served_is_expired(
    client: ClusterClient, bare: ClusterClient
) -> None:
    kind = await a_served_gate(client)

    request_id = bare.watch(Selection(kind, client.namespace), since="1")
    messages = await bare.until(lambda message: isinstance(message, WatchEnded))

    ended = messages[-1]
    assert isinstance(ended, WatchEnded)
    assert ended.request_id == request_id
    assert isinstance(ended.outcome, Expired)


async def test_a_watch_from_an_expired_version_lists_again(client: ClusterClient) -> None:
    kind = await a_served_gate(client)
    require_live(await client.apply(a_gate(kind.group)))

    client.watch(Selection(kind, client.namespace), since="1")
    messages = await client.until(
        lambda message: isinstance(message, WatchEvent) and message.live.ref.kind == kind
    )

    added = messages[-1]
    assert isinstance(added, WatchEvent)
    assert added.live.ref.name == "north"
