"""Which objects of a plan are units' own, and which kinds its clusters know."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from tidegate.dialect.tracking import SET
from tidegate.dialect.units import is_own_kind
from tidegate.documents import Document
from tidegate.model.manifest import Manifest
from tidegate.model.objects import Kind, Served
from tidegate.model.plan import Deed
from tidegate.model.reading import text
from tidegate.model.unit import Unit, UnitId


@dataclass(frozen=True, slots=True)
class BroughtUnits:
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


@dataclass(frozen=True, slots=True)
class KnownKinds:
    """The kinds of a cluster, by group and name: those it serves, and those without namespaces."""

    served: frozenset[tuple[str, str]]
    wide: frozenset[tuple[str, str]]

    @classmethod
    def of(cls, kinds: Iterable[Served], documents: Iterable[Document]) -> KnownKinds:
        """What the cluster serves, and what the documents define."""
        kinds = tuple(kinds)
        served = {(one.kind.group, one.kind.name) for one in kinds}
        wide = {(one.kind.group, one.kind.name) for one in kinds if not one.namespaced}
        for document in documents:
            body = document.body
            if text(body, "kind") == "CustomResourceDefinition":
                name = (text(body, "spec", "group"), text(body, "spec", "names", "kind"))
                served.add(name)
                if text(body, "spec", "scope") == "Cluster":
                    wide.add(name)
        return cls(frozenset(served), frozenset(wide))

    def serves(self, kind: Kind) -> bool:
        return (kind.group, kind.name) in self.served

    def is_namespaced(self, kind: Kind) -> bool | None:
        name = (kind.group, kind.name)
        return False if name in self.wide else True if name in self.served else None
