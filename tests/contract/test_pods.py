"""Promises about pods: a binding puts one on a node, and there it gets its time to end."""

from __future__ import annotations

import msgspec
import pytest

from tests.support.cluster_client import ClusterClient, require_body, require_live
from tests.support.objects import POD, a_container, an_object, at
from tidegate.model.k8s.objects import Json, JsonObject, Kind, LiveObject, Ref
from tidegate.world.messages import Conflict, Invalid, NotFound, Outcome, Success
from tidegate.world.requests import PatchType, Verb, Write

ACCOUNT = Kind("", "v1", "ServiceAccount")


def is_there(live: LiveObject | None) -> bool:
    return live is not None


async def a_pod(client: ClusterClient) -> Ref:
    await client.settled(Ref(ACCOUNT, client.namespace, "default"), is_there)
    spec: JsonObject = {
        "containers": [a_container("app")],
        "terminationGracePeriodSeconds": 20,
        "schedulerName": "nobody",
    }
    return require_live(await client.create(an_object(POD, "web", spec=spec))).ref


def node_of(ref: Ref, node: str = "nowhere") -> str:
    """Return a node that does not exist, and that no pod of another test has.

    40 s after the first pod of such a node, kube-controller-manager deletes all its pods
    (`gcOrphaned` in `pkg/controller/podgc/gc_controller.go` of Kubernetes 1.36.4).
    """
    return f"{node}-{ref.namespace}"


async def bind(client: ClusterClient, ref: Ref, node: str = "nowhere") -> Outcome:
    body: JsonObject = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": ref.name, "namespace": ref.namespace},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node_of(ref, node)},
    }
    encoded = msgspec.json.encode(body)
    binding = Write(verb=Verb.CREATE, ref=ref, body=encoded, subresource="binding")
    return (await client.ask(binding))[0]


async def delete(client: ClusterClient, ref: Ref, grace: int | None = None) -> None:
    await client.ask(Write(verb=Verb.DELETE, ref=ref, grace_period_seconds=grace))


async def grace_of(client: ClusterClient, ref: Ref) -> object:
    return at(require_body(await client.get(ref)), "metadata", "deletionGracePeriodSeconds")


async def test_a_new_pod_is_pending(client: ClusterClient) -> None:
    ref = await a_pod(client)

    assert at(require_body(await client.get(ref)), "status", "phase") == "Pending"


async def test_a_binding_schedules_a_pod_and_sets_its_condition(client: ClusterClient) -> None:
    ref = await a_pod(client)

    outcome = await bind(client, ref)

    body = require_body(await client.get(ref))
    conditions = at(body, "status", "conditions")
    assert isinstance(conditions, list)
    assert isinstance(outcome, Success)
    assert at(body, "spec", "nodeName") == node_of(ref)
    assert [at(condition, "type") for condition in conditions if isinstance(condition, dict)] == [
        "PodScheduled"
    ]
    assert at(body, "metadata", "generation") == 1


async def test_a_pod_is_bound_once(client: ClusterClient) -> None:
    ref = await a_pod(client)
    await bind(client, ref)

    outcome = await bind(client, ref, node="elsewhere")

    assert isinstance(outcome, Conflict)
    message = f'pods/binding "web": pod web is already assigned to node "{node_of(ref)}"'
    assert outcome.message == f"Operation cannot be fulfilled on {message}"


async def test_a_pod_without_a_node_is_deleted_at_once(client: ClusterClient) -> None:
    ref = await a_pod(client)

    await delete(client, ref)

    assert isinstance(await client.get(ref), NotFound)


async def test_a_pod_on_a_node_has_its_own_time_to_end(client: ClusterClient) -> None:
    ref = await a_pod(client)
    await bind(client, ref)

    await delete(client, ref)

    body = require_body(await client.get(ref))
    assert at(body, "metadata", "deletionGracePeriodSeconds") == 20
    assert at(body, "metadata", "generation") == 2
    await delete(client, ref, grace=0)


async def test_the_time_to_end_can_be_shortened_and_not_be_prolonged(client: ClusterClient) -> None:
    ref = await a_pod(client)
    await bind(client, ref)
    await delete(client, ref, grace=10)

    await delete(client, ref, grace=15)
    prolonged = await grace_of(client, ref)
    await delete(client, ref, grace=5)
    shortened = await grace_of(client, ref)
    await delete(client, ref, grace=0)

    assert (prolonged, shortened) == (10, 5)
    assert isinstance(await client.get(ref), NotFound)


async def test_a_pod_that_is_over_is_deleted_at_once(client: ClusterClient) -> None:
    ref = await a_pod(client)
    await bind(client, ref)
    await client.patch(ref, {"status": {"phase": "Succeeded"}}, subresource="status")

    await delete(client, ref)

    assert isinstance(await client.get(ref), NotFound)


async def test_the_image_of_a_pod_can_be_changed_and_is_counted(client: ClusterClient) -> None:
    ref = await a_pod(client)
    image: JsonObject = {"op": "replace", "path": "/spec/containers/0/image", "value": "app:2"}

    changed = require_live(await client.patch(ref, [image], patch_type=PatchType.JSON))

    assert changed.generation == 2


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        pytest.param("containers/0/command", ["run"], "spec", id="command"),
        pytest.param("serviceAccountName", "other", "spec", id="account"),
        pytest.param(
            "containers/-", {"name": "two", "image": "app:1"}, "spec.containers", id="container"
        ),
    ],
)
async def test_the_rest_of_a_pod_stays_as_it_was_made(
    client: ClusterClient, path: str, value: Json, field: str
) -> None:
    ref = await a_pod(client)

    outcome = await client.patch(
        ref, [{"op": "add", "path": f"/spec/{path}", "value": value}], patch_type=PatchType.JSON
    )

    assert isinstance(outcome, Invalid)
    assert field in {cause.field for cause in outcome.causes}


async def test_a_pod_can_be_labelled_and_have_less_time(client: ClusterClient) -> None:
    ref = await a_pod(client)

    outcome = await client.patch(
        ref, {"metadata": {"labels": {"app": "shop"}}, "spec": {"activeDeadlineSeconds": 60}}
    )

    assert isinstance(outcome, Success)
