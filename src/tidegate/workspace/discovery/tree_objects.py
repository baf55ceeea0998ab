"""Objects of a unit tree that its units refer to: sources, ConfigMaps and Secrets.

A unit may use what a sibling deploys. Siblings are rendered at the same time, so that a tree is
built again if one of its units was rendered with another object of that name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain

from tidegate.dialect.declared import Declarations
from tidegate.documents import Document
from tidegate.model.units.chart_request import ChartRequest
from tidegate.model.units.rendering import FluxDetails
from tidegate.model.units.source import DeclaredSource, SourceObject
from tidegate.model.units.unit import Unit, UnitId
from tidegate.workspace.discovery.scan import (
    DataKey,
    RepositoryScan,
    find_data_objects,
    parent_directories,
)
from tidegate.workspace.discovery.unit_scope import UnitScope
from tidegate.workspace.discovery.unit_tree import (
    RenderedUnit,
    UnitNode,
    UnitTreeBuilder,
    list_descendants,
)


@dataclass(frozen=True, eq=False)
class _Tree:
    """All units of a tree, and the ConfigMaps and Secrets that they deploy."""

    node: UnitNode
    members: tuple[RenderedUnit, ...]
    deployed: Mapping[DataKey, Document]

    @classmethod
    def from_node(cls, node: UnitNode) -> _Tree:
        members = (node.member, *list_descendants(node))
        deployed: dict[DataKey, Document] = {}
        for member in members:
            for key, document in _deployed_data(member):
                deployed.setdefault(key, document)
        return cls(node, members, deployed)

    @cached_property
    def identifiers(self) -> frozenset[UnitId | DataKey]:
        """What a cluster has once: units, ConfigMaps and Secrets."""
        return frozenset((*(member.unit.id for member in self.members), *self.deployed))

    @cached_property
    def files(self) -> frozenset[str]:
        """The files of its ConfigMaps and Secrets."""
        return frozenset(document.location.name for document in self.deployed.values())

    @property
    def paths(self) -> tuple[str, ...]:
        """The directories that its units deploy."""
        return tuple(source.path for member in self.members for source in member.unit.sources)

    @property
    def root_paths(self) -> tuple[str, ...]:
        """The directories that its root deploys."""
        return tuple(source.path for source in self.node.member.unit.sources)


async def with_objects_of_trees(
    nodes: Iterable[UnitNode], builder: UnitTreeBuilder, scan: RepositoryScan
) -> list[UnitNode]:
    """Return the nodes; a unit uses an object of its own tree before one of another file.

    A sibling may generate the object, or set its namespace. Other trees are of the same cluster,
    unless both create the same unit, ConfigMap or Secret; objects of other clusters are not used.
    """
    trees = [_Tree.from_node(node) for node in nodes]
    return [await _with_objects(tree, trees, builder, scan) for tree in trees]


async def _with_objects(
    tree: _Tree, trees: Iterable[_Tree], builder: UnitTreeBuilder, scan: RepositoryScan
) -> UnitNode:
    same_cluster, other_clusters = [tree], list[_Tree]()
    for other in trees:
        if other is not tree:
            is_same = tree.identifiers.isdisjoint(other.identifiers)
            (same_cluster if is_same else other_clusters).append(other)
    sources: dict[SourceObject, list[DeclaredSource]] = {}
    for member in chain.from_iterable(other.members for other in same_cluster):
        for source in member.declared.sources:
            sources.setdefault(source.id, []).append(source)
    resolves_otherwise = any(_resolves_otherwise(member.unit, sources) for member in tree.members)
    first = (candidates[0] for candidates in sources.values()) if resolves_otherwise else ()
    scope = UnitScope(
        scan,
        declared=Declarations(sources=tuple(first)),
        deployed=tree.deployed,
        find_other_files=partial(_files_of_others, tree, other_clusters, scan),
    )
    if resolves_otherwise or any(builder.reads_otherwise(member, scope) for member in tree.members):
        return await builder.build_within(tree.node.member.unit, scope)
    return tree.node


def _deployed_data(member: RenderedUnit) -> Iterator[tuple[DataKey, Document]]:
    """Yield the ConfigMaps and Secrets of a unit. A chart may give them other values each time."""
    if any(isinstance(source.request, ChartRequest) for source in member.unit.sources):
        return
    for (kind, namespace, name), document in find_data_objects(member.documents):
        yield (kind, namespace or member.unit.destination.namespace, name), document


def _files_of_others(tree: _Tree, others: Sequence[_Tree], scan: RepositoryScan) -> Iterator[str]:
    """Yield the files with data that units of other clusters deploy, or that are beside them."""
    other_files = frozenset(file for other in others for file in other.files)
    root_paths = (path for other in others for path in other.root_paths)
    other_paths = {*_paths_of_namesakes(tree, scan), *root_paths} - {"", "."}
    paths = frozenset(tree.paths)
    for file in scan.data_files if other_files or other_paths else ():
        closest = next(
            (folder for folder in parent_directories(file) if folder in paths | other_paths), "."
        )
        is_beside = closest in other_paths and closest not in paths
        if file not in tree.files and (file in other_files or is_beside):
            yield file


def _paths_of_namesakes(tree: _Tree, scan: RepositoryScan) -> Iterator[str]:
    """Yield the paths of units in other files with the identity of a unit of the tree.

    A cluster has one of them. The trees of the others may be outside of the search path.
    """
    files = {
        member.unit.id: member.unit.location.name
        for member in tree.members
        if member.unit.location is not None
    }
    for file, declared in scan.declared.items():
        for unit in declared.units:
            if files.get(unit.id, file) != file:
                yield from (source.path for source in unit.sources)


def _resolves_otherwise(unit: Unit, sources: Mapping[SourceObject, list[DeclaredSource]]) -> bool:
    """Return whether a source of a unit is not one of these, though they have its name."""
    for unit_source in unit.sources:
        details, source = unit_source.details, unit_source.source
        used = details.declared_source if isinstance(details, FluxDetails) else None
        reference = source if isinstance(source, SourceObject) else used.id if used else None
        if reference is None:
            continue
        key = SourceObject(reference.kind, reference.namespace, reference.name)
        locations = {candidate.location for candidate in sources.get(key, ())}
        if locations and (used is None or used.location not in locations):
            return True
    return False
