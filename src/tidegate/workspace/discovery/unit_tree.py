"""Unit trees: which unit creates which, and where a repository starts.

    scan ── candidates         units as files define them
      │
    render each ── children    unit resources in its objects
      │
    roots ── unit trees        units that no other creates, and all their descendants

Two roots may create the same unit: dev and prod of one repository. They are alternatives, so
that each tree has units of its own.
"""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from pathlib import Path

import msgspec
from msgspec.structs import replace

from tidegate.dialect.declared import Declarations
from tidegate.dialect.units import FLUX_INSTANCE
from tidegate.documents import Document
from tidegate.errors import Location
from tidegate.model.finding import Finding, Severity
from tidegate.model.k8s.json_fields import get_mapping, get_text, object_kind
from tidegate.model.k8s.objects import JsonObject
from tidegate.model.units.chart_request import ChartRequest
from tidegate.model.units.policy import Policy, Tracking
from tidegate.model.units.rendering import (
    Directory,
    HelmOptions,
    LoadRestriction,
    Overlay,
    ToolDetection,
)
from tidegate.model.units.source import (
    ChartSource,
    LocalSource,
    OciSource,
)
from tidegate.model.units.unit import Destination, Unit, UnitId, UnitSource
from tidegate.workspace.discovery.appsets import AppSetExpander, ExpandedAppSet
from tidegate.workspace.discovery.scan import DataKey, RepositoryScan
from tidegate.workspace.discovery.unit_scope import UnitScope
from tidegate.workspace.rendering.result import RenderFailure, RenderResult
from tidegate.workspace.rendering.sources import Data, FindData

NO_DECLARATIONS = Declarations()
BOOTSTRAP_FILE = "gotk-sync.yaml"
RenderFunction = Callable[[Unit, FindData], Awaitable[RenderResult | RenderFailure]]


class RenderedUnit(msgspec.Struct, frozen=True):
    """A unit with its render result, and what the result declares."""

    unit: Unit
    result: RenderResult | RenderFailure
    declared: Declarations = NO_DECLARATIONS
    is_raw: bool = False
    """Whether it is read from a file whose parent, or the parent of that, was not rendered.

    The parent may set its namespace and variables, patch it, or leave it out.
    """

    @property
    def documents(self) -> tuple[Document, ...]:
        return self.result.documents if isinstance(self.result, RenderResult) else ()

    @property
    def has_known_names(self) -> bool:
        """Whether the names of all objects of the unit are known."""
        return isinstance(self.result, RenderResult) and self.result.has_known_names

    def with_policy(self, policy: Policy) -> RenderedUnit:
        """Return the unit with another policy."""
        return replace(self, unit=replace(self.unit, policy=policy))

    @property
    def remote_bases(self) -> tuple[str, ...]:
        """Remote bases that its overlays use."""
        return self.result.remote_bases if isinstance(self.result, RenderResult) else ()


def require_rendered(members: Iterable[RenderedUnit]) -> None:
    """Raise the errors where PATH itself could not be rendered.

    In a repository a unit that could not be rendered is a finding, and the others continue.
    """
    errors = [
        error
        for member in members
        if isinstance(member.result, RenderFailure) and member.unit.is_path
        for error in member.result.errors
    ]
    if errors:
        raise ExceptionGroup("not rendered", errors)


class UnitTree(msgspec.Struct, frozen=True):
    """A root unit and all its descendants, parents before their children."""

    root_id: UnitId
    members: tuple[RenderedUnit, ...]
    unread: tuple[RenderedUnit, ...] = ()
    """Units in files below units that were not rendered, whose names are not in these files."""
    findings: tuple[Finding, ...] = ()
    root_document: Document | None = None
    """The unit resource of the root, where a file has it."""

    def map_members(self, change: Callable[[RenderedUnit], RenderedUnit]) -> UnitTree:
        """Return the tree with each unit changed."""
        return replace(self, members=tuple(map(change, self.members)))

    @property
    def root_name(self) -> str:
        """What identifies this root: its file, else its ID."""
        location = self.members[0].unit.location
        return location.name if location else str(self.root_id)

    @property
    def unit_ids(self) -> frozenset[UnitId]:
        return frozenset(member.unit.id for member in self.members)

    @property
    def identifiers(self) -> frozenset[str]:
        """Its units, by their IDs and by their locations."""
        units = (member.unit for member in (*self.members, *self.unread))
        return frozenset(name for unit in units for name in _identifiers(unit))


def root_bodies(unit_trees: Iterable[UnitTree]) -> dict[UnitId, JsonObject]:
    """Return the unit resources of roots, as their files have them."""
    return {
        unit_tree.root_id: unit_tree.root_document.body
        for unit_tree in unit_trees
        if unit_tree.root_document is not None
    }


class UnitNode(msgspec.Struct):
    """A unit where it is created, rendered once, and the units that it creates."""

    member: RenderedUnit
    children: list[UnitNode] = msgspec.field(default_factory=list)


class UnitTreeBuilder:
    """Builder of unit trees: renders each unit, and then the units that it creates.

    The same unit in two places is rendered once, unless it uses other data there.
    """

    def __init__(
        self, scan: RepositoryScan, render: RenderFunction, expander: AppSetExpander
    ) -> None:
        self._scan = scan
        self._expander = expander
        self._render = render
        self._results: dict[bytes, list[RenderResult | RenderFailure]] = {}
        self._lookups: dict[int, Mapping[DataKey, Data | None]] = {}
        """By the `id()` of a result, the data that it was rendered with."""
        self._locks: dict[bytes, asyncio.Lock] = {}
        self._declared: dict[tuple[int, str], Declarations] = {}
        self._appsets: dict[tuple[UnitId, Location | None], ExpandedAppSet] = {}
        """ApplicationSets in files, by their units as candidates."""

    async def expand_appsets(self) -> None:
        """Expand the ApplicationSets in files."""
        for name, declared in self._scan.declared.items():
            if declared.application_sets and self._scan.is_searched(name):
                expanded = [
                    await self._expander.expand(appset) for appset in declared.application_sets
                ]
                self._appsets |= {
                    (expanded_set.unit.id, expanded_set.unit.location): expanded_set
                    for expanded_set in expanded
                }
                units = (*declared.units, *(expanded_set.unit for expanded_set in expanded))
                self._scan.generated[name] = msgspec.structs.replace(declared, units=units)

    async def build(self, units: Iterable[Unit]) -> list[UnitNode]:
        """Return the nodes of these units, each with all its descendants."""
        return await self._build_all(units, UnitScope(self._scan), ())

    async def build_within(self, unit: Unit, scope: UnitScope) -> UnitNode:
        """Return the node of a unit; it and its descendants see the objects of a scope."""
        return await self._build_node(unit, scope, (unit.id,))

    def reads_otherwise(self, member: RenderedUnit, scope: UnitScope) -> bool:
        """Return whether a unit was rendered with data that is not that of a scope."""
        lookups = self._lookups.get(id(member.result), {})
        return scope.data_finder(member.unit).returns_otherwise(lookups)

    async def _build_all(
        self,
        units: Iterable[Unit],
        scope: UnitScope,
        ancestors: tuple[UnitId, ...],
        *,
        are_raw: bool = False,
    ) -> list[UnitNode]:
        """Build these units at once. Those that may create others start first.

        While tools render them, the remaining units are read.
        """
        units = tuple(units)
        async with asyncio.TaskGroup() as group:
            tasks = {
                index: group.create_task(
                    self._build_node(
                        units[index], scope, (*ancestors, units[index].id), is_raw=are_raw
                    )
                )
                for index in sorted(
                    range(len(units)), key=lambda index: not self._may_create_units(units[index])
                )
            }
        return [tasks[index].result() for index in range(len(units))]

    def _may_create_units(self, unit: Unit) -> bool:
        """Return whether files with units are below one of its paths."""
        return any(source.path in self._scan.unit_directories for source in unit.sources)

    async def _build_node(
        self, unit: Unit, scope: UnitScope, ancestors: tuple[UnitId, ...], *, is_raw: bool = False
    ) -> UnitNode:
        file_appset = self._appsets.get((unit.id, unit.location)) if len(ancestors) == 1 else None
        if file_appset is not None:
            return await self._build_appset_node(unit, file_appset, scope, ancestors, is_raw=is_raw)
        unit = scope.with_sources(unit)
        result = await self._render_once(unit, scope)
        if isinstance(result, RenderFailure):
            is_here = self._scan.root in result.trees
            units = _units_in_directory(unit, self._scan) if is_here else ()
            declared = Declarations(units=tuple(units))
        else:
            declared = self._find_units(result, unit.destination.namespace)
        member = RenderedUnit(unit, result, declared, is_raw)
        child_scope = UnitScope(self._scan, member.documents, declared, scope)
        children = [_as_child(declared_unit, unit) for declared_unit in declared.units]
        new_children = [child for child in children if child.id not in ancestors]
        are_raw = is_raw or isinstance(result, RenderFailure)
        nodes = (
            await self._build_all(new_children, child_scope, ancestors, are_raw=are_raw)
            if new_children
            else []
        )
        for appset in declared.application_sets:
            expanded = await self._expander.expand(appset, unit.destination.cluster)
            appset_unit = _as_child(expanded.unit, unit)
            nodes.append(
                await self._build_appset_node(
                    appset_unit,
                    expanded,
                    child_scope,
                    (*ancestors, appset_unit.id),
                    is_raw=is_raw,
                )
            )
        return UnitNode(member, nodes)

    async def _build_appset_node(
        self,
        unit: Unit,
        expanded: ExpandedAppSet,
        scope: UnitScope,
        ancestors: tuple[UnitId, ...],
        *,
        is_raw: bool,
    ) -> UnitNode:
        """Build the node of an ApplicationSet: its Applications are generated, not rendered."""
        member = RenderedUnit(unit, expanded.render_result, expanded.declared, is_raw)
        children = [_as_child(declared_unit, unit) for declared_unit in expanded.declared.units]
        new_children = [child for child in children if child.id not in ancestors]
        nodes = (
            await self._build_all(new_children, scope, ancestors, are_raw=is_raw)
            if new_children
            else []
        )
        return UnitNode(member, nodes)

    def _find_units(self, result: RenderResult, namespace: str) -> Declarations:
        """Return what a result declares. Results are never freed: `id()` identifies them."""
        if (key := (id(result), namespace)) not in self._declared:
            self._declared[key] = self._scan.unit_finder.find(result.documents, namespace)
        return self._declared[key]

    async def _render_once(self, unit: Unit, scope: UnitScope) -> RenderResult | RenderFailure:
        key = msgspec.json.encode((unit.id, unit.sources, unit.destination), enc_hook=str)
        async with self._locks.setdefault(key, asyncio.Lock()):
            for result in self._results.setdefault(key, []):
                if not scope.data_finder(unit).returns_otherwise(self._lookups[id(result)]):
                    return result
            find_data = scope.data_finder(unit)
            result = await self._render(unit, find_data)
            self._results[key].append(result)
            self._lookups[id(result)] = find_data.lookups
        return result


async def with_applied_names(nodes: list[UnitNode], builder: UnitTreeBuilder) -> list[UnitNode]:
    """Return the nodes; a unit that renders its own file has the name that it gives itself.

    A kustomization on the way may add a prefix, a suffix or a namespace.
    """
    result: list[UnitNode] = []
    for node in nodes:
        unit = node.member.unit
        applied = next(
            (
                member.unit
                for member in list_descendants(node)
                if unit.location and unit.location.line and member.unit.location == unit.location
            ),
            unit,
        )
        if (applied.id.namespace, applied.id.name) == (unit.id.namespace, unit.id.name):
            result.append(node)
        else:
            result += await builder.build([replace(applied, parent=None)])
    return result


def _units_in_directory(unit: Unit, scan: RepositoryScan) -> Iterator[Unit]:
    """Yield the units that a unit would create that cannot be rendered, by files in its directory.

    Units below the directory of another one belong to that one.
    """
    units = [*_units_in_files(unit, scan)]
    for candidate in units:
        file = candidate.location.name if candidate.location else ""
        others = (
            path for other in units if other.id != candidate.id for path in _source_paths(other)
        )
        if not any(file.startswith(f"{path}/") for path in others):
            yield candidate


def _source_paths(unit: Unit) -> Iterator[str]:
    return (source.path for source in unit.sources if source.path not in {"", "."})


def _units_in_files(unit: Unit, scan: RepositoryScan) -> Iterator[Unit]:
    for source in unit.sources:
        source_request = source.request
        request = (
            source_request.directory
            if isinstance(source_request, ToolDetection)
            else source_request
        )
        if not isinstance(request, Directory | Overlay):
            continue
        is_recursive = isinstance(request, Overlay) or request.recurse
        for name, declared in scan.declared.items():
            is_inside = request.path == "." or name.startswith(f"{request.path}/")
            is_read = is_inside and (
                is_recursive or (posixpath.dirname(name) or ".") == request.path
            )
            if is_read or request.path in scan.overlay_index.all_including(name):
                yield from declared.units


def _as_child(unit: Unit, parent: Unit) -> Unit:
    """Return the unit as its parent creates it: in the cluster that the parent deploys to."""
    cluster = parent.destination.cluster
    unit = replace(unit, parent=parent.id)
    if not cluster:
        return unit
    return replace(
        unit,
        id=replace(unit.id, cluster=cluster),
        destination=replace(unit.destination, cluster=unit.destination.cluster or cluster),
        dependencies=tuple(
            dependency
            if dependency.unit is None
            else replace(dependency, unit=replace(dependency.unit, cluster=cluster))
            for dependency in unit.dependencies
        ),
    )


def build_unit_tree(node: UnitNode, scan: RepositoryScan) -> UnitTree:
    """Return the tree of a node. A unit with two parents belongs to the first, with a finding."""
    members: dict[UnitId, RenderedUnit] = {}
    unread: list[RenderedUnit] = []
    findings: list[Finding] = []
    created = _created_by_defined_units(node)
    pending = [node]
    for current in pending:  # the list grows during the loop
        if current.member.is_raw and not _has_known_id(current.member.unit, scan):
            unread.append(current.member)
            pending += current.children
            continue
        known = members.setdefault(current.member.unit.id, current.member)
        if known is not current.member:
            findings.append(_duplicate_finding(known.unit, current.member.unit))
            continue
        pending += (
            child
            for child in current.children
            if not current.member.unit.is_implicit or child.member.unit.id not in created
        )
    unit = node.member.unit
    root_document = _find_document(unit, scan)
    if root_document is not None and get_text(root_document.body, "kind") != unit.id.kind:
        root_document = None  # an operator creates the unit resource of its own object
    return UnitTree(unit.id, tuple(members.values()), tuple(unread), tuple(findings), root_document)


def _created_by_defined_units(node: UnitNode) -> frozenset[UnitId]:
    """Return the units below a node that a unit with a definition creates."""
    nodes = [node, *_descendant_nodes(node)]
    return frozenset(
        child.member.unit.id
        for parent in nodes
        if not parent.member.unit.is_implicit
        for child in parent.children
    )


def without_deployed_objects(unit_trees: Iterable[UnitTree]) -> list[UnitTree]:
    """Return the trees; implicit parents have no object that a unit with a definition deploys."""
    unit_trees = list(unit_trees)
    members = [member for unit_tree in unit_trees for member in unit_tree.members]
    if not any(member.unit.is_implicit for member in members):
        return unit_trees
    deployed = {
        _object_key(document, member.unit)
        for member in members
        if not member.unit.is_implicit
        for document in member.documents
    }

    def remove(member: RenderedUnit) -> RenderedUnit:
        result = member.result
        if not member.unit.is_implicit or not isinstance(result, RenderResult):
            return member
        kept = [
            (document, fields)
            for document, fields in zip(result.documents, result.secret_fields, strict=True)
            if _object_key(document, member.unit) not in deployed
        ]
        documents = tuple(document for document, _ in kept)
        remaining = replace(
            result, documents=documents, secret_fields=tuple(fields for _, fields in kept)
        )
        return replace(member, result=remaining)

    return [
        replace(unit_tree, members=tuple(map(remove, unit_tree.members)))
        for unit_tree in unit_trees
    ]


def _object_key(document: Document, unit: Unit) -> tuple[str, str, str]:
    metadata = get_mapping(document.body, "metadata")
    namespace = get_text(metadata, "namespace") or unit.destination.namespace
    return get_text(document.body, "kind"), namespace, get_text(metadata, "name")


def without_implicit_parent(unit_tree: UnitTree, path: str, root: Path) -> UnitTree:
    """Return the tree of the unit that deploys the directory of its own implicit parent.

    A chart that contains the Application that deploys it manages itself.
    """
    managing = next(
        (
            member
            for member in unit_tree.members[1:]
            if isinstance(member.result, RenderResult)
            and any(
                source.path == path and rendered.root == root
                for source, rendered in zip(
                    member.unit.sources, member.result.sources, strict=False
                )
            )
        ),
        None,
    )
    if managing is None:
        return unit_tree
    top = replace(managing, unit=replace(managing.unit, parent=None))
    kept = {top.unit.id: top}
    for member in unit_tree.members[1:]:
        if member.unit.parent in kept:
            kept.setdefault(member.unit.id, member)
    return replace(unit_tree, root_id=top.unit.id, members=tuple(kept.values()))


def _has_known_id(unit: Unit, scan: RepositoryScan) -> bool:
    """Return whether the file of a unit has its name and namespace, without variables in them."""
    document = _find_document(unit, scan)
    has_namespace = document is not None and get_text(document.body, "metadata", "namespace")
    return bool(has_namespace) and "$" not in unit.id.qualified_name


def _find_document(unit: Unit, scan: RepositoryScan) -> Document | None:
    documents = scan.documents.get(unit.location.name, ()) if unit.location else ()
    return next((document for document in documents if document.location == unit.location), None)


def _duplicate_finding(first: Unit, second: Unit) -> Finding:
    location = first.location or (first.parent and Location(str(first.parent)))
    problem = f"is created twice: by `{first.parent}` and by `{second.parent}`"
    return Finding(
        code="units.duplicate",
        severity=Severity.ERROR,
        message=f"`{second.id}` {problem}",
        location=second.location,
        reason="the parent that applies last wins, and the two keep reverting each other",
        fix=f"remove or rename one of the two; the first is at {location}",
        unit=second.id,
        unit_problem=problem,
        cause=problem,
    )


def find_roots(nodes: list[UnitNode]) -> tuple[list[UnitNode], list[Finding]]:
    """Return the nodes that no other one creates, and the first of those that create each other.

    A unit is known by its ID; a patch may change that, but not its location.
    """
    indexes: dict[str, list[int]] = {}
    for index, node in enumerate(nodes):
        for name in _identifiers(node.member.unit):
            indexes.setdefault(name, []).append(index)
    descendants: list[set[int]] = []
    parents: list[set[int]] = [set() for _ in nodes]
    for index, node in enumerate(nodes):
        names = {
            name for descendant in list_descendants(node) for name in _identifiers(descendant.unit)
        }
        node_names = _identifiers(node.member.unit)
        created = {other for name in names for other in indexes.get(name, ())}
        same_unit = {other for name in node_names for other in indexes[name]}
        descendants.append(created - same_unit)
        for other in created - same_unit:
            parents[other].add(index)
    roots, findings = [], list[Finding]()
    for index, node in enumerate(nodes):
        cycle = {
            parent
            for parent in parents[index]
            if index in descendants[parent] and parent in descendants[index]
        }
        if not parents[index]:
            roots.append(node)
        elif cycle == parents[index] and index < min(cycle):
            roots.append(node)
            findings.append(_cycle_finding(node.member.unit, nodes[min(cycle)].member.unit))
    return roots, findings


def without_covered_parents(nodes: Iterable[UnitNode]) -> list[UnitNode]:
    """Return the nodes without assumed parents all of whose units another tree creates.

    The path of a unit may be an overlay that looks like a root, because its units are only in it.
    Of assumed parents that create the same units the one with the most units is kept.
    """
    kept = dict(enumerate(nodes))
    created = {index: _created_by_definitions(node) for index, node in kept.items()}
    for index in sorted(kept, key=lambda index: len(created[index])):
        children = kept[index].children
        others = [created[other] for other in kept if other != index]
        is_covered = bool(children) and all(
            any(not names.isdisjoint(_identifiers(child.member.unit)) for names in others)
            for child in children
        )
        if kept[index].member.unit.is_implicit and is_covered:
            del kept[index]
    return [*kept.values()]


def _created_by_definitions(node: UnitNode) -> frozenset[str]:
    """Return the identifiers of the units that units with a definition create, below a node."""
    return frozenset(
        name
        for parent in (node, *_descendant_nodes(node))
        if not parent.member.unit.is_implicit
        for child in parent.children
        for name in _identifiers(child.member.unit)
    )


def _identifiers(unit: Unit) -> tuple[str, ...]:
    """Return what identifies a unit: its ID, and its location in a file."""
    location = unit.location
    return (str(unit.id), str(location)) if location and location.line else (str(unit.id),)


def _cycle_finding(unit: Unit, other: Unit) -> Finding:
    return Finding(
        code="units.cycle",
        severity=Severity.WARNING,
        message=f"`{unit.id}` and `{other.id}` create each other, so neither is the root",
        location=unit.location,
        fix=f"`{unit.id}` is assumed to be the root; stop one of the two from creating the other",
    )


def list_descendants(node: UnitNode) -> Iterator[RenderedUnit]:
    return (descendant.member for descendant in _descendant_nodes(node))


def _descendant_nodes(node: UnitNode) -> Iterator[UnitNode]:
    seen: set[int] = set()
    pending = [*node.children]
    while pending:
        descendant = pending.pop()
        if id(descendant) not in seen:
            seen.add(id(descendant))
            yield descendant
            pending += descendant.children


def is_included(unit: Unit, scan: RepositoryScan) -> bool:
    """Return whether an overlay includes the file of a unit."""
    return unit.location is not None and bool(scan.overlay_index.including(unit.location.name))


def renders_itself(unit: Unit) -> bool:
    """Return whether the file of a unit is in a directory that it renders, or should be.

    `flux bootstrap` writes the root to `gotk-sync.yaml`, below its path (Flux 2.8,
    pkg/manifestgen/sync/sync.go). If the path is misspelled, it is a root nevertheless.
    """
    name = unit.location.name if unit.location else ""
    if posixpath.basename(name) == BOOTSTRAP_FILE:
        return True
    paths = [
        source.path
        for source in unit.sources
        if source.request is not None
        and not isinstance(source.request, ChartRequest)
        and not isinstance(source.source, ChartSource | OciSource)
    ]
    return any(path == "." or name.startswith(f"{path}/") for path in paths)


def is_of_instance(unit: Unit, scan: RepositoryScan) -> bool:
    """Return whether a FluxInstance creates a unit.

    A FluxInstance is applied by hand the first time, and deploys itself from then on.
    """
    document = _find_document(unit, scan)
    kind = object_kind(document.body) if document else None
    return kind is not None and (kind.group, kind.name) == FLUX_INSTANCE


def overlay_units(units: Iterable[Unit], scan: RepositoryScan) -> list[Unit]:
    """Return the topmost overlays that contain units which nothing else creates, as plain units."""
    included: dict[str, list[Unit]] = {}
    for unit in units:
        for top in (
            scan.overlay_index.topmost_including(unit.location.name) if unit.location else ()
        ):
            included.setdefault(top, []).append(unit)
    return [
        _implicit_parent(
            top,
            scan,
            _implicit_overlay(top, members, scan),
            members[0].id.namespace,
        )
        for top, members in included.items()
    ]


def _implicit_overlay(path: str, units: Iterable[Unit], scan: RepositoryScan) -> Overlay:
    """Return the overlay of an implicit parent. Flux does not inflate charts in it; users do."""
    restriction = load_restriction(path, units, scan)
    helm = HelmOptions() if restriction is LoadRestriction.ROOT_ONLY else None
    return Overlay(path=path, restriction=restriction, helm=helm)


def load_restriction(path: str, units: Iterable[Unit], scan: RepositoryScan) -> LoadRestriction:
    """Return which files an overlay may read that creates these units.

    A kustomization that Flux builds may name any file of its source: kustomize-controller 1.9.6
    builds without restriction in `internal/controller/kustomization_controller.go`. Flux builds
    what creates Flux units, and what a Flux unit names as its path.
    """
    named = (unit for declared in scan.declared.values() for unit in declared.units)
    is_flux = any(map(is_flux_unit, units)) or any(
        is_flux_unit(unit) and any(source.path == path for source in unit.sources) for unit in named
    )
    return LoadRestriction.NONE if is_flux else LoadRestriction.ROOT_ONLY


def is_flux_unit(unit: Unit) -> bool:
    return unit.policy.tracking is Tracking.FLUX


def directory_units(
    unit_trees: Iterable[UnitTree], scan: RepositoryScan
) -> Iterator[tuple[Unit, list[UnitTree]]]:
    """Yield a parent for the root units of one directory, if there are several, and their trees.

    Trees with the same units are alternatives, and have no common parent.
    """
    files_by_directory: dict[str, list[str]] = {}
    for file in scan.documents:
        files_by_directory.setdefault(posixpath.dirname(file) or ".", []).append(file)

    def is_free(file: str) -> bool:
        """Return whether a file has no unit that another one may deploy, such as sources alone."""
        declared = scan.declared.get(file, NO_DECLARATIONS)
        return not (declared.units or declared.application_sets)

    trees_by_directory: dict[str, list[UnitTree]] = {}
    for unit_tree in unit_trees:
        location = unit_tree.members[0].unit.location
        if location is not None and unit_tree.root_id.kind:
            trees_by_directory.setdefault(posixpath.dirname(location.name) or ".", []).append(
                unit_tree
            )
    for path, siblings in trees_by_directory.items():
        names = [name for sibling in siblings for name in sibling.unit_ids]
        if len(siblings) > 1 and len(names) == len(set(names)):
            locations = (sibling.members[0].unit.location for sibling in siblings)
            roots = {location.name for location in locations if location}
            files = [file for file in files_by_directory[path] if file in roots or is_free(file)]
            request = Directory(path=path, files=tuple(files))
            yield _implicit_parent(path, scan, request, siblings[0].root_id.namespace), siblings


def _implicit_parent(
    path: str, scan: RepositoryScan, request: Overlay | Directory, namespace: str
) -> Unit:
    """Return a parent that no file defines, named after the path that it applies."""
    name = scan.root.name if path == "." else path.replace("/", "-")
    return Unit(
        id=UnitId.plain("", name),
        destination=Destination("", namespace),
        sources=(UnitSource(source=LocalSource(str(scan.root)), request=request),),
        location=Location(scan.overlays.get(path, path)),
        is_implicit=True,
    )
