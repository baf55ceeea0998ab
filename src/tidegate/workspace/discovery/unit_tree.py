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
from collections.abc import Awaitable, Callable, Iterable, Iterator

import msgspec
from msgspec.structs import replace

from tidegate.dialect.declared import Declarations
from tidegate.documents import Document
from tidegate.errors import Location
from tidegate.model.finding import Finding, Severity
from tidegate.model.units.rendering import Directory, FluxDetails, Overlay, ToolDetection
from tidegate.model.units.source import LocalSource
from tidegate.model.units.unit import Destination, Unit, UnitId, UnitSource
from tidegate.workspace.discovery.appsets import AppSetExpander, ExpandedAppSet
from tidegate.workspace.discovery.scan import RepositoryScan
from tidegate.workspace.discovery.unit_scope import UnitScope
from tidegate.workspace.rendering.result import RenderFailure, RenderResult
from tidegate.workspace.rendering.sources import FindData

NO_DECLARATIONS = Declarations()
RenderFunction = Callable[[Unit, FindData], Awaitable[RenderResult | RenderFailure]]


class RenderedUnit(msgspec.Struct, frozen=True):
    """A unit with its render result, and what the result declares."""

    unit: Unit
    result: RenderResult | RenderFailure
    declared: Declarations = NO_DECLARATIONS

    @property
    def documents(self) -> tuple[Document, ...]:
        return self.result.documents if isinstance(self.result, RenderResult) else ()

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
        if isinstance(member.result, RenderFailure) and not member.unit.id.kind
        for error in member.result.errors
    ]
    if errors:
        raise ExceptionGroup("not rendered", errors)


class UnitTree(msgspec.Struct, frozen=True):
    """A root unit and all its descendants, parents before their children."""

    root_id: UnitId
    members: tuple[RenderedUnit, ...]
    findings: tuple[Finding, ...] = ()
    root_document: Document | None = None
    """The unit resource of the root, where a file has it."""

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
        return frozenset(name for member in self.members for name in _identifiers(member.unit))


class _Node(msgspec.Struct):
    """A unit where it is created, rendered once, and the units that it creates."""

    member: RenderedUnit
    children: list[_Node] = msgspec.field(default_factory=list)


class UnitTreeBuilder:
    """Builder of unit trees: renders each unit, and then the units that it creates.

    The same unit in two places is rendered once, unless it uses data of the objects around it.
    """

    def __init__(
        self, scan: RepositoryScan, render: RenderFunction, expander: AppSetExpander
    ) -> None:
        self._scan = scan
        self._expander = expander
        self._render = render
        self._results: dict[tuple[bytes, int], RenderResult | RenderFailure] = {}
        self._locks: dict[tuple[bytes, int], asyncio.Lock] = {}
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

    async def build(self, units: Iterable[Unit]) -> list[_Node]:
        """Return the nodes of these units, each with all its descendants."""
        scope = UnitScope(self._scan)
        return await self._build_all(units, scope, ())

    async def _build_all(
        self, units: Iterable[Unit], scope: UnitScope, ancestors: tuple[UnitId, ...]
    ) -> list[_Node]:
        """Build these units at once. Those that may create others start first.

        While tools render them, the remaining units are read.
        """
        units = tuple(units)
        async with asyncio.TaskGroup() as group:
            tasks = {
                index: group.create_task(
                    self._build_node(units[index], scope, (*ancestors, units[index].id))
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
        self, unit: Unit, scope: UnitScope, ancestors: tuple[UnitId, ...]
    ) -> _Node:
        file_appset = self._appsets.get((unit.id, unit.location)) if len(ancestors) == 1 else None
        if file_appset is not None:
            return await self._build_appset_node(unit, file_appset, scope, ancestors)
        unit = scope.with_sources(unit)
        result = await self._render_once(unit, scope)
        if isinstance(result, RenderFailure):
            declared = Declarations(units=tuple(_units_in_directory(unit, self._scan)))
        else:
            declared = self._find_units(result, unit.destination.namespace)
        member = RenderedUnit(unit, result, declared)
        child_scope = UnitScope(self._scan, member.documents, declared, scope)
        children = [_as_child(declared_unit, unit) for declared_unit in declared.units]
        new_children = [child for child in children if child.id not in ancestors]
        nodes = await self._build_all(new_children, child_scope, ancestors) if new_children else []
        for appset in declared.application_sets:
            expanded = await self._expander.expand(appset, unit.destination.cluster)
            appset_unit = _as_child(expanded.unit, unit)
            nodes.append(
                await self._build_appset_node(
                    appset_unit, expanded, child_scope, (*ancestors, appset_unit.id)
                )
            )
        return _Node(member, nodes)

    async def _build_appset_node(
        self, unit: Unit, expanded: ExpandedAppSet, scope: UnitScope, ancestors: tuple[UnitId, ...]
    ) -> _Node:
        """Build the node of an ApplicationSet: its Applications are generated, not rendered."""
        member = RenderedUnit(unit, expanded.render_result, expanded.declared)
        children = [_as_child(declared_unit, unit) for declared_unit in expanded.declared.units]
        new_children = [child for child in children if child.id not in ancestors]
        nodes = await self._build_all(new_children, scope, ancestors) if new_children else []
        return _Node(member, nodes)

    def _find_units(self, result: RenderResult, namespace: str) -> Declarations:
        """Return what a result declares. Results are never freed: `id()` identifies them."""
        if (key := (id(result), namespace)) not in self._declared:
            self._declared[key] = self._scan.unit_finder.find(result.documents, namespace)
        return self._declared[key]

    async def _render_once(self, unit: Unit, scope: UnitScope) -> RenderResult | RenderFailure:
        details = (source.details for source in unit.sources)
        uses_data = any(
            isinstance(source_details, FluxDetails) and source_details.uses_cluster_data
            for source_details in details
        )
        encoded = msgspec.json.encode((unit.id, unit.sources, unit.destination), enc_hook=str)
        key = (encoded, id(scope) if uses_data else 0)
        async with self._locks.setdefault(key, asyncio.Lock()):
            if key not in self._results:
                self._results[key] = await self._render(unit, scope.data_finder(unit))
        return self._results[key]


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
        if not isinstance(request, Directory | Overlay) or request.path == ".":
            continue
        is_recursive = isinstance(request, Overlay) or request.recurse
        for name, declared in scan.declared.items():
            is_inside = name.startswith(f"{request.path}/")
            if is_inside and (is_recursive or posixpath.dirname(name) == request.path):
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


def build_unit_tree(node: _Node, scan: RepositoryScan) -> UnitTree:
    """Return the tree of a node. A unit with two parents belongs to the first, with a finding."""
    members: dict[UnitId, RenderedUnit] = {}
    findings: list[Finding] = []
    pending = [node]
    for current in pending:  # the list grows during the loop
        known = members.setdefault(current.member.unit.id, current.member)
        if known is not current.member:
            findings.append(_duplicate_finding(known.unit, current.member.unit))
            continue
        pending += current.children
    unit = node.member.unit
    documents = scan.documents.get(unit.location.name, ()) if unit.location else ()
    root_document = next(
        (document for document in documents if document.location == unit.location), None
    )
    return UnitTree(unit.id, tuple(members.values()), tuple(findings), root_document)


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
    )


def find_roots(nodes: list[_Node]) -> tuple[list[_Node], list[Finding]]:
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
            name for descendant in _descendants(node) for name in _identifiers(descendant.unit)
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


def _descendants(node: _Node) -> Iterator[RenderedUnit]:
    seen: set[int] = set()
    pending = [*node.children]
    while pending:
        descendant = pending.pop()
        if id(descendant) not in seen:
            seen.add(id(descendant))
            yield descendant.member
            pending += descendant.children


def is_included(unit: Unit, scan: RepositoryScan) -> bool:
    """Return whether an overlay includes the file of a unit."""
    return unit.location is not None and bool(scan.overlay_index.including(unit.location.name))


def renders_itself(unit: Unit) -> bool:
    """Return whether the file of a unit is in a directory that it renders."""
    name = unit.location.name if unit.location else ""
    paths = [source.path for source in unit.sources if source.request is not None]
    return any(path == "." or name.startswith(f"{path}/") for path in paths)


def overlay_units(units: Iterable[Unit], scan: RepositoryScan) -> list[Unit]:
    """Return the topmost overlays that contain units which nothing else creates, as plain units."""
    overlays: dict[str, Unit] = {}
    for unit in units:
        for top in (
            scan.overlay_index.topmost_including(unit.location.name) if unit.location else ()
        ):
            overlays.setdefault(
                top, _implicit_parent(top, scan, Overlay(path=top), unit.id.namespace)
            )
    return list(overlays.values())


def directory_units(
    unit_trees: Iterable[UnitTree], scan: RepositoryScan
) -> Iterator[tuple[Unit, list[UnitTree]]]:
    """Yield a parent for the root units of one directory, if there are several, and their trees.

    Trees with the same units are alternatives, and have no common parent.
    """
    files: dict[str, list[str]] = {}
    for file in scan.documents:
        files.setdefault(posixpath.dirname(file) or ".", []).append(file)
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
            request = Directory(path=path, files=tuple(files[path]))
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
    )
