"""Cache of live objects: the served kinds of each cluster and the planned objects.

Like a client-go informer: one list and one watch for each kind. Only planned objects are kept,
as bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import msgspec

from tidegate.engine.cluster.procedures import ApiCall, Procedure
from tidegate.engine.fences import is_older
from tidegate.model.k8s.objects import ClusterRef, Kind, LiveObject, ServedKind
from tidegate.model.times import Ms
from tidegate.world import messages
from tidegate.world.requests import Discover, Get, Selection, Watch

WatchKey: TypeAlias = tuple[str, Kind]
"""Cluster and kind of a watch."""


class LiveCache(msgspec.Struct):
    """Live state of the planned objects, by cluster."""

    objects: dict[ClusterRef, LiveObject] = msgspec.field(default_factory=dict)
    served_kinds: dict[str, dict[Kind, ServedKind]] = msgspec.field(default_factory=dict)
    _tracked: dict[ClusterRef, None] = msgspec.field(default_factory=dict)
    _watched_namespaces: dict[WatchKey, set[str]] = msgspec.field(default_factory=dict)
    """Namespaces that are watched for each kind; the empty name means all namespaces."""
    _synced: set[ClusterRef] = msgspec.field(default_factory=set)
    """References whose cached state is current."""

    def track(self, object_refs: Iterable[ClusterRef]) -> None:
        """Keep these objects in the cache from now on."""
        self._tracked.update(dict.fromkeys(object_refs))

    def is_tracked(self, object_ref: ClusterRef) -> bool:
        """Return whether an object is kept in the cache."""
        return object_ref in self._tracked

    def find_unsynced(self, object_refs: Iterable[ClusterRef]) -> list[ClusterRef]:
        """Return the references whose state is unknown.

        That an object does not exist is a known state.
        """
        return [object_ref for object_ref in object_refs if object_ref not in self._synced]

    def invalidate(self, object_refs: Iterable[ClusterRef]) -> None:
        """Mark the cached state of these objects as old; it is read again when it is needed."""
        self._synced.difference_update(object_refs)

    def apply_watch_event(self, cluster: str, event: messages.WatchEvent) -> ClusterRef | None:
        """Apply a watch event.

        Return the reference if a tracked object has changed, otherwise None.

        Versions that our own write returned are not changes.
        """
        live = event.live
        object_ref = ClusterRef(cluster, live.ref)
        if object_ref not in self._tracked:
            return None
        if event.type is messages.WatchEventType.DELETED:
            self.remove(object_ref, live.uid)
            return object_ref
        cached = self.objects.get(object_ref)
        if cached is not None and cached.uid == live.uid and not _is_newer(live, cached):
            return None
        self.objects[object_ref] = live
        return object_ref

    def remove(self, object_ref: ClusterRef, uid: str) -> None:
        """Remove a deleted object, unless another one of the same name has replaced it."""
        cached = self.objects.get(object_ref)
        if cached is not None and uid in {"", cached.uid}:
            del self.objects[object_ref]

    def store(self, object_ref: ClusterRef, live: LiveObject) -> None:
        """Store a returned object, unless a watch has delivered a newer version."""
        cached = self.objects.get(object_ref)
        if (
            cached is None
            or cached.uid != live.uid
            or is_older(cached.resource_version, live.resource_version)
        ):
            self.objects[object_ref] = live

    def discover_kinds(
        self, clusters: Iterable[str], max_age: Ms = Ms(0)
    ) -> Procedure[messages.ErrorOutcome | None]:
        """Run API discovery for clusters; return the first error, if any.

        An earlier discovery that is not older than `max_age` is used instead.
        """
        names = tuple(dict.fromkeys(clusters))
        outcomes = yield tuple(ApiCall(name, Discover(max_age)) for name in names)
        for name, outcome in zip(names, outcomes, strict=True):
            if isinstance(outcome, messages.ApiResources):
                self.served_kinds[name] = {served.kind: served for served in outcome.kinds}
            elif messages.is_error(outcome):
                return outcome
        return None

    def rediscover_kinds(self, cluster: str) -> Procedure[messages.ErrorOutcome | None]:
        """Run discovery again and invalidate the objects of kinds that are no longer served."""
        error = yield from self.discover_kinds((cluster,))
        served = self.served_kinds.get(cluster, {})
        removed = {
            kind
            for watched_cluster, kind in self._watched_namespaces
            if watched_cluster == cluster and kind not in served
        }
        for kind in removed:
            del self._watched_namespaces[cluster, kind]
        self.invalidate(
            [
                object_ref
                for object_ref in self._synced
                if object_ref.cluster == cluster and object_ref.ref.kind in removed
            ]
        )
        return error

    def is_served(self, object_ref: ClusterRef) -> bool:
        """Return whether the cluster serves the kind of an object."""
        return object_ref.ref.kind in self.served_kinds.get(object_ref.cluster, {})

    def sync(self, object_refs: Iterable[ClusterRef]) -> Procedure[messages.ErrorOutcome | None]:
        """Watch the served kinds of these objects; done when their live state is known.

        Objects of a kind that is already watched are read one by one. Return the first error,
        if any.
        """
        watched_refs: list[ClusterRef] = []
        refs_by_watch: dict[WatchKey, list[ClusterRef]] = {}
        for object_ref in filter(self.is_served, self.find_unsynced(object_refs)):
            if self._watched_namespaces.get(_watch_key(object_ref), set()) & {
                "",
                object_ref.ref.namespace,
            }:
                watched_refs.append(object_ref)
            else:
                refs_by_watch.setdefault(_watch_key(object_ref), []).append(object_ref)
        calls = [self._watch_call(key, refs) for key, refs in refs_by_watch.items()]
        outcomes = yield (
            *calls,
            *(ApiCall(object_ref.cluster, Get(object_ref.ref)) for object_ref in watched_refs),
        )
        for (key, refs), outcome in zip(refs_by_watch.items(), outcomes, strict=False):
            if not messages.is_error(outcome):
                self._synced.update(refs)
                continue
            self._watched_namespaces.pop(key)
            if not isinstance(outcome, messages.NotServed):
                return outcome
        return self._store_read(watched_refs, outcomes[len(refs_by_watch) :])

    def _store_read(
        self, object_refs: list[ClusterRef], outcomes: tuple[messages.Outcome, ...]
    ) -> messages.ErrorOutcome | None:
        for object_ref, outcome in zip(object_refs, outcomes, strict=True):
            if isinstance(outcome, messages.Success) and outcome.live is not None:
                self.store(object_ref, outcome.live)
            elif isinstance(outcome, messages.NotFound):
                self.objects.pop(object_ref, None)
            elif messages.is_error(outcome) and not isinstance(outcome, messages.NotServed):
                return outcome
            self._synced.add(object_ref)
        return None

    def _watch_call(self, key: WatchKey, object_refs: list[ClusterRef]) -> ApiCall:
        """Return the watch of one namespace if that is enough; otherwise of all namespaces.

        The needed namespaces are given for users that may not watch all of them.
        """
        cluster, kind = key
        names = sorted({object_ref.ref.namespace for object_ref in object_refs})
        namespace = names[0] if len(names) == 1 else ""
        fallback_namespaces = tuple(name for name in names if name) if not namespace else ()
        self._watched_namespaces.setdefault(key, set()).add(namespace)
        return ApiCall(
            cluster, Watch(Selection(kind, namespace), fallback_namespaces=fallback_namespaces)
        )


def _watch_key(object_ref: ClusterRef) -> WatchKey:
    return object_ref.cluster, object_ref.ref.kind


def _is_newer(live: LiveObject, cached: LiveObject) -> bool:
    return cached.resource_version != live.resource_version and not is_older(
        live.resource_version, cached.resource_version
    )
