"""Which objects of a plan are units' own, and which kinds its clusters know."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tidegate.dialect.tracking import APPLICATION_SET
from tidegate.dialect.units import is_dialect_kind
from tidegate.documents import Document
from tidegate.knowledge.catalogue import KnownRows
from tidegate.knowledge.references import DEFINITION, definitions_of
from tidegate.model.manifest import Manifest
from tidegate.model.objects import Kind, ServedKind
from tidegate.model.plan import ItemAction
from tidegate.model.reading import get_text
from tidegate.model.semantics import TIDEGATE
from tidegate.model.unit import Unit, UnitId


class UnitIndex(msgspec.Struct, frozen=True):
    """The ids of all units of a plan."""

    ids: frozenset[UnitId]

    @classmethod
    def from_units(cls, units: Iterable[Unit]) -> UnitIndex:
        return cls(frozenset(unit.id for unit in units))

    def link_unit_resource(self, manifest: Manifest, unit: Unit, kinds: KnownKinds) -> Manifest:
        """Link a unit resource to the unit it defines; skip it if its kind is not served.

        Unit resources do not gate: their controllers do not run while Tidegate does their work.
        """
        kind, ref = manifest.ref.kind, manifest.ref
        if not is_dialect_kind(kind):
            return manifest
        unit_id = UnitId(kind.name, unit.destination.cluster, ref.namespace, ref.name)
        child_units = (unit_id,) if unit_id in self.ids and unit_id != unit.id else ()
        action = manifest.action if kinds.serves(kind) else ItemAction.SKIP
        return msgspec.structs.replace(
            manifest,
            child_units=child_units,
            action=action,
            is_gating=False,
            is_awaited=kind.name == APPLICATION_SET,
        )


class KnownKinds(msgspec.Struct, frozen=True):
    """The kinds of a cluster, by group and name."""

    served: frozenset[tuple[str, str]]
    """Kinds that are served, or defined by the plan."""
    cluster_scoped: frozenset[tuple[str, str]]
    """Kinds without namespaces."""
    operator_defined: frozenset[tuple[str, str]]
    """Kinds that an operator defines when it sees the documents."""
    catalog: KnownRows
    """Knowledge of kinds that are neither served nor defined."""

    @classmethod
    def from_served(
        cls, kinds: Iterable[ServedKind], documents: Iterable[Document], catalog: KnownRows
    ) -> KnownKinds:
        """Return the kinds that the cluster serves and that the documents define."""
        kinds = tuple(kinds)
        served = {(served_kind.kind.group, served_kind.kind.name) for served_kind in kinds}
        cluster_scoped = {
            (served_kind.kind.group, served_kind.kind.name)
            for served_kind in kinds
            if not served_kind.namespaced
        }
        operator_defined: set[tuple[str, str]] = set()
        for document in documents:
            body, is_definition = document.body, get_text(document.body, "kind") == DEFINITION
            kind = Kind.of(get_text(body, "apiVersion"), get_text(body, "kind"))
            operator_crds = (
                [] if is_definition else definitions_of(catalog.row_of(kind), body, kind)
            )
            for crd in [body] if is_definition else operator_crds:
                name = (get_text(crd, "spec", "group"), get_text(crd, "spec", "names", "kind"))
                operator_defined |= set() if is_definition else {name} - served
                cluster_scoped |= {name} if get_text(crd, "spec", "scope") == "Cluster" else set()
                served.add(name)
        return cls(
            frozenset(served), frozenset(cluster_scoped), frozenset(operator_defined), catalog
        )

    def serves(self, kind: Kind) -> bool:
        return (kind.group, kind.name) in self.served

    def with_kind_wait(self, manifest: Manifest, unit: Unit) -> Manifest:
        """Let an object of an operator-defined kind wait for that kind, with Tidegate semantics.

        Argo CD and Flux dry-run everything before the first write, and fail.
        """
        kind, handling = manifest.ref.kind, manifest.options
        if (
            unit.policy.semantics.name != TIDEGATE.name
            or (kind.group, kind.name) not in self.operator_defined
        ):
            return manifest
        waiting = msgspec.structs.replace(handling, waits_for_kind=True)
        return msgspec.structs.replace(manifest, options=waiting)

    def is_namespaced(self, kind: Kind) -> bool | None:
        name = (kind.group, kind.name)
        if name in self.served:
            return name not in self.cluster_scoped
        row = self.catalog.row_of(kind)
        return False if row is not None and kind.name in row.cluster_wide else None
