"""Which objects of a plan are units' own, and which kinds its clusters know."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tidegate.dialect.tracking import SET
from tidegate.dialect.units import is_own_kind
from tidegate.documents import Document
from tidegate.knowledge.catalogue import KnownRows
from tidegate.knowledge.references import DEFINITION, definitions_of
from tidegate.model.manifest import Manifest
from tidegate.model.objects import Kind, Served
from tidegate.model.plan import Deed
from tidegate.model.reading import text
from tidegate.model.semantics import TIDEGATE
from tidegate.model.unit import Unit, UnitId


class BroughtUnits(msgspec.Struct, frozen=True):
    """All units of a plan."""

    ids: frozenset[UnitId]

    @classmethod
    def of(cls, units: Iterable[Unit]) -> BroughtUnits:
        return cls(frozenset(one.id for one in units))

    def by(self, manifest: Manifest, unit: Unit, scope: KnownKinds) -> Manifest:
        """An object of a dialect's own kind: the units that it is, and whether anybody takes it.

        It is not waited for: its controller does not run while we do its work.
        """
        kind, ref = manifest.ref.kind, manifest.ref
        if not is_own_kind(kind):
            return manifest
        name = UnitId(kind.name, unit.destination.cluster, ref.namespace, ref.name)
        own = (name,) if name in self.ids and name != unit.id else ()
        deed = manifest.deed if scope.serves(kind) else Deed.SKIP
        return msgspec.structs.replace(
            manifest, brings=own, deed=deed, gates=False, awaited=kind.name == SET
        )


class KnownKinds(msgspec.Struct, frozen=True):
    """The kinds of a cluster, by group and name: those it serves, and those without namespaces."""

    served: frozenset[tuple[str, str]]
    wide: frozenset[tuple[str, str]]
    late: frozenset[tuple[str, str]]
    """Those that an operator will define when it sees what the documents ask of it."""
    rows: KnownRows
    """What is said of kinds that are neither served nor defined."""

    @classmethod
    def of(
        cls, kinds: Iterable[Served], documents: Iterable[Document], rows: KnownRows
    ) -> KnownKinds:
        """What the cluster serves, and what the documents define."""
        kinds = tuple(kinds)
        served = {(one.kind.group, one.kind.name) for one in kinds}
        wide = {(one.kind.group, one.kind.name) for one in kinds if not one.namespaced}
        late: set[tuple[str, str]] = set()
        for document in documents:
            body, is_definition = document.body, text(document.body, "kind") == DEFINITION
            kind = Kind.of(text(body, "apiVersion"), text(body, "kind"))
            made = [] if is_definition else definitions_of(rows.row_of(kind), body, kind)
            for one in [body] if is_definition else made:
                name = (text(one, "spec", "group"), text(one, "spec", "names", "kind"))
                late |= set() if is_definition else {name} - served
                wide |= {name} if text(one, "spec", "scope") == "Cluster" else set()
                served.add(name)
        return cls(frozenset(served), frozenset(wide), frozenset(late), rows)

    def serves(self, kind: Kind) -> bool:
        return (kind.group, kind.name) in self.served

    def settled(self, manifest: Manifest, unit: Unit) -> Manifest:
        """An object of a kind that comes with the plan's own objects waits for it, by our rules.

        Argo CD and Flux try everything before they write anything, and fail.
        """
        kind, handling = manifest.ref.kind, manifest.handling
        if unit.policy.semantics.name != TIDEGATE.name or (kind.group, kind.name) not in self.late:
            return manifest
        waiting = msgspec.structs.replace(handling, waits_for_kind=True)
        return msgspec.structs.replace(manifest, handling=waiting)

    def is_namespaced(self, kind: Kind) -> bool | None:
        name = (kind.group, kind.name)
        if name in self.served:
            return name not in self.wide
        row = self.rows.row_of(kind)
        return False if row is not None and kind.name in row.cluster_wide else None
