"""Who is meant by a kind and a name: own objects of units, and sources, by their repository."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from tidegate.dialect.masters import SOURCES
from tidegate.dialect.requests import source_of
from tidegate.dialect.units import FLUX_HOME
from tidegate.errors import Place, WordsError
from tidegate.flows.discover import Family
from tidegate.flows.standing import choose_units, kind_of, own_bodies, own_documents
from tidegate.flows.units import unit_rows
from tidegate.model.objects import Json, Ref, Spot
from tidegate.model.reading import labels_of, text
from tidegate.model.unit import Unit, UnitId

Body = dict[str, Json]


class NamedObject(msgspec.Struct, frozen=True):
    """The own object of a unit, or a source, as Git has it.

    `id` is that of the unit; a source is named alike. `unit` is None for a source.
    """

    id: UnitId
    own: Body
    labels: tuple[tuple[str, str], ...] = ()
    where: Place | None = None
    unit: Unit | None = None

    @property
    def spot(self) -> Spot:
        return Spot(self.id.cluster, Ref(kind_of(self.own), self.id.namespace, self.id.name))


def find_named(
    families: Iterable[Family],
    kinds: Sequence[str],
    names: Sequence[str] = (),
    labels: str = "",
    home: str = "",
) -> list[NamedObject]:
    """Those of these kinds that have the names, or the labels. Raises WordsError where none has.

    `home`: the namespace that they are in; empty where any will do.
    """
    return choose_units(all_named(families), kinds, names, labels, home)


def all_named(families: Iterable[Family]) -> list[NamedObject]:
    """All that a repository has: units, each behind who brings it, and then sources."""
    families = tuple(families)
    bodies = own_bodies(families)
    units = [row.unit for row in unit_rows(families)]
    found = [
        NamedObject(one.id, bodies[one.id], one.labels, one.where, one)
        for one in units
        if one.id in bodies
    ]
    sources: dict[UnitId, NamedObject] = {}
    for family in families:
        for document in own_documents(family):
            body = document.body
            if text(body, "kind") in SOURCES:
                name = _source_id(body)
                sources.setdefault(name, NamedObject(name, body, labels_of(body), document.place))
    return [*found, *sources.values()]


def _source_id(body: Body) -> UnitId:
    home = text(body, "metadata", "namespace") or FLUX_HOME
    return UnitId(text(body, "kind"), "", home, text(body, "metadata", "name"))


def takers_of(sources: Sequence[UnitId], families: Iterable[Family]) -> tuple[str, ...]:
    """The identities of the units of Flux's that take from one of these sources.

    Raises WordsError where there is none: whoever goes on with nobody would go on with all.
    """
    wanted = {(one.kind, one.namespace, one.name) for one in sources}
    named = all_named(families)
    found = tuple(str(one.id) for one in named if one.unit and source_of(one.own) in wanted)
    if not found:
        raise WordsError("words.unit", f"no unit here takes from `{sources[0]}`")
    return found
