"""An index of a cluster, so that a reconciliation need not search all objects.

The index decides nothing: it follows from the objects and is updated with their changes. After
a change an operator reconciles its own custom resources, those whose operator changed, those
that need the changed object, and the owner of a deleted product.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.knowledge.catalog import KindCatalog
from tidegate.knowledge.references import list_needs
from tidegate.model.k8s.kinds import ENDPOINT_SLICE, SERVICE
from tidegate.model.k8s.objects import Kind, Ref
from tidegate.sandbox.controllers.interface import ObjectReader
from tidegate.sandbox.controllers.writes import ref_from_reference
from tidegate.sandbox.kinds import SERVICE_NAME_LABEL, WORKLOADS
from tidegate.sandbox.operators import availability
from tidegate.sandbox.server.store import StoredObject, StoreEvent, get_owner_references
from tidegate.schema.custom_kinds import builtin_groups
from tidegate.world.messages import WatchEventType

NeededObject = tuple[str, str, str]
"""Group, kind and name of a needed object, in any namespace."""
NamespacedNeed = tuple[NeededObject, str]
"""A needed object, and the namespace in which it is needed."""


class OperatorIndex:
    """Index of one cluster: dependents by needed object, operators by kind, and unserved kinds."""

    def __init__(self, catalog: KindCatalog) -> None:
        self._catalog = catalog
        self._needs: dict[Ref, tuple[NamespacedNeed, ...]] = {}
        self._dependents: dict[NeededObject, dict[tuple[Ref, str], None]] = {}
        self._operators: dict[Kind, Ref] = {}
        self._unserved: dict[Kind, None] = {}

    def _update_needs(self, event: StoreEvent) -> None:
        """Update the needs of an object."""
        ref = event.stored.ref
        row = availability.row_for(self._catalog, ref.kind)
        if row is None or not row.needs:
            return
        old = self._needs.get(ref, ())
        new: tuple[NamespacedNeed, ...] = ()
        if event.change is not WatchEventType.DELETED:
            needed = list_needs(row, event.stored.body, ref.kind)
            new = tuple(((need.group, need.kind, need.name), need.namespace) for need in needed)
        if new == old:
            return
        for target, namespace in old:
            self._dependents.get(target, {}).pop((ref, namespace), None)
        for target, namespace in new:
            self._dependents.setdefault(target, {})[ref, namespace] = None
        self._needs[ref] = new

    def _reset_unserved(self, workload: StoredObject) -> None:
        """Forget that a kind is unserved if this workload is its operator."""
        served_kinds = [
            kind for kind in self._unserved if self._catalog.is_operator(workload.body, kind)
        ]
        for kind in served_kinds:
            del self._unserved[kind]

    def _list_dependents(self, changed: Ref) -> Iterator[Ref]:
        """Yield the objects that need this one; a cluster-scoped one from all namespaces."""
        target = (changed.kind.group, changed.kind.name, changed.name)
        for ref, namespace in self._dependents.get(target, {}):
            if changed.namespace in ("", namespace):
                yield ref

    def find_operator(self, reader: ObjectReader, kind: Kind) -> StoredObject | None:
        """Return the available operator of a kind, or None."""
        if kind in self._unserved:
            return None
        operator_ref = self._operators.get(kind)
        operator = reader.get(operator_ref) if operator_ref else None
        if (
            operator is None
            or not availability.is_available(operator)
            or not self._catalog.is_operator(operator.body, kind)
        ):
            operator = availability.find_operator(self._catalog, reader, kind)
        if operator is None:
            self._unserved[kind] = None
        else:
            self._operators[kind] = operator.ref
        return operator

    def map_event(self, reader: ObjectReader, event: StoreEvent) -> Iterator[Ref]:
        """Yield the objects to reconcile after a change."""
        stored = event.stored
        kind = stored.ref.kind
        if availability.row_for(self._catalog, kind) is not None:
            self._update_needs(event)
            yield stored.ref
        if kind in WORKLOADS and _operator_changed(event):
            self._reset_unserved(stored)
            yield from self._served_resources(reader, stored)
        if event.change is WatchEventType.DELETED:
            yield from self._owning_resources(stored)
        changed = _service_of_slice(stored) if kind == ENDPOINT_SLICE else stored.ref
        if changed is not None:
            yield from self._list_dependents(changed)

    def _served_resources(self, reader: ObjectReader, workload: StoredObject) -> Iterator[Ref]:
        for kind in availability.custom_kinds(reader):
            if self._catalog.is_operator(workload.body, kind):
                yield from (stored.ref for stored in reader.list_objects(kind))

    def _owning_resources(self, stored: StoredObject) -> Iterator[Ref]:
        for reference in get_owner_references(stored.metadata):
            kind = ref_from_reference(reference, "").kind
            if (
                kind.group not in builtin_groups()
                and availability.row_for(self._catalog, kind) is not None
            ):
                for namespace in dict.fromkeys((stored.ref.namespace, "")):
                    yield ref_from_reference(reference, namespace)


def _operator_changed(event: StoreEvent) -> bool:
    """Return whether an operator became available, changed, or is no longer available."""
    stored, before = event.stored, event.before
    was_available = before is not None and availability.is_available(before)
    is_available = event.change is not WatchEventType.DELETED and availability.is_available(stored)
    if was_available != is_available or before is None:
        return was_available or is_available
    return is_available and (before.generation, before.labels) != (stored.generation, stored.labels)


def _service_of_slice(stored: StoredObject) -> Ref | None:
    name = stored.labels.get(SERVICE_NAME_LABEL)
    return Ref(SERVICE, stored.ref.namespace, str(name)) if name else None
