"""What a cluster holds: objects by kind, a version for every change, and the changes themselves.

Bodies are shared and never changed. A write costs the same however much is stored; a list hands
out what is there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

from tidegate.model.objects import Json, Kind, Live, Ref
from tidegate.model.reading import text
from tidegate.sandbox.ownership.owners import Owners, encode_owners, write_owners
from tidegate.world.calls import View
from tidegate.world.facts import Change

Body = dict[str, Json]
NO_LABELS: dict[str, Json] = {}
REMEMBERED = 10_000
"""How many changes of a kind are remembered for watches that resume."""


class Resource(NamedTuple):
    """Where objects of a kind are kept, whatever version of it they are asked for in."""

    group: str
    plural: str


class Stored(msgspec.Struct, eq=False, gc=False):
    """One state of one object. The version and the owners stand beside the body, not in it.

    Thousands are kept. None can be part of a cycle, so the collector need not look at them.
    """

    ref: Ref
    body: Body
    owners: Owners
    version: int
    metadata: dict[str, Json] = msgspec.field(default_factory=dict)
    """That of the body."""
    _full: Live | None = None
    _partial: Live | None = None

    def __post_init__(self) -> None:
        self.metadata = metadata_of(self.body)

    @property
    def uid(self) -> str:
        return str(self.metadata.get("uid", ""))

    @property
    def generation(self) -> int:
        generation = self.metadata.get("generation", 0)
        return generation if isinstance(generation, int) else 0

    @property
    def labels(self) -> dict[str, Json]:
        labels = self.metadata.get("labels")
        return labels if isinstance(labels, dict) else NO_LABELS

    @property
    def is_deleting(self) -> bool:
        return "deletionTimestamp" in self.metadata

    @property
    def finalizers(self) -> list[Json]:
        finalizers = self.metadata.get("finalizers")
        return finalizers if isinstance(finalizers, list) else []

    def live(self, kind: Kind, view: View = View.FULL) -> Live:
        """This state as it is told; encoded once for a view."""
        known = self._full if view is View.FULL else self._partial
        if known is not None and known.ref.kind == kind:
            return known
        ref = self.ref if kind == self.ref.kind else msgspec.structs.replace(self.ref, kind=kind)
        body = msgspec.json.encode(self._shown(kind, view))
        live = Live(ref, self.uid, self.generation, str(self.version), body)
        if view is View.FULL:
            self._full = live
        else:
            self._partial = live
        return live

    def head(self) -> Live:
        """What is known without encoding anything."""
        return Live(self.ref, self.uid, self.generation, str(self.version), b"")

    def whole(self, *, managed: bool = True) -> Body:
        """The body with all that stands beside it, as a client would read it."""
        metadata = {**self.metadata, "resourceVersion": str(self.version)}
        if self.owners and managed:
            metadata["managedFields"] = write_owners(self.owners)
        return {**self.body, "metadata": metadata}

    def _shown(self, kind: Kind, view: View) -> dict[str, object]:
        metadata: dict[str, object] = {**self.metadata, "resourceVersion": str(self.version)}
        if self.owners:
            metadata["managedFields"] = encode_owners(self.owners)
        if view is View.METADATA:
            return {
                "apiVersion": "meta.k8s.io/v1",
                "kind": "PartialObjectMetadata",
                "metadata": metadata,
            }
        head = {"apiVersion": kind.api_version, "kind": kind.name}
        return {**self.body, "metadata": metadata, **head}


class Transition(msgspec.Struct, frozen=True, gc=False):
    """A change: what is now, and what was before."""

    change: Change
    stored: Stored
    before: Stored | None


class Table(msgspec.Struct):
    """All objects of one resource, by namespace and name, and their recent changes."""

    objects: dict[str, dict[str, Stored]] = msgspec.field(default_factory=dict)
    history: deque[Transition] = msgspec.field(default_factory=deque)
    forgotten: int = 0
    """Changes up to this version can no longer be told."""
    latest: int = 0

    def rows(self, namespace: str) -> list[Stored]:
        """In the order of namespace and name, as a server lists."""
        if not self.objects:
            return []
        if namespace:
            inside = self.objects.get(namespace, {})
            return [inside[name] for name in sorted(inside)]
        return [
            inside[name] for _, inside in sorted(self.objects.items()) for name in sorted(inside)
        ]

    def since(self, version: int) -> Iterator[Transition]:
        return (event for event in self.history if event.stored.version > version)

    def forget(self, version: int) -> None:
        while self.history and self.history[0].stored.version <= version:
            self.history.popleft()
        self.forgotten = max(self.forgotten, version)


class ObjectStore:
    """The tables of one cluster and the one counter of its versions."""

    def __init__(self, told: Callable[[Resource, Transition], None]) -> None:
        self.version = 1
        self._told = told
        self._tables: dict[Resource, Table] = {}
        self._owned: dict[str, dict[tuple[Resource, Ref], None]] = {}

    def table(self, resource: Resource) -> Table:
        found = self._tables.get(resource)
        if found is None:
            found = self._tables[resource] = Table(forgotten=self.version - 1)
        return found

    def tables(self) -> Iterator[tuple[Resource, Table]]:
        return iter(sorted(self._tables.items()))

    def drop(self, resource: Resource) -> None:
        """Forget a resource and its history: its kind is no longer served."""
        self._tables.pop(resource, None)

    def get(self, resource: Resource, namespace: str, name: str) -> Stored | None:
        table = self._tables.get(resource)
        inside = table.objects.get(namespace) if table else None
        return inside.get(name) if inside else None

    def owned(self, uid: str) -> list[tuple[Resource, Ref]]:
        """The objects that name this uid as an owner."""
        return list(self._owned.get(uid, {}))

    def put(self, resource: Resource, ref: Ref, body: Body, owners: Owners) -> Stored:
        table = self.table(resource)
        inside = table.objects.setdefault(ref.namespace, {})
        before = inside.get(ref.name)
        self.version += 1
        stored = Stored(ref, body, owners, self.version)
        inside[ref.name] = stored
        self._index(resource, ref, before, stored)
        change = Change.MODIFIED if before else Change.ADDED
        self._record(resource, table, Transition(change, stored, before))
        return stored

    def remove(self, resource: Resource, before: Stored) -> Stored:
        table = self.table(resource)
        inside = table.objects[before.ref.namespace]
        del inside[before.ref.name]
        if not inside:
            del table.objects[before.ref.namespace]
        self.version += 1
        last = Stored(before.ref, before.body, before.owners, self.version)
        self._index(resource, before.ref, before, None)
        self._record(resource, table, Transition(Change.DELETED, last, before))
        return last

    def _record(self, resource: Resource, table: Table, event: Transition) -> None:
        table.history.append(event)
        table.latest = event.stored.version
        if len(table.history) > REMEMBERED:
            table.forgotten = table.history.popleft().stored.version
        self._told(resource, event)

    def _index(
        self, resource: Resource, ref: Ref, before: Stored | None, after: Stored | None
    ) -> None:
        if before and after and before.metadata is after.metadata:
            return
        old = owner_uids(before.metadata) if before else ()
        new = owner_uids(after.metadata) if after else ()
        if old == new:
            return
        for uid in old:
            self._owned.get(uid, {}).pop((resource, ref), None)
        for uid in new:
            self._owned.setdefault(uid, {})[resource, ref] = None


def metadata_of(body: Body) -> dict[str, Json]:
    metadata = body.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def ref_of(body: Body) -> Ref:
    """Which object a body speaks of."""
    metadata, kind = metadata_of(body), Kind.of(text(body, "apiVersion"), text(body, "kind"))
    return Ref(kind, text(metadata, "namespace"), text(metadata, "name"))


def owner_references(metadata: dict[str, Json]) -> list[dict[str, Json]]:
    found = metadata.get("ownerReferences")
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def owner_uids(metadata: dict[str, Json]) -> tuple[str, ...]:
    return tuple(str(one.get("uid", "")) for one in owner_references(metadata))
