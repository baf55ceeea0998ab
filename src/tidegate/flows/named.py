"""Resources of units, and sources, that are selected by kind and name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from tidegate.dialect.masters import SOURCE_KINDS
from tidegate.dialect.requests import source_reference
from tidegate.dialect.units import FLUX_NAMESPACE
from tidegate.errors import Location, UsageError
from tidegate.flows.discover import UnitTree
from tidegate.flows.standing import (
    object_kind,
    select_units,
    unit_resource_documents,
    unit_resources,
)
from tidegate.flows.units import unit_rows
from tidegate.model.objects import ClusterRef, JsonObject, Ref
from tidegate.model.reading import get_labels, get_text
from tidegate.model.unit import Unit, UnitId


class SelectedResource(msgspec.Struct, frozen=True):
    """The unit resource of a unit, or a Flux source, as Git defines it."""

    id: UnitId
    """The ID of the unit; a source has one of the same form."""
    body: JsonObject
    labels: tuple[tuple[str, str], ...] = ()
    location: Location | None = None
    unit: Unit | None = None
    """The unit; None for a source."""

    @property
    def cluster_ref(self) -> ClusterRef:
        return ClusterRef(
            self.id.cluster, Ref(object_kind(self.body), self.id.namespace, self.id.name)
        )


def select_resources(
    unit_trees: Iterable[UnitTree],
    kinds: Sequence[str],
    names: Sequence[str] = (),
    labels: str = "",
    namespace: str = "",
) -> list[SelectedResource]:
    """Return the resources of these kinds that have the names, or the labels.

    `namespace`: theirs; empty for any. Raises UsageError where none matches.
    """
    return select_units(list_resources(unit_trees), kinds, names, labels, namespace)


def list_resources(unit_trees: Iterable[UnitTree]) -> list[SelectedResource]:
    """Return all units of a repository, each after its parent, and then all sources."""
    unit_trees = tuple(unit_trees)
    bodies = unit_resources(unit_trees)
    units = [row.unit for row in unit_rows(unit_trees)]
    resources = [
        SelectedResource(unit.id, bodies[unit.id], unit.labels, unit.location, unit)
        for unit in units
        if unit.id in bodies
    ]
    sources: dict[UnitId, SelectedResource] = {}
    for unit_tree in unit_trees:
        for document in unit_resource_documents(unit_tree):
            body = document.body
            if get_text(body, "kind") in SOURCE_KINDS:
                source_id = _source_id(body)
                sources.setdefault(
                    source_id,
                    SelectedResource(source_id, body, get_labels(body), document.location),
                )
    return [*resources, *sources.values()]


def _source_id(body: JsonObject) -> UnitId:
    namespace = get_text(body, "metadata", "namespace") or FLUX_NAMESPACE
    return UnitId(get_text(body, "kind"), "", namespace, get_text(body, "metadata", "name"))


def units_using_sources(
    sources: Sequence[UnitId], unit_trees: Iterable[UnitTree]
) -> tuple[str, ...]:
    """Return the IDs of the Flux units that use one of these sources.

    Raises UsageError where there is none, as an empty selection would mean all units.
    """
    keys = {(source.kind, source.namespace, source.name) for source in sources}
    resources = list_resources(unit_trees)
    unit_ids = tuple(
        str(resource.id)
        for resource in resources
        if resource.unit and source_reference(resource.body) in keys
    )
    if not unit_ids:
        raise UsageError("words.unit", f"no unit here takes from `{sources[0]}`")
    return unit_ids
