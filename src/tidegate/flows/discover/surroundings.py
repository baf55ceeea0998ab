"""What a unit finds around itself: objects that stand for sources, ConfigMaps, Secrets.

Who is nearer counts: first what its parent renders, then its parent's parent, at last whatever
stands in the repository, the nearest by path.
"""

from __future__ import annotations

import posixpath
from collections import ChainMap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import msgspec

from tidegate.dialect.declared import Declared
from tidegate.dialect.flux.sources import resolve
from tidegate.dialect.units import FLUX_HOME
from tidegate.documents import Document
from tidegate.flows.discover.scan import SYNCED, Held, Scan, holders, is_synced
from tidegate.flows.rendering.trees import Data, data_of
from tidegate.model.braces import may_be
from tidegate.model.release import Release, ValuesFile
from tidegate.model.rendering import ArgoPlugin, Detected, FluxDetails, Request
from tidegate.model.source import BucketSource, DeclaredSource, GitSource, LocalSource, SourceObject
from tidegate.model.spelling import meant
from tidegate.model.unit import Unit, UnitSource

NOTHING = Declared()
Wanted: TypeAlias = Request | Detected | ArgoPlugin | None


@dataclass(eq=False)
class Neighbourhood:
    """What is known where a unit is brought: by whom, and by whom that one is."""

    scan: Scan
    documents: tuple[Document, ...] = ()
    declared: Declared = NOTHING
    above: Neighbourhood | None = None

    def find_data(self, near: Unit) -> _Finder:
        return _Finder(self, near.where.name if near.where else "")

    def with_sources(self, unit: Unit) -> Unit:
        """The unit with its sources found, where objects stand for them."""
        sources = tuple(self._found(one, unit) for one in unit.sources)
        return msgspec.structs.replace(unit, sources=sources)

    def _found(self, one: UnitSource, unit: Unit) -> UnitSource:
        named, details = one.source, one.details
        if not isinstance(named, SourceObject) or not isinstance(details, FluxDetails):
            return one
        near = unit.where.name if unit.where else ""
        declared = resolve(named, _Everywhere(self.sources, self.scan, near))
        if declared is None:
            return self._of_checkout(one, named)
        return msgspec.structs.replace(
            one,
            source=declared.source or named,
            request=_behind_chart(one.request, declared),
            details=msgspec.structs.replace(details, declared=declared),
        )

    def _of_checkout(self, one: UnitSource, named: SourceObject) -> UnitSource:
        """What Flux's operator makes for the repository that it syncs stands in no file of it.

        Where it has the path of one unit, a path that it does not have is wrong.
        """
        if is_synced(named) and self.scan.is_synced:
            return msgspec.structs.replace(one, source=LocalSource(str(self.scan.root)))
        known = (each.id for declared in self.scan.declared.values() for each in declared.sources)
        names = {each.name for each in known if each.kind == named.kind}
        names |= {FLUX_HOME} if self.scan.is_synced and named.kind in SYNCED else set()
        near, details = meant(named.name, names), one.details
        if not near or not isinstance(details, FluxDetails):
            return one
        lost = DeclaredSource(id=named, near=near)
        return msgspec.structs.replace(one, details=msgspec.structs.replace(details, declared=lost))

    @cached_property
    def sources(self) -> ChainMap[SourceObject, DeclaredSource]:
        """By its name, what is declared by those above, the nearest first."""
        own = {one.id: one for one in self.declared.sources}
        return ChainMap(own, *(self.above.sources.maps if self.above else ()))

    @cached_property
    def held(self) -> dict[Held, Document]:
        """The ConfigMaps and Secrets that come with it."""
        return dict(holders(self.documents))

    def _levels(self) -> Iterator[Neighbourhood]:
        level: Neighbourhood | None = self
        while level is not None:
            yield level
            level = level.above

    def look_up(self, kind: str, namespace: str, name: str, near: str) -> Data | None:
        """Those that name no namespace may be in this one."""
        names = ((kind, namespace, name), (kind, "", name))
        for level in self._levels():
            found = next((level.held[one] for one in names if one in level.held), None)
            if found is not None:
                return data_of(found.body)
        spots = (self.scan.held.find(one, near) for one in names)
        nearest = min((one for one in spots if one), key=lambda one: one[0], default=None)
        return data_of(nearest[1].body) if nearest else None


class _Everywhere(msgspec.Struct, frozen=True):
    """What is declared by those above, and else in the repository, the nearest by path."""

    above: Mapping[SourceObject, DeclaredSource]
    scan: Scan
    near: str

    def get(self, named: SourceObject) -> DeclaredSource | None:
        if (known := self.above.get(named)) is not None:
            return known
        found = self.scan.sources.find(named, self.near)
        return found[1] if found else self._discovered(named)

    def _discovered(self, named: SourceObject) -> DeclaredSource | None:
        """What generators may make of directories by this name; which one is not known yet."""
        if named.kind != "ExternalArtifact":
            return None
        nearby = (one for declared in self.scan.declared.values() for one in declared.sources)
        made = {
            str(one.where): one for one in (*self.above.values(), *nearby) if _may_make(one, named)
        }
        if not made:
            return None
        first, *others = made.values()
        return msgspec.structs.replace(first, others=tuple(others))


def _may_make(one: DeclaredSource, named: SourceObject) -> bool:
    near = one.discovery is not None and one.id.namespace == named.namespace
    return near and may_be(one.id.name, named.name)


def _behind_chart(request: Wanted, declared: DeclaredSource) -> Wanted:
    """A HelmChart says where in a tree the chart is, and which files are its values."""
    if declared.id.kind != "HelmChart" or not isinstance(request, Release):
        return request
    files = (ValuesFile(one, optional=declared.optional_values) for one in declared.values_files)
    path = (
        declared.id.chart
        if isinstance(declared.source, GitSource | BucketSource)
        else request.chart
    )
    return msgspec.structs.replace(
        request, chart=posixpath.normpath(path), defaults=tuple(files) or request.defaults
    )


class _Finder(msgspec.Struct, frozen=True):
    """Looks data up for one unit."""

    around: Neighbourhood
    near: str

    def __call__(self, kind: str, namespace: str, name: str) -> Data | None:
        return self.around.look_up(kind, namespace, name, self.near)
