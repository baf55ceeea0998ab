"""What a unit finds around itself: objects that stand for sources, ConfigMaps, Secrets.

Who is nearer counts: first what its parent renders, then its parent's parent, at last whatever
stands in the repository, the nearest by path.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from tidegate.dialect.declared import Declared
from tidegate.dialect.flux.sources import resolve
from tidegate.documents import Document
from tidegate.flows.discover.scan import Scan
from tidegate.flows.rendering.units import Data, data_of
from tidegate.model.reading import text
from tidegate.model.release import Release, ValuesFile
from tidegate.model.rendering import Detected, FluxDetails, Plugin, Request
from tidegate.model.source import DeclaredSource, GitSource, SourceObject
from tidegate.model.unit import Unit, UnitSource
from tidegate.render.sops.objects import PLACEHOLDER

NOTHING = Declared()
Wanted: TypeAlias = Request | Detected | Plugin | None
HOLDERS = ("ConfigMap", "Secret")


@dataclass(slots=True)
class Surroundings:
    """What is known where a unit is brought: by whom, and by whom that one is."""

    scan: Scan
    documents: tuple[Document, ...] = ()
    declared: Declared = NOTHING
    above: Surroundings | None = None

    def find_data(self, near: Unit) -> _Finder:
        return _Finder(self, posixpath.dirname(near.where.name if near.where else ""))

    def with_sources(self, unit: Unit) -> Unit:
        """The unit with its sources found, where objects stand for them."""
        sources = tuple(self._found(one, unit) for one in unit.sources)
        return msgspec.structs.replace(unit, sources=sources)

    def _found(self, one: UnitSource, unit: Unit) -> UnitSource:
        named, details = one.source, one.details
        if not isinstance(named, SourceObject) or not isinstance(details, FluxDetails):
            return one
        declared = resolve(named, self._sources()) or resolve(named, self._everywhere(unit))
        if declared is None:
            return one
        return msgspec.structs.replace(
            one,
            source=declared.source or named,
            request=_behind_chart(one.request, declared),
            details=msgspec.structs.replace(details, declared=declared),
        )

    def _sources(self) -> dict[SourceObject, DeclaredSource]:
        """By its name, what is declared by those above, the nearest first."""
        found: dict[SourceObject, DeclaredSource] = {}
        for level in self._levels():
            found = {**{one.id: one for one in level.declared.sources}, **found}
        return found

    def _everywhere(self, unit: Unit) -> dict[SourceObject, DeclaredSource]:
        """The same for all that stands in the repository."""
        near = unit.where.name if unit.where else ""
        files = sorted(self.scan.declared, key=lambda one: _distance(one, near), reverse=True)
        return {one.id: one for file in files for one in self.scan.declared[file].sources}

    def _levels(self) -> Iterator[Surroundings]:
        level: Surroundings | None = self
        while level is not None:
            yield level
            level = level.above

    def look_up(self, kind: str, namespace: str, name: str, near: str) -> Data | None:
        for level in self._levels():
            found = dict(_holders(level.documents, namespace)).get((kind, namespace, name))
            if found is not None:
                return _known(data_of(found.body))
        files = sorted(self.scan.data, key=lambda one: _distance(one, near))
        for file in files:
            known = dict(_holders(self.scan.data[file], namespace))
            if (kind, namespace, name) in known:
                return data_of(known[kind, namespace, name].body)
        return None


def _known(data: Data) -> Data | None:
    """Nothing where no key opened what it holds."""
    return None if any(PLACEHOLDER.encode() in one for one in data.values()) else data


def _behind_chart(request: Wanted, declared: DeclaredSource) -> Wanted:
    """A HelmChart says where in a tree the chart is, and which files are its values."""
    if declared.id.kind != "HelmChart" or not isinstance(request, Release):
        return request
    files = (ValuesFile(one, optional=declared.optional_values) for one in declared.values_files)
    path = declared.id.chart if isinstance(declared.source, GitSource) else request.chart
    return msgspec.structs.replace(
        request, chart=posixpath.normpath(path), defaults=tuple(files) or request.defaults
    )


@dataclass(frozen=True, slots=True)
class _Finder:
    """Looks data up for one unit."""

    around: Surroundings
    near: str

    def __call__(self, kind: str, namespace: str, name: str) -> Data | None:
        return self.around.look_up(kind, namespace, name, self.near)


def _holders(
    documents: Iterable[Document], namespace: str
) -> Iterator[tuple[tuple[str, str, str], Document]]:
    """The ConfigMaps and Secrets; those that name no namespace may be in this one.

    Of what is encrypted nobody knows the values.
    """
    for document in documents:
        kind = text(document.body, "kind")
        is_sealed = "sops" in document.body
        if kind in HOLDERS and text(document.body, "apiVersion") == "v1" and not is_sealed:
            home = text(document.body, "metadata", "namespace", default=namespace)
            yield (kind, home, text(document.body, "metadata", "name")), document


def _distance(path: str, near: str) -> tuple[int, str]:
    """How far two files are apart, by the directories between them."""
    one, other = path.split("/")[:-1], near.split("/")[:-1]
    shared = next(
        (at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]),
        min(len(one), len(other)),
    )
    return len(one) + len(other) - 2 * shared, path
