"""The object store of a cluster: objects by resource, a version for every change, and a history.

Bodies are shared and never changed in place. The cost of a write does not depend on the number
of stored objects.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

from tidegate.model.k8s.json_fields import get_text, object_kind
from tidegate.model.k8s.objects import Json, JsonObject, Kind, LiveObject, Ref
from tidegate.sandbox.ownership.owners import (
    ManagedFields,
    encode_managed_fields,
    managed_fields_to_json,
)
from tidegate.world.messages import WatchEventType
from tidegate.world.requests import View

NO_LABELS: dict[str, Json] = {}
HISTORY_LIMIT = 10_000
"""Number of changes per resource that are kept for watches that resume."""


class GroupResource(NamedTuple):
    """A resource without its version: objects of a kind are stored once for all versions."""

    group: str
    """The API group."""
    plural: str
    """The plural of the kind."""


class StoredObject(msgspec.Struct, eq=False, gc=False):
    """One state of one object. Version and managed fields are kept outside of the body.

    Thousands are stored. None can be part of a reference cycle, so garbage collection is off.
    """

    ref: Ref
    """The reference to the object."""
    body: JsonObject
    """The body without version and managed fields."""
    managed_fields: ManagedFields
    """The managed fields."""
    version: int
    """The resource version."""
    metadata: dict[str, Json] = msgspec.field(default_factory=dict)
    """The metadata of the body."""
    _full: LiveObject | None = None
    """The encoded object; None before its first use."""
    _partial: LiveObject | None = None
    """The encoded metadata; None before its first use."""

    def __post_init__(self) -> None:
        self.metadata = get_metadata(self.body)

    @property
    def uid(self) -> str:
        """The uid."""
        return str(self.metadata.get("uid", ""))

    @property
    def generation(self) -> int:
        """The generation; 0 without one."""
        generation = self.metadata.get("generation", 0)
        return generation if isinstance(generation, int) else 0

    @property
    def labels(self) -> dict[str, Json]:
        """The labels."""
        labels = self.metadata.get("labels")
        return labels if isinstance(labels, dict) else NO_LABELS

    @property
    def is_deleting(self) -> bool:
        """Whether the object is being deleted."""
        return "deletionTimestamp" in self.metadata

    @property
    def finalizers(self) -> list[Json]:
        """The finalizers."""
        finalizers = self.metadata.get("finalizers")
        return finalizers if isinstance(finalizers, list) else []

    def to_live(self, kind: Kind, view: View = View.FULL) -> LiveObject:
        """Return the object as clients get it; encoded once for each view."""
        cached = self._full if view is View.FULL else self._partial
        if cached is not None and cached.ref.kind == kind:
            return cached
        ref = self.ref if kind == self.ref.kind else msgspec.structs.replace(self.ref, kind=kind)
        body = msgspec.json.encode(self._to_response(kind, view))
        live = LiveObject(ref, self.uid, self.generation, str(self.version), body)
        if view is View.FULL:
            self._full = live
        else:
            self._partial = live
        return live

    def to_live_head(self) -> LiveObject:
        """Return the live object without a body; nothing is encoded."""
        return LiveObject(self.ref, self.uid, self.generation, str(self.version), b"")

    def to_body(self, *, with_managed_fields: bool = True) -> JsonObject:
        """Return the full body as a client would read it, with version and managed fields."""
        metadata = {**self.metadata, "resourceVersion": str(self.version)}
        if self.managed_fields and with_managed_fields:
            metadata["managedFields"] = managed_fields_to_json(self.managed_fields)
        return {**self.body, "metadata": metadata}

    def _to_response(self, kind: Kind, view: View) -> dict[str, object]:
        metadata: dict[str, object] = {**self.metadata, "resourceVersion": str(self.version)}
        if self.managed_fields:
            metadata["managedFields"] = encode_managed_fields(self.managed_fields)
        if view is View.METADATA:
            return {
                "apiVersion": "meta.k8s.io/v1",
                "kind": "PartialObjectMetadata",
                "metadata": metadata,
            }
        type_meta = {"apiVersion": kind.api_version, "kind": kind.name}
        return {**self.body, "metadata": metadata, **type_meta}


class StoreEvent(msgspec.Struct, frozen=True, gc=False):
    """A change of an object: the new state and the previous one."""

    change: WatchEventType
    """The type of the change."""
    stored: StoredObject
    """The new state; the last state of a deleted object."""
    before: StoredObject | None
    """The previous state; None for a new object."""


class ResourceTable(msgspec.Struct):
    """All objects of one resource, by namespace and name, and their recent changes."""

    objects: dict[str, dict[str, StoredObject]] = msgspec.field(default_factory=dict)
    """Objects by namespace and name."""
    history: deque[StoreEvent] = msgspec.field(default_factory=deque)
    """Recent changes, the oldest first."""
    compacted_version: int = 0
    """Changes up to this version are no longer available, as after a compaction of etcd."""
    latest_version: int = 0
    """The version of the last change."""

    def list_objects(self, namespace: str) -> list[StoredObject]:
        """Return the objects, sorted by namespace and name; an empty namespace means all."""
        if not self.objects:
            return []
        if namespace:
            by_name = self.objects.get(namespace, {})
            return [by_name[name] for name in sorted(by_name)]
        return [
            by_name[name] for _, by_name in sorted(self.objects.items()) for name in sorted(by_name)
        ]

    def events_since(self, version: int) -> Iterator[StoreEvent]:
        """Return the changes after a version."""
        return (event for event in self.history if event.stored.version > version)

    def compact(self, version: int) -> None:
        """Drop the changes up to a version."""
        while self.history and self.history[0].stored.version <= version:
            self.history.popleft()
        self.compacted_version = max(self.compacted_version, version)


class ObjectStore:
    """The tables of one cluster, with a common version counter."""

    def __init__(self, on_change: Callable[[GroupResource, StoreEvent], None]) -> None:
        self.version = 1
        self._on_change = on_change
        self._tables: dict[GroupResource, ResourceTable] = {}
        self._refs_by_owner: dict[str, dict[tuple[GroupResource, Ref], None]] = {}

    def get_table(self, resource: GroupResource) -> ResourceTable:
        """Return the table of a resource; it is created if it does not exist."""
        table = self._tables.get(resource)
        if table is None:
            table = self._tables[resource] = ResourceTable(compacted_version=self.version - 1)
        return table

    def list_tables(self) -> Iterator[tuple[GroupResource, ResourceTable]]:
        """Yield all tables with their resources."""
        return iter(sorted(self._tables.items()))

    def drop_table(self, resource: GroupResource) -> None:
        """Remove a resource and its history, because its kind is no longer served."""
        self._tables.pop(resource, None)

    def get(self, resource: GroupResource, namespace: str, name: str) -> StoredObject | None:
        """Return an object, or None if it does not exist."""
        table = self._tables.get(resource)
        by_name = table.objects.get(namespace) if table else None
        return by_name.get(name) if by_name else None

    def list_owned(self, uid: str) -> list[tuple[GroupResource, Ref]]:
        """Return the objects with an owner reference to this uid."""
        return list(self._refs_by_owner.get(uid, {}))

    def put(
        self, resource: GroupResource, ref: Ref, body: JsonObject, managed_fields: ManagedFields
    ) -> StoredObject:
        """Store a new state of an object."""
        table = self.get_table(resource)
        by_name = table.objects.setdefault(ref.namespace, {})
        before = by_name.get(ref.name)
        self.version += 1
        stored = StoredObject(ref, body, managed_fields, self.version)
        by_name[ref.name] = stored
        self._index_owners(resource, ref, before, stored)
        change = WatchEventType.MODIFIED if before else WatchEventType.ADDED
        self._record(resource, table, StoreEvent(change, stored, before))
        return stored

    def remove(self, resource: GroupResource, before: StoredObject) -> StoredObject:
        """Remove an object, and return its last state."""
        table = self.get_table(resource)
        by_name = table.objects[before.ref.namespace]
        del by_name[before.ref.name]
        if not by_name:
            del table.objects[before.ref.namespace]
        self.version += 1
        deleted = StoredObject(before.ref, before.body, before.managed_fields, self.version)
        self._index_owners(resource, before.ref, before, None)
        self._record(resource, table, StoreEvent(WatchEventType.DELETED, deleted, before))
        return deleted

    def _record(self, resource: GroupResource, table: ResourceTable, event: StoreEvent) -> None:
        table.history.append(event)
        table.latest_version = event.stored.version
        if len(table.history) > HISTORY_LIMIT:
            table.compacted_version = table.history.popleft().stored.version
        self._on_change(resource, event)

    def _index_owners(
        self,
        resource: GroupResource,
        ref: Ref,
        before: StoredObject | None,
        after: StoredObject | None,
    ) -> None:
        if before and after and before.metadata is after.metadata:
            return
        old = get_owner_uids(before.metadata) if before else ()
        new = get_owner_uids(after.metadata) if after else ()
        if old == new:
            return
        for uid in old:
            self._refs_by_owner.get(uid, {}).pop((resource, ref), None)
        for uid in new:
            self._refs_by_owner.setdefault(uid, {})[resource, ref] = None


def get_metadata(body: JsonObject) -> dict[str, Json]:
    """Return the metadata of a body."""
    metadata = body.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def ref_from_body(body: JsonObject) -> Ref:
    """Return the reference to the object of a body."""
    metadata, kind = (
        get_metadata(body),
        object_kind(body),
    )
    return Ref(kind, get_text(metadata, "namespace"), get_text(metadata, "name"))


def get_owner_references(metadata: dict[str, Json]) -> list[dict[str, Json]]:
    """Return the owner references in metadata."""
    references = metadata.get("ownerReferences")
    return (
        [reference for reference in references if isinstance(reference, dict)]
        if isinstance(references, list)
        else []
    )


def get_owner_uids(metadata: dict[str, Json]) -> tuple[str, ...]:
    """Return the uids of the owners."""
    return tuple(str(reference.get("uid", "")) for reference in get_owner_references(metadata))
