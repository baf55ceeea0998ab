"""What a cluster has of Helm releases: asked before they are rendered, so that templates see it."""

from __future__ import annotations

from collections.abc import Container, Iterator

import msgspec

from tidegate.dialect.helm.belonging import as_recorded, known_release
from tidegate.dialect.helm.record import (
    SECRET,
    ReleaseRecord,
    notes_of,
    read_record,
    record_ref,
    selector_of,
)
from tidegate.documents import Document
from tidegate.errors import Place
from tidegate.model.ledger import KnownRelease, ReleaseTerms
from tidegate.model.objects import Live
from tidegate.model.patterns import late
from tidegate.model.reading import mapping, mappings, text
from tidegate.model.unit import Unit
from tidegate.render.helm.rendering import read_piece
from tidegate.world.ask import ask
from tidegate.world.calls import Get, List, Selection, View
from tidegate.world.exchange import Exchange
from tidegate.world.facts import Done, Listed, Missing, NotServed, is_refusal
from tidegate.world.refusals import refusal_error

_SOURCE = late(r"(?m)^---\n# Source: [^/\n]+/(.+)\n")


class ClusterReleases:
    """The last revisions of releases. `clusters` are known; the first stands for all others."""

    def __init__(self, world: Exchange, clusters: Container[str], first: str) -> None:
        self._world = world
        self._clusters = clusters
        self._first = first

    async def __call__(self, unit: Unit) -> KnownRelease | None:
        terms = unit.policy.release
        if terms is None:
            return None
        cluster = self._cluster_of(unit)
        labels, view = selector_of(terms.name), View.METADATA
        selection = Selection(SECRET, terms.storage, labels=labels, view=view)
        (found,) = await ask(self._world, List(selection), cluster=cluster)
        if is_refusal(found) and not isinstance(found, Missing | NotServed):
            where = Place(f"unit {unit.id}")
            raise refusal_error(found, "reading the records of the release", where=where)
        records = found.items if isinstance(found, Listed) else ()
        read = (_read(one, terms) for one in records)
        told = [one for one in read if one is not None]
        last = max(told, key=lambda one: one.number, default=None)
        if last is None or last.key or last.is_gone:
            return last
        return as_recorded(last, await self._record(unit, terms, last), terms)

    async def manifest(self, unit: Unit, known: KnownRelease) -> tuple[Document, ...]:
        """The objects of a revision, then its hooks; each from its template inside the chart."""
        terms = unit.policy.release
        if terms is None:
            return ()
        record = await self._record(unit, terms, known)
        hooks = (text(one, "manifest") for one in mappings(record.content, "hooks"))
        texts = (record.manifest, *(f"---\n{one}" for one in hooks))
        return tuple(document for one in texts for document in _documents(one))

    async def _record(self, unit: Unit, terms: ReleaseTerms, known: KnownRelease) -> ReleaseRecord:
        ref = record_ref(terms.name, known.number, terms.storage)
        (found,) = await ask(self._world, Get(ref), cluster=self._cluster_of(unit))
        if not isinstance(found, Done) or found.live is None:
            missing = Missing(f"there is no revision {known.number}")
            refusal = found if is_refusal(found) else missing
            where = Place(f"unit {unit.id}")
            raise refusal_error(refusal, "reading the record of the release", where=where)
        return read_record(msgspec.json.decode(found.live.body))

    def _cluster_of(self, unit: Unit) -> str:
        place = unit.destination.cluster
        return place if place in self._clusters else self._first


def _documents(manifest: str) -> Iterator[Document]:
    """As it is written into records: before each object the template that it is from."""
    _, *parts = _SOURCE.split(manifest)
    for number, (path, piece) in enumerate(zip(parts[::2], parts[1::2], strict=True)):
        yield from read_piece(piece, path, number)


def _read(live: Live, terms: ReleaseTerms) -> KnownRelease | None:
    metadata = mapping(msgspec.json.decode(live.body), "metadata")
    labels = mapping(metadata, "labels")
    is_numbered = text(labels, "version").isdecimal()
    if not is_numbered:
        return None
    return known_release(labels, notes_of(metadata), terms)
