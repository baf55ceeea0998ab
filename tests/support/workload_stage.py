"""A sandbox with the controllers of workloads, and an observer who sees every change."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.support.cluster_client import ClusterClient, require_live
from tests.support.trace_case import Apply, Change, WatchedObject
from tests.support.trace_simulation import CONTROLLERS
from tidegate.model.k8s.json_fields import get_int, get_mapping, get_mappings, get_text
from tidegate.model.k8s.kinds import EVENT, POD
from tidegate.model.k8s.objects import Json, JsonObject, Kind, Propagation, Ref
from tidegate.model.times import SECOND, Ms
from tidegate.sandbox.controllers.interface import Controller, ObjectReader, Reconciliation
from tidegate.sandbox.server.store import StoredObject, StoreEvent
from tidegate.sandbox.world import Sandbox
from tidegate.world.dispatcher import Dispatcher

PLACE = "shop"
Sample = Callable[[ObjectReader], Json]


def _idle(_view: ObjectReader, _ref: Ref, _now: Ms) -> Reconciliation:
    yield from ()


class Stage:
    """One namespace of one cluster. `sample` is asked after every change of anything in it."""

    def __init__(self, *, sample: Sample | None = None) -> None:
        self.samples: list[Json] = []
        self._sample = sample
        observer = Controller("observer", _idle, self._observe)
        self._sandbox = Sandbox(controllers=(*CONTROLLERS, observer))
        self._view = self._sandbox.clusters[""].reader
        self._desk = ClusterClient(Dispatcher(self._sandbox), namespace=PLACE)

    async def open(self, *, nodes: int = 1) -> Stage:
        await self.apply(_named("v1", "Namespace", PLACE))
        for number_ in range(nodes):
            await self.apply(_named("v1", "Node", f"node-{number_}"))
        await self.run(Ms(100))
        self.samples.clear()
        return self

    async def do(self, action: Apply | Change) -> None:
        """A deed of a case, at once."""
        if isinstance(action, Apply):
            await self.apply(action.body)
        else:
            ref = Ref(action.object.kind, PLACE, action.object.name)
            require_live(await self._desk.patch(ref, action.patch))

    async def apply(self, body: JsonObject) -> None:
        require_live(await self._desk.apply(body))

    async def delete(self, kind: Kind, name: str) -> None:
        await self._desk.delete(Ref(kind, PLACE, name))

    async def orphan(self, kind: Kind, name: str) -> None:
        """Delete an object and leave what it owns."""
        await self._desk.delete(Ref(kind, PLACE, name), propagation=Propagation.ORPHAN)

    async def run(self, span: Ms = Ms(10 * SECOND)) -> None:
        """Let virtual time pass."""
        end = Ms(self._sandbox.now() + span)
        while self._sandbox.now() < end:
            await self._sandbox.wait(end)

    def body(self, watched: WatchedObject) -> JsonObject:
        value = self._view.get(Ref(watched.kind, PLACE, watched.name))
        assert value is not None
        return value.body

    def all_of(self, kind: Kind) -> list[StoredObject]:
        return self._view.list_objects(kind, PLACE)

    def pods(self) -> list[str]:
        return [pod.ref.name for pod in self.all_of(POD)]

    def images(self) -> list[str]:
        """Which image each pod runs, by the names of the pods."""
        return [
            get_text(get_mappings(pod.body, "spec", "containers")[0], "image").rpartition(":")[2]
            for pod in self.all_of(POD)
        ]

    def count(self, watched: WatchedObject, name: str) -> int:
        return get_int(self.body(watched), "status", name)

    def condition(self, watched: WatchedObject, name: str) -> str:
        """Status and reason."""
        for item in get_mappings(self.body(watched), "status", "conditions"):
            if item.get("type") == name:
                return f"{get_text(item, 'status')} {get_text(item, 'reason')}"
        return ""

    def events(self, reason: str) -> list[str]:
        """The messages of the Events with this reason."""
        return [
            get_text(event.body, "message")
            for event in self.all_of(EVENT)
            if get_text(event.body, "reason") == reason
        ]

    def _observe(self, view: ObjectReader, _event: StoreEvent) -> Iterator[Ref]:
        if self._sample is not None:
            self.samples.append(self._sample(view))
        yield from ()


def annotation(stored: StoredObject, name: str) -> str:
    return get_text(get_mapping(stored.metadata, "annotations"), name)


def _named(api_version: str, kind: str, name: str) -> JsonObject:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}
