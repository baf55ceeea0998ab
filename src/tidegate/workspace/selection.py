"""Selection of units and sources: their rows in order, and resources by kind, name and labels."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Protocol, TypeVar

import msgspec

from tidegate.dialect.controllers.known import SOURCE_KINDS
from tidegate.dialect.controllers.requests import source_reference
from tidegate.dialect.ownership.tracking import APPLICATION_SET
from tidegate.dialect.units import FLUX_NAMESPACE, is_dialect_kind
from tidegate.documents import Document
from tidegate.errors import Location, UsageError, sanitize
from tidegate.model.k8s.json_fields import get_labels, get_text, object_kind
from tidegate.model.k8s.labels import Requirement, SelectorError, parse_label_selector
from tidegate.model.k8s.objects import ClusterRef, JsonObject, Ref
from tidegate.model.text.names import resolve_name
from tidegate.model.units.unit import Unit, UnitId
from tidegate.model.views.units import UnitRow
from tidegate.workspace.discovery.discover import find_units
from tidegate.workspace.discovery.order import child_waves, document_waves, sort_key
from tidegate.workspace.discovery.unit_tree import RenderedUnit, UnitTree, require_rendered
from tidegate.workspace.rendering.result import RenderFailure, RenderResult
from tidegate.workspace.request import UnitSelection


def unit_rows(unit_trees: Iterable[UnitTree], *, counts: bool = False) -> list[UnitRow]:
    """Return the root units, each followed by its descendants, by their waves.

    With `counts`, with the number of their objects. Raises if PATH itself was not rendered.
    """
    unit_trees = tuple(unit_trees)
    require_rendered(member for unit_tree in unit_trees for member in unit_tree.members)
    return [row for unit_tree in unit_trees for row in _rows(unit_tree, counts=counts)]


def _rows(unit_tree: UnitTree, *, counts: bool) -> list[UnitRow]:
    members = {member.unit.id: member for member in unit_tree.members}
    children: dict[UnitId | None, list[RenderedUnit]] = {}
    for member in unit_tree.members:
        parent = member.unit.parent if member.unit.parent in members else None
        children.setdefault(parent, []).append(member)
    rows: list[UnitRow] = []

    def walk(parent: UnitId | None, depth: int) -> None:
        waves = child_waves(members.get(parent) if parent else None)
        if parent is None and unit_tree.root_document is not None:
            waves = {
                name: wave
                for name, wave in document_waves((unit_tree.root_document,)).items()
                if wave
            }
        for member in sorted(
            children.get(parent, []), key=lambda member: sort_key(member.unit, waves)
        ):
            wave = waves.get((member.unit.id.kind, member.unit.id.name))
            objects = (
                len(member.documents)
                if counts and isinstance(member.result, RenderResult)
                else None
            )
            is_faulty = isinstance(member.result, RenderFailure) or not _has_content(member.unit)
            rows.append(UnitRow(member.unit, wave, depth, objects, is_faulty))
            walk(member.unit.id, depth + 1)

    walk(None, 0)
    return rows


def _has_content(unit: Unit) -> bool:
    """Return whether a unit has a source, or is an ApplicationSet, which needs none."""
    return bool(unit.sources) or unit.id.kind == APPLICATION_SET


def unit_resources(unit_trees: Iterable[UnitTree]) -> dict[UnitId, Document]:
    """Return the desired unit resource of each unit that has one, for a root that of its file.

    Unit resources do not contain their cluster: one of a name is found for each cluster.
    """
    resources: dict[UnitId, Document] = {}
    for unit_tree in unit_trees:
        names: dict[tuple[str, str], list[UnitId]] = {}
        for member in unit_tree.members:
            names.setdefault((member.unit.id.kind, member.unit.id.name), []).append(member.unit.id)
        for document in unit_resource_documents(unit_tree):
            body = document.body
            namespace = get_text(body, "metadata", "namespace")
            for unit_id in names.get(
                (get_text(body, "kind"), get_text(body, "metadata", "name")), ()
            ):
                if namespace in {"", unit_id.namespace}:
                    resources.setdefault(unit_id, document)
    return resources


def unit_resource_documents(unit_tree: UnitTree) -> Iterator[Document]:
    """Yield the root of a tree, and the unit resources and sources that its units deploy."""
    documents = [document for member in unit_tree.members for document in member.documents]
    for document in (unit_tree.root_document, *documents):
        if document is not None and is_dialect_kind(object_kind(document.body)):
            yield document


class Selectable(Protocol):
    """An identity with labels: a unit or a source."""

    @property
    def id(self) -> UnitId: ...
    @property
    def labels(self) -> tuple[tuple[str, str], ...]: ...


SelectableT = TypeVar("SelectableT", bound=Selectable)


def select_units(units: Iterable[SelectableT], selection: UnitSelection) -> list[SelectableT]:
    """Return the selected units and sources.

    Raises UsageError if there is none: an empty selection would mean all units.
    """
    kinds, namespace, labels = selection.kinds, selection.namespace, selection.labels
    candidates = [
        candidate
        for candidate in units
        if candidate.id.kind in kinds and namespace in {"", candidate.id.namespace}
    ]
    scope = f" in namespace `{sanitize(namespace)}`" if namespace else ""
    requirements = parse_selector(labels)
    if selection.names:
        noun, make_error = (
            _kinds_noun(kinds),
            partial(UsageError, "usage.unit"),
        )
        named = [(candidate.id.names, candidate) for candidate in candidates]
        matches = (
            resolve_name(name, named, make_error, noun=noun, scope=scope)
            for name in selection.names
        )
        return [*{match.id: match for match in matches}.values()]
    selected = [
        candidate
        for candidate in candidates
        if all(requirement.matches(dict(candidate.labels)) for requirement in requirements)
    ]
    if not selected:
        label_text = f" with labels `{sanitize(labels)}`" if labels else ""
        problem = f"no {_kinds_noun(kinds)}{label_text} found{scope}"
        raise UsageError("usage.unit", problem, hint="list all units with `tidegate units`")
    return selected


def _kinds_noun(kinds: Collection[str]) -> str:
    """Return the names of the kinds for a message: `Application, HelmRelease or source`."""
    nouns = [kind for kind in kinds if kind and kind not in SOURCE_KINDS]
    sources = [kind for kind in kinds if kind in SOURCE_KINDS]
    nouns += ["source"] if nouns and sources else sources
    return " or ".join(filter(None, (", ".join(nouns[:-1]), *nouns[-1:]))) or "unit"


def parse_selector(labels: str) -> tuple[Requirement, ...]:
    """Parse a label selector of the user. Raises UsageError."""
    try:
        return parse_label_selector(labels)
    except SelectorError as error:
        problem = f"`{sanitize(labels)}` is not a label selector: {error}"
        raise UsageError("usage.selector", problem) from None


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
    unit_trees: Iterable[UnitTree], selection: UnitSelection
) -> list[SelectedResource]:
    """Return the selected units and sources. Raises UsageError if there are none."""
    return select_units(list_resources(unit_trees), selection)


def list_resources(unit_trees: Iterable[UnitTree]) -> list[SelectedResource]:
    """Return all units of a repository, each after its parent, and then all sources."""
    unit_trees = tuple(unit_trees)
    by_unit = unit_resources(unit_trees)
    units = [row.unit for row in unit_rows(unit_trees)]
    resources = [
        SelectedResource(unit.id, by_unit[unit.id].body, unit.labels, unit.location, unit)
        for unit in units
        if unit.id in by_unit
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


def select_unit_ids(unit_trees: Iterable[UnitTree], selection: UnitSelection) -> tuple[str, ...]:
    """Return the IDs of the selected units. Raises UsageError if there are none.

    The result is empty if all units are selected, so that the unit resources are applied, too.
    """
    unit_trees = tuple(unit_trees)
    if all(kind in SOURCE_KINDS for kind in selection.kinds):
        sources = select_resources(unit_trees, selection)
        return units_using_sources([source.id for source in sources], unit_trees)
    units = [row.unit for row in unit_rows(unit_trees)]
    selected = select_units(units, selection)
    is_filtered = selection.names or selection.labels
    if not is_filtered and len(selected) == sum(bool(unit.id.kind) for unit in units):
        return ()
    return tuple(str(unit.id) for unit in selected)


def units_using_sources(
    sources: Sequence[UnitId], unit_trees: Iterable[UnitTree]
) -> tuple[str, ...]:
    """Return the IDs of the Flux units that use one of these sources.

    Raises UsageError if there is none, as an empty selection would mean all units.
    """
    keys = {(source.kind, source.namespace, source.name) for source in sources}
    resources = list_resources(unit_trees)
    unit_ids = tuple(
        str(resource.id)
        for resource in resources
        if resource.unit and source_reference(resource.body) in keys
    )
    if not unit_ids:
        raise UsageError("usage.unit", f"no unit uses source `{sources[0]}`")
    return unit_ids


def find_approved_units(names: Iterable[str], members: Iterable[RenderedUnit]) -> frozenset[UnitId]:
    """Return the units approved in advance. Raises PlanError for an unknown name."""
    units = [member.unit for member in members]
    return frozenset(unit.id for name in names for unit in find_units(name, units))
