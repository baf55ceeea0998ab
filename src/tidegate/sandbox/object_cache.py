"""A cache of the objects of a cluster, for controllers that run against any World."""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.model.k8s.objects import Kind, Ref
from tidegate.sandbox.server.store import StoredObject, get_owner_uids


class InformerCache:
    """A cache of objects. Implements ObjectReader."""

    def __init__(self) -> None:
        self._objects: dict[Kind, dict[tuple[str, str], StoredObject]] = {}
        self._refs_by_owner: dict[str, dict[Ref, None]] = {}

    @classmethod
    def from_objects(cls, objects: Iterable[StoredObject]) -> InformerCache:
        """Return a cache of these objects."""
        cache = cls()
        for stored in objects:
            cache._put(stored)
        return cache

    @property
    def kinds(self) -> list[Kind]:
        """The kinds with objects in the cache."""
        return sorted(self._objects)

    def get(self, ref: Ref) -> StoredObject | None:
        return self._objects.get(ref.kind, {}).get((ref.namespace, ref.name))

    def list_objects(self, kind: Kind, namespace: str = "") -> list[StoredObject]:
        entries = sorted(self._objects.get(kind, {}).items())
        return [
            stored
            for (object_namespace, _), stored in entries
            if not namespace or object_namespace == namespace
        ]

    def list_in_namespace(self, namespace: str) -> list[StoredObject]:
        return [
            stored
            for kind in sorted(self._objects)
            for stored in self.list_objects(kind, namespace)
        ]

    def list_owned(self, uid: str) -> list[StoredObject]:
        dependents = (self.get(ref) for ref in self._refs_by_owner.get(uid, {}))
        return [stored for stored in dependents if stored is not None]

    def _put(self, stored: StoredObject, *, is_present: bool = True) -> None:
        ref = stored.ref
        for uid in get_owner_uids(stored.metadata):
            self._refs_by_owner.setdefault(uid, {})[ref] = None
        if is_present:
            self._objects.setdefault(ref.kind, {})[ref.namespace, ref.name] = stored
