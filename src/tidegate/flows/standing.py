"""Status of units: objects compared and judged, and the status in their unit resources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from tidegate.dialect.units import is_dialect_kind
from tidegate.documents import Document
from tidegate.errors import UsageError, sanitize
from tidegate.flows.discover import UnitTree
from tidegate.flows.discover.scan import RepositoryScan
from tidegate.flows.entering import Workspace
from tidegate.flows.journal import read_unit_journal
from tidegate.flows.looking import get_objects, object_body
from tidegate.flows.preview import EMPTY_PLAN
from tidegate.flows.session import Session
from tidegate.flows.status import ObjectStatus, read_plan_status, worst_verdict
from tidegate.flows.units import unit_rows
from tidegate.model.labels import Requirement, SelectorError, parse_label_selector
from tidegate.model.objects import JsonObject, Kind, Ref
from tidegate.model.plan import Plan
from tidegate.model.reading import get_mapping, get_text
from tidegate.model.unit import Unit, UnitId
from tidegate.model.verdict import Health, Verdict
from tidegate.plan.selection import select_refs


class UnitStatus(msgspec.Struct, frozen=True):
    """Status of a unit: its wave, its unit resource and its objects."""

    unit: Unit
    wave: int | None = None
    """Wave of the unit in its parent."""
    unit_resource: JsonObject = msgspec.field(default_factory=dict)
    """The unit resource as Git has it; empty if there is none."""
    live_resource: JsonObject = msgspec.field(default_factory=dict)
    """The live unit resource; empty if there is none."""
    objects: tuple[ObjectStatus, ...] = ()
    plan: Plan = EMPTY_PLAN
    """The plan of all units that were read together."""

    @property
    def is_synced(self) -> bool:
        return all(object_status.is_synced for object_status in self.objects)

    @property
    def verdict(self) -> Verdict:
        return worst_verdict(
            object_status.verdict
            for object_status in self.objects
            if not object_status.requires_pruning
        )


async def read_unit_statuses(
    workspace: Workspace, unit_trees: Sequence[UnitTree], session: Session
) -> list[UnitStatus]:
    """Return the status of all units of the workspace, parents first, ordered by wave.

    `unit_trees`: those of the whole repository, with the waves and unit resources of all.
    """
    objects: dict[UnitId, list[ObjectStatus]] = {}
    plan_status = await read_plan_status(workspace.deployable_trees, session)
    for status in plan_status.objects:
        if status.unit is not None:
            objects.setdefault(status.unit, []).append(status)
    names = {member.unit.id for member in workspace.members}
    desired_resources = {
        name: body for name, body in unit_resources(unit_trees).items() if name in names
    }
    live_resources = await _read_live_resources(desired_resources, session)
    return [
        UnitStatus(
            row.unit,
            row.wave,
            desired_resources.get(row.unit.id, {}),
            live_resources.get(row.unit.id, {}),
            tuple(objects.get(row.unit.id, ())),
            plan_status.plan,
        )
        for row in unit_rows(unit_trees)
        if row.unit.id in names
    ]


def filter_unit_statuses(
    statuses: Sequence[UnitStatus], resources: Sequence[str]
) -> list[UnitStatus]:
    """Keep only the named objects, given as `GROUP:KIND:[NAMESPACE/]NAME`.

    Raises PlanError if a name matches no object.
    """
    if not resources:
        return [*statuses]
    selected = select_refs(
        (object_status.ref for status in statuses for object_status in status.objects), resources
    )
    filtered = (
        replace(
            status,
            objects=tuple(
                object_status for object_status in status.objects if object_status.ref in selected
            ),
        )
        for status in statuses
    )
    return [status for status in filtered if status.objects]


async def is_deleted(status: UnitStatus, session: Session) -> bool:
    """Return whether a unit is deleted: its unit resource, and its objects or its journal."""
    if status.live_resource:
        return False
    if all(object_status.verdict.health is Health.MISSING for object_status in status.objects):
        return True
    return not (await read_unit_journal(status.unit, session)).secrets


def unit_resources(unit_trees: Iterable[UnitTree]) -> dict[UnitId, JsonObject]:
    """Return the unit resource of each unit that has one, as Git has it.

    Unit resources do not name their cluster: those of one name are found for each cluster.
    """
    bodies: dict[UnitId, JsonObject] = {}
    for unit_tree in unit_trees:
        names: dict[tuple[str, str], list[UnitId]] = {}
        for member in unit_tree.members:
            names.setdefault((member.unit.id.kind, member.unit.id.name), []).append(member.unit.id)
        for body in (document.body for document in unit_resource_documents(unit_tree)):
            namespace = get_text(body, "metadata", "namespace")
            for unit_id in names.get(
                (get_text(body, "kind"), get_text(body, "metadata", "name")), ()
            ):
                if namespace in {"", unit_id.namespace}:
                    bodies.setdefault(unit_id, body)
    return bodies


def unit_resource_documents(unit_tree: UnitTree) -> Iterator[Document]:
    """Yield the unit resources and sources that the units of a tree deploy, and its root."""
    documents = [document for member in unit_tree.members for document in member.documents]
    for document in (*documents, unit_tree.root_document):
        if document is not None and is_dialect_kind(object_kind(document.body)):
            yield document


def _object_ref(body: JsonObject) -> Ref:
    metadata = get_mapping(body, "metadata")
    return Ref(object_kind(body), get_text(metadata, "namespace"), get_text(metadata, "name"))


def object_kind(body: JsonObject) -> Kind:
    return Kind.of(get_text(body, "apiVersion"), get_text(body, "kind"))


async def read_desired_and_live(
    unit_trees: Iterable[UnitTree], kinds: Sequence[str], session: Session, scan: RepositoryScan
) -> list[tuple[JsonObject, JsonObject]]:
    """Return objects of these kinds as pairs of desired and live body.

    Objects that units deploy come first, then those in the repository that no unit deploys.
    """
    deployed = (
        document for unit_tree in unit_trees for document in unit_resource_documents(unit_tree)
    )
    desired = {
        _object_ref(document.body): document.body
        for document in deployed
        if get_text(document.body, "kind") in kinds
    }
    known = {(ref.kind.name, ref.name) for ref in desired}
    scanned = (
        document
        for name in scan.documents
        if scan.is_searched(name)
        for document in scan.documents[name]
    )
    for ref, body in ((_object_ref(document.body), document.body) for document in scanned):
        is_source = ref.kind.name in kinds and is_dialect_kind(ref.kind)
        if is_source and (ref.kind.name, ref.name) not in known:
            desired.setdefault(ref, body)
    live_objects = await get_objects(session.world, desired)
    live_bodies = {
        (live.ref.kind.name, live.ref.namespace, live.ref.name): object_body(live)
        for live in live_objects
    }
    return [
        (body, live_bodies.get((ref.kind.name, ref.namespace, ref.name), {}))
        for ref, body in desired.items()
    ]


async def _read_live_resources(
    desired_resources: dict[UnitId, JsonObject], session: Session
) -> dict[UnitId, JsonObject]:
    live_bodies: dict[UnitId, JsonObject] = {}
    for cluster in dict.fromkeys(unit_id.cluster for unit_id in desired_resources):
        names = [unit_id for unit_id in desired_resources if unit_id.cluster == cluster]
        refs = [
            Ref(object_kind(desired_resources[unit_id]), unit_id.namespace, unit_id.name)
            for unit_id in names
        ]
        for live in await get_objects(session.world, refs, cluster=cluster):
            ref = live.ref
            live_bodies[UnitId(ref.kind.name, cluster, ref.namespace, ref.name)] = object_body(live)
    return live_bodies


class Selectable(Protocol):
    """An identity with labels: a unit or a source."""

    @property
    def id(self) -> UnitId: ...
    @property
    def labels(self) -> tuple[tuple[str, str], ...]: ...


SelectableT = TypeVar("SelectableT", bound=Selectable)


def select_units(
    units: Iterable[SelectableT],
    kinds: Sequence[str],
    names: Sequence[str],
    labels: str,
    namespace: str = "",
) -> list[SelectableT]:
    """Return the units of these kinds in a namespace that are named or match the labels.

    An empty namespace means any.

    Raises UsageError if there is none: an empty selection would mean all units.
    """
    candidates = [
        candidate
        for candidate in units
        if candidate.id.kind in kinds and namespace in {"", candidate.id.namespace}
    ]
    scope = f"in namespace `{sanitize(namespace)}`" if namespace else "here"
    requirements = parse_selector(labels)
    if names:
        matches = (_select_by_name(name, kinds, candidates, scope) for name in names)
        return [*{match.id: match for match in matches}.values()]
    selected = [
        candidate
        for candidate in candidates
        if all(requirement.matches(dict(candidate.labels)) for requirement in requirements)
    ]
    if not selected:
        label_text = f" with the labels `{sanitize(labels)}`" if labels else ""
        problem = f"there is no {' or '.join(kinds)} {scope}{label_text}"
        raise UsageError("words.unit", problem, hint="`tidegate units` shows all")
    return selected


def parse_selector(labels: str) -> tuple[Requirement, ...]:
    """Parse a label selector of the user. Raises UsageError."""
    try:
        return parse_label_selector(labels)
    except SelectorError as error:
        problem = f"`{sanitize(labels)}` is no selector: {error}"
        raise UsageError("words.selector", problem) from None


def _select_by_name(
    name: str, kinds: Sequence[str], candidates: Sequence[SelectableT], scope: str
) -> SelectableT:
    """Return the unit of this name, which may be prefixed with its namespace."""
    matches = [candidate for candidate in candidates if _has_name(candidate.id, name)]
    if not matches:
        raise _unknown_unit_error(name, kinds, candidates, scope)
    if len(matches) > 1:
        problem = (
            f"several are called `{sanitize(name)}`:"
            f" {', '.join(str(match.id) for match in matches)}"
        )
        raise UsageError(
            "words.unit", problem, hint="write one of these identities, or -n NAMESPACE"
        )
    return matches[0]


def _has_name(unit: UnitId, name: str) -> bool:
    """Return whether a unit has this name, `namespace/name` or identity."""
    return name in {unit.name, f"{unit.namespace}/{unit.name}", str(unit)}


def _unknown_unit_error(
    name: str, kinds: Sequence[str], candidates: Iterable[Selectable], scope: str
) -> UsageError:
    matches = get_close_matches(name, [candidate.id.name for candidate in candidates], n=1)
    guess = f"did you mean `{matches[0]}`? " if matches else ""
    problem = f"there is no {' or '.join(kinds)} `{sanitize(name)}` {scope}"
    return UsageError("words.unit", problem, hint=f"{guess}`tidegate units` shows all")
