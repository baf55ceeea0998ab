"""A sandbox on which operators play: CRDs that take anything, operators that are there at once."""

from __future__ import annotations

import base64

import msgspec

from tests.support.cluster_client import ClusterClient, require_body, require_live
from tests.support.objects import a_namespace, an_object
from tidegate.knowledge.catalog import KindCatalog
from tidegate.knowledge.reader import load_builtin_knowledge
from tidegate.model.k8s.json_fields import get_mapping, get_mappings
from tidegate.model.k8s.objects import Json, JsonObject, Kind, Ref
from tidegate.model.operators.rows import KindRow, Operator, Stage, Workload
from tidegate.model.times import SECOND, Ms
from tidegate.sandbox.controllers.core import API_CONTROLLERS
from tidegate.sandbox.operators import availability
from tidegate.sandbox.operators.interpreter import operator_controller
from tidegate.sandbox.operators.preinstalled import crds_for_row, workload_body
from tidegate.sandbox.world import Sandbox
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.messages import Success
from tidegate.world.resilient import ResilientWorld

AVAILABLE: JsonObject = {
    "replicas": 1,
    "readyReplicas": 1,
    "availableReplicas": 1,
    "updatedReplicas": 1,
    "observedGeneration": 1,
}
EVERYWHERE: JsonObject = {
    "currentNumberScheduled": 1,
    "desiredNumberScheduled": 1,
    "numberMisscheduled": 0,
    "numberReady": 1,
    "numberAvailable": 1,
}


def a_crd(kind: Kind) -> JsonObject:
    """The CRD of a kind as a cluster with its operator has it; also of a kind without a row."""
    for row in load_builtin_knowledge().rows:
        if row.group == kind.group and kind.name in row.kinds:
            (unit_resource,) = crds_for_row(msgspec.structs.replace(row, kinds=(kind.name,)))
            return unit_resource
    stage = Stage(name="known")
    unknown = KindRow(
        group=kind.group,
        kinds=(kind.name,),
        versions=(kind.version,),
        source="the test",
        stages=(stage,),
    )
    (made,) = crds_for_row(unknown)
    return made


def an_operator(name: str, image: str = "registry.example/any:1", **labels: str) -> JsonObject:
    return workload_body(Workload(name=name, image=image, labels={"app": name, **labels}), "shop")


def operators_of(operator: Operator) -> list[JsonObject]:
    """The workloads of an operator, in the namespace of the test."""
    return [workload_body(workload, "shop") for workload in operator.workloads]


class OperatorStage:
    """One sandbox with operators and with the namespace `shop`."""

    def __init__(
        self,
        rows: tuple[KindRow, ...] | None = None,
        *,
        seed: int = 0,
    ) -> None:
        self.rows = load_builtin_knowledge().rows if rows is None else rows
        controllers = (*API_CONTROLLERS, operator_controller(self.rows))
        self.sandbox = Sandbox(controllers=controllers, seed=seed)
        self.client = ClusterClient(Dispatcher(ResilientWorld(self.sandbox)), namespace="shop")

    async def start(self, *kinds: Kind) -> OperatorStage:
        """Make the namespace, and serve these kinds."""
        require_live(await self.client.create(a_namespace("shop")))
        for kind in kinds:
            require_live(await self.client.create(a_crd(kind)))
        await self.wait(Ms(SECOND))
        self.client = ClusterClient(self.client.world, namespace="shop")
        return self

    async def wait(self, span: Ms) -> None:
        await self.client.rest(Ms(self.sandbox.now() + span))

    async def operate(self, body: JsonObject) -> None:
        """Make an operator, and let it be available at once."""
        require_live(await self.client.create(body))
        await self.stamp(body, EVERYWHERE if body["kind"] == "DaemonSet" else AVAILABLE)

    async def stamp(self, body: JsonObject, status: JsonObject) -> None:
        ref = await self.client.ref(body)
        require_live(await self.client.patch(ref, {"status": status}, subresource="status"))

    async def make(self, kind: Kind, name: str, spec: JsonObject, **metadata: Json) -> Ref:
        body: JsonObject = {
            **an_object(kind, name, spec=spec),
            "metadata": {"name": name, **metadata},
        }
        require_live(await self.client.create(body))
        return await self.client.ref(body)

    async def add(self, body: JsonObject) -> Ref:
        require_live(await self.client.create(body))
        return await self.client.ref(body)

    async def body(self, ref: Ref) -> JsonObject:
        return require_body(await self.client.get(ref))

    async def status(self, ref: Ref) -> JsonObject:
        return get_mapping(await self.body(ref), "status")

    async def condition(self, ref: Ref, name: str) -> JsonObject:
        conditions = get_mappings(await self.status(ref), "conditions")
        return next((condition for condition in conditions if condition.get("type") == name), {})

    async def exists(self, kind: Kind, name: str, namespace: str = "shop") -> bool:
        return isinstance(await self.client.get(Ref(kind, namespace, name)), Success)

    async def secret(self, name: str) -> dict[str, str]:
        """The keys of a Secret and their texts."""
        ref = Ref(Kind("", "v1", "Secret"), "shop", name)
        data = get_mapping(await self.body(ref), "data")
        return {key: base64.b64decode(str(value)).decode() for key, value in data.items()}

    def unserved(self) -> list[tuple[str, str]]:
        """The custom resources whose kind is not served, with the reason."""
        view, known = self.sandbox.clusters[""].reader, KindCatalog.from_rows(self.rows)
        return sorted(
            (str(stored.ref), availability.unserved_reason(known, view, kind))
            for kind in availability.custom_kinds(view)
            for stored in view.list_objects(kind)
            if not availability.is_served(known, view, kind)
        )
