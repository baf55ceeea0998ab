"""Values by name in several files of a tree: that of the closest file counts."""

from __future__ import annotations

import posixpath
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import msgspec

from tidegate.dialect.declared import Declarations
from tidegate.dialect.flux.sources import resolve_source
from tidegate.dialect.units import FLUX_NAMESPACE
from tidegate.documents import Document
from tidegate.model.operators.placeholders import could_match
from tidegate.model.text.suggest import find_misspelled
from tidegate.model.units.chart_request import ChartRequest, ValuesFile
from tidegate.model.units.rendering import ArgoPlugin, FluxDetails, RenderRequest, ToolDetection
from tidegate.model.units.source import (
    BucketSource,
    DeclaredSource,
    GitSource,
    LocalSource,
    SourceObject,
)
from tidegate.model.units.unit import Unit, UnitSource
from tidegate.workspace.discovery.closest_file import ClosestFileIndex
from tidegate.workspace.discovery.scan import (
    BOOTSTRAP_KINDS,
    DataKey,
    RepositoryScan,
    find_data_objects,
    is_bootstrap_source,
    parent_directories,
)
from tidegate.workspace.rendering.sources import Data, decode_data

NO_DECLARATIONS = Declarations()
SourceRequest: TypeAlias = RenderRequest | ToolDetection | ArgoPlugin | None


@dataclass(eq=False)
class UnitScope:
    """The objects that are visible to a unit: those of its parent, and of the parents of that."""

    scan: RepositoryScan
    documents: tuple[Document, ...] = ()
    declared: Declarations = NO_DECLARATIONS
    parent: UnitScope | None = None
    deployed: Mapping[DataKey, Document] = field(default_factory=dict)
    """The ConfigMaps and Secrets that units of the same tree deploy."""
    find_other_files: Callable[[], Iterable[str]] = tuple
    """Returns the files with ConfigMaps and Secrets of other clusters."""

    def data_finder(self, unit: Unit) -> DataFinder:
        return DataFinder(self, unit)

    def with_sources(self, unit: Unit) -> Unit:
        """Return the unit with its sources resolved that are references to objects."""
        sources = tuple(self._resolve_source(source, unit) for source in unit.sources)
        return msgspec.structs.replace(unit, sources=sources)

    def _resolve_source(self, unit_source: UnitSource, unit: Unit) -> UnitSource:
        source_ref, details = unit_source.source, unit_source.details
        if not isinstance(source_ref, SourceObject) or not isinstance(details, FluxDetails):
            return unit_source
        file = unit.location.name if unit.location else ""
        declared = resolve_source(source_ref, _VisibleSources(self.sources, self.scan, file))
        if declared is None:
            return self._resolve_undeclared(unit_source, source_ref)
        return msgspec.structs.replace(
            unit_source,
            source=declared.source or source_ref,
            request=_with_chart_source(unit_source.request, declared),
            details=msgspec.structs.replace(details, declared_source=declared),
        )

    def _resolve_undeclared(self, unit_source: UnitSource, source_ref: SourceObject) -> UnitSource:
        """Return the repository for the source that the Flux operator creates without a file.

        If the path of one unit exists here, a path that does not is an error. A similar name is
        suggested for other sources.
        """
        if is_bootstrap_source(source_ref) and self.scan.is_bootstrap_repository:
            return msgspec.structs.replace(unit_source, source=LocalSource(str(self.scan.root)))
        source_ids = (
            source.id for declared in self.scan.declared.values() for source in declared.sources
        )
        names = {source_id.name for source_id in source_ids if source_id.kind == source_ref.kind}
        names |= (
            {FLUX_NAMESPACE}
            if self.scan.is_bootstrap_repository and source_ref.kind in BOOTSTRAP_KINDS
            else set()
        )
        suggestion, details = find_misspelled(source_ref.name, names), unit_source.details
        if not suggestion or not isinstance(details, FluxDetails):
            return unit_source
        undeclared = DeclaredSource(id=source_ref, suggestion=suggestion)
        return msgspec.structs.replace(
            unit_source, details=msgspec.structs.replace(details, declared_source=undeclared)
        )

    @cached_property
    def sources(self) -> ChainMap[SourceObject, DeclaredSource]:
        """The sources that ancestors declare, by their references, the closest first."""
        declared_sources = {source.id: source for source in self.declared.sources}
        return ChainMap(declared_sources, *(self.parent.sources.maps if self.parent else ()))

    @cached_property
    def data_objects(self) -> dict[DataKey, Document]:
        """The ConfigMaps and Secrets of the parent, and those of the tree."""
        return {**self.deployed, **dict(find_data_objects(self.documents))}

    @cached_property
    def data_files(self) -> ClosestFileIndex[DataKey, Document]:
        """The ConfigMaps and Secrets in files, without those of other clusters."""
        if self.parent is not None:
            return self.parent.data_files
        other_files = frozenset(self.find_other_files())
        return (
            self.scan.index_data_objects(without=other_files)
            if other_files
            else self.scan.data_objects
        )

    def _levels(self) -> Iterator[UnitScope]:
        level: UnitScope | None = self
        while level is not None:
            yield level
            level = level.parent

    def look_up(self, kind: str, namespace: str, name: str, file: str) -> Data | None:
        """Return the entries of a ConfigMap or Secret; None if it is unknown.

        A unit reads objects of its own cluster and namespace: `loadVars` in
        `kustomize/kustomize_varsub.go` of fluxcd/pkg at 0180cac2, and `ChartValuesFromReferences`
        in `chartutil/values.go`. Objects that no unit deploys are applied by hand; the one in the
        closest file counts. An object without a namespace may be in this one.
        """
        keys = ((kind, namespace, name), (kind, "", name))
        for level in self._levels():
            document = next(
                (level.data_objects[key] for key in keys if key in level.data_objects), None
            )
            if document is not None:
                return decode_data(document.body)
        matches = (self.data_files.find(key, file) for key in keys)
        closest = min(
            (match for match in matches if match), key=lambda match: match[0], default=None
        )
        return decode_data(closest[1].body) if closest else None


class _VisibleSources(msgspec.Struct, frozen=True):
    """The sources that ancestors declare, and else those of the repository, the closest by path."""

    ancestors: Mapping[SourceObject, DeclaredSource]
    scan: RepositoryScan
    file: str

    def get(self, source_ref: SourceObject) -> DeclaredSource | None:
        if (known := self.ancestors.get(source_ref)) is not None:
            return known
        match = self.scan.sources.find(source_ref, self.file)
        if match and not self._is_of_other_cluster(source_ref, match[0][1]):
            return match[1]
        return self._find_generated(source_ref) or self._bootstrap(source_ref)

    def _is_of_other_cluster(self, source_ref: SourceObject, file: str) -> bool:
        """Return whether a file declares the bootstrap source of a cluster without this file.

        Each cluster has a source of this name. The Kustomization beside it deploys its cluster.
        """
        if not is_bootstrap_source(source_ref):
            return False
        paths = [
            source.path
            for unit in self.scan.declared[file].units
            for source in unit.sources
            if source.source == source_ref and f"{file}/".startswith(f"{source.path}/")
        ]
        return (
            bool(paths)
            and self.file != file
            and "." not in paths
            and not any(self.file.startswith(f"{path}/") for path in paths)
            and any(posixpath.dirname(path) in parent_directories(self.file) for path in paths)
        )

    def _bootstrap(self, source_ref: SourceObject) -> DeclaredSource | None:
        """Return this repository for a part of an artifact whose source a bootstrap creates."""
        if not (is_bootstrap_source(source_ref) and self.scan.is_bootstrap_repository):
            return None
        return DeclaredSource(id=source_ref, source=LocalSource(str(self.scan.root)))

    def _find_generated(self, source_ref: SourceObject) -> DeclaredSource | None:
        """Return the generators that may make an artifact of this name; the first with the others.

        Which one does is unknown before the directories are.
        """
        if source_ref.kind != "ExternalArtifact":
            return None
        declared_sources = (
            source for declared in self.scan.declared.values() for source in declared.sources
        )
        candidates = {
            str(source.location): source
            for source in (*self.ancestors.values(), *declared_sources)
            if _may_generate(source, source_ref)
        }
        if not candidates:
            return None
        first, *others = candidates.values()
        return msgspec.structs.replace(first, alternatives=tuple(others))


def _may_generate(source: DeclaredSource, source_ref: SourceObject) -> bool:
    is_generator = source.discovery is not None and source.id.namespace == source_ref.namespace
    return is_generator and could_match(source.id.name, source_ref.name)


def _with_chart_source(request: SourceRequest, declared: DeclaredSource) -> SourceRequest:
    """Return the request with the path and the values files that a HelmChart sets."""
    if declared.id.kind != "HelmChart" or not isinstance(request, ChartRequest):
        return request
    files = (
        ValuesFile(file, optional=declared.ignore_missing_values_files)
        for file in declared.values_files
    )
    path = (
        declared.id.chart
        if isinstance(declared.source, GitSource | BucketSource)
        else request.chart
    )
    return msgspec.structs.replace(
        request, chart=posixpath.normpath(path), defaults=tuple(files) or request.defaults
    )


class DataFinder:
    """Looks up data for one unit, and keeps what it has returned."""

    def __init__(self, scope: UnitScope, unit: Unit) -> None:
        self._scope = scope
        self._file = unit.location.name if unit.location else ""
        self.lookups: dict[DataKey, Data | None] = {}

    def __call__(self, kind: str, namespace: str, name: str) -> Data | None:
        key = (kind, namespace, name)
        if key not in self.lookups:
            self.lookups[key] = self._scope.look_up(kind, namespace, name, self._file)
        return self.lookups[key]

    def returns_otherwise(self, lookups: Mapping[DataKey, Data | None]) -> bool:
        """Return whether a lookup has another result here."""
        return any(self(*key) != data for key, data in lookups.items())
