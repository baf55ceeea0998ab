"""The kubelet's writes are writes that a real API server takes."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from typing import NamedTuple

import msgspec
import pytest

from plane import ControlPlane
from tests.support.cluster_client import ClusterClient, require_body, require_items, require_live
from tests.support.objects import a_namespace, an_object
from tests.support.stage import SIMPLE, a_container, a_pod, a_probe
from tests.support.worlds import real_world
from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text
from tidegate.model.k8s.objects import Json, JsonObject, Kind, LiveObject, Ref
from tidegate.model.times import SECOND, Ms
from tidegate.sandbox.controllers.interface import AppendLog, Controller, Reconciliation, RequeueAt
from tidegate.sandbox.node.kubelet.pod import kubelet_controller
from tidegate.sandbox.node.kubelet.states import ASSUMED_ANNOTATION
from tidegate.sandbox.node.profile import ContainerFailure, ContainerRule, ContainerSelector
from tidegate.sandbox.server.store import StoredObject
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.messages import AlreadyExists, NotFound, Outcome, Success
from tidegate.world.requests import PatchType, Selection, Write
from tidegate.world.resilient import ResilientWorld

pytestmark = pytest.mark.kube

POD = Kind("", "v1", "Pod")
SECRET = Kind("", "v1", "Secret")
ACCOUNT = Kind("", "v1", "ServiceAccount")
SEEN = (POD, SECRET, Kind("", "v1", "ConfigMap"), Kind("", "v1", "PersistentVolumeClaim"))

_numbers = itertools.count(1)


class Snapshot(NamedTuple):
    """What a controller sees of a real cluster, read before each look."""

    objects: dict[Ref, StoredObject]

    def get(self, ref: Ref) -> StoredObject | None:
        return self.objects.get(ref)

    def list_objects(self, kind: Kind, namespace: str = "") -> list[StoredObject]:
        return [
            stored
            for ref, stored in sorted(self.objects.items())
            if ref.kind == kind and namespace in ("", ref.namespace)
        ]

    def list_in_namespace(self, namespace: str) -> list[StoredObject]:
        return [item for ref, item in sorted(self.objects.items()) if ref.namespace == namespace]

    def list_owned(self, uid: str) -> list[StoredObject]:
        raise AssertionError(uid)


async def snapshot(client: ClusterClient) -> Snapshot:
    objects = {}
    for kind in SEEN:
        for live in require_items(await client.page(Selection(kind, client.namespace))):
            body: JsonObject = msgspec.json.decode(live.body)
            objects[live.ref] = StoredObject(live.ref, body, (), int(live.resource_version))
    return Snapshot(objects)


async def let_pass(
    client: ClusterClient, controller: Controller, ref: Ref, span: tuple[Ms, Ms]
) -> None:
    """Let the controller look from the first moment to the second, whenever it wants to."""
    now, until = span
    for _ in range(20):
        looking = controller.reconcile(await snapshot(client), ref, now)
        moment, outcome = until, None
        while (expected := _next(looking, outcome)) is not None:
            outcome = None
            if isinstance(expected, RequeueAt):
                moment = min(moment, expected.time)
            elif isinstance(expected, Write):
                (outcome,) = await client.ask(expected)
                assert isinstance(outcome, Success | AlreadyExists), outcome
        if moment >= until:
            return
        now = moment
    raise AssertionError("it does not come to rest")


def _next(looking: Reconciliation, outcome: Outcome | None) -> Write | RequeueAt | AppendLog | None:
    try:
        return looking.send(outcome)
    except StopIteration:
        return None


@pytest.fixture
async def client(plane: ControlPlane) -> AsyncIterator[ClusterClient]:
    async with real_world(kubeconfig=plane.kubeconfig("tidegate")) as world:
        name = f"kubelet-{next(_numbers)}"
        client = ClusterClient(Dispatcher(ResilientWorld(world)), namespace=name)
        require_live(await client.create(a_namespace(name)))
        account = Ref(ACCOUNT, name, "default")
        await client.settled(account, lambda live: isinstance(live, LiveObject))
        yield client
        await client.delete(Ref(Kind("", "v1", "Namespace"), "", name))


async def states(client: ClusterClient, ref: Ref) -> dict[str, str]:
    status = get_mapping(require_body(await client.get(ref)), "status")
    keys = ("initContainerStatuses", "containerStatuses")
    return {
        get_text(mapping, "name"): next(iter(get_mapping(mapping, "state")))
        for key in keys
        for mapping in get_mappings(status, key)
    }


async def test_a_real_server_accepts_every_pod_status_of_the_kubelet(client: ClusterClient) -> None:
    crash = ContainerRule(
        ContainerSelector(container="flaky"),
        {"failure": ContainerFailure(after=Ms(2 * SECOND), times=2)},
    )
    controller = kubelet_controller(SIMPLE.with_rules([crash]))
    url: Json = {"name": "URL", "valueFrom": {"secretKeyRef": {"name": "db", "key": "url"}}}
    inits: list[Json] = [a_container("init"), a_container("proxy", restartPolicy="Always")]
    containers = (
        a_container("app", env=[url], readinessProbe=a_probe(initialDelaySeconds=5)),
        a_container("flaky"),
    )
    pod = a_pod("web", *containers, initContainers=inits, schedulerName="nobody")
    ref = require_live(await client.create(pod)).ref
    start = client.world.now()

    await let_pass(client, controller, ref, (start, Ms(start + SECOND)))
    await let_pass(client, controller, ref, (start, Ms(start + 30 * SECOND)))
    held = await states(client, ref)
    await client.create(an_object(SECRET, "db", stringData={"url": "x"}))
    await let_pass(client, controller, ref, (Ms(start + 40 * SECOND), Ms(start + 200 * SECOND)))
    alive = await states(client, ref)
    ready = {
        get_text(condition, "type"): get_text(condition, "status")
        for condition in get_mappings(require_body(await client.get(ref)), "status", "conditions")
    }
    marks = get_text(
        require_body(await client.get(ref)), "metadata", "annotations", ASSUMED_ANNOTATION
    )
    await client.delete(ref)
    ended = Ms(client.world.now() + 5 * SECOND)
    await let_pass(client, controller, ref, (ended, Ms(ended + SECOND)))

    assert held["app"] == "waiting"
    assert alive == {
        "init": "terminated",
        "proxy": "running",
        "app": "running",
        "flaky": "running",
    }
    assert ready["Ready"] == "True"
    assert marks == "durations,probes-follow-ready"
    assert isinstance(await client.get(ref), NotFound)


async def test_a_real_server_accepts_an_image_change_in_place(client: ClusterClient) -> None:
    controller = kubelet_controller(SIMPLE)
    ref = require_live(await client.create(a_pod("api", schedulerName="nobody"))).ref
    start = client.world.now()
    await let_pass(client, controller, ref, (start, Ms(start + SECOND)))
    await let_pass(client, controller, ref, (start, Ms(start + 30 * SECOND)))
    image: Json = {"op": "replace", "path": "/spec/containers/0/image", "value": "app:2"}

    await client.patch(ref, [image], patch_type=PatchType.JSON)
    await let_pass(client, controller, ref, (Ms(start + 40 * SECOND), Ms(start + 60 * SECOND)))

    (container,) = get_mappings(require_body(await client.get(ref)), "status", "containerStatuses")
    assert (get_text(container, "image"), container["restartCount"]) == ("app:2", 1)
    assert "running" in get_mapping(container, "state")
