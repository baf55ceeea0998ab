"""Helm releases in a cluster, read before they are rendered, as templates depend on them."""

from __future__ import annotations

from collections.abc import Container, Iterator

import msgspec

from tidegate.dialect.helm.belonging import known_release, with_record
from tidegate.dialect.helm.record import (
    SECRET,
    ReleaseRecord,
    read_annotations,
    read_record,
    record_ref,
    release_selector,
)
from tidegate.documents import Document
from tidegate.errors import Location
from tidegate.model.ledger import KnownRelease, ReleaseSpec
from tidegate.model.objects import LiveObject
from tidegate.model.patterns import lazy_regex
from tidegate.model.reading import get_mapping, get_mappings, get_text
from tidegate.model.unit import Unit
from tidegate.render.helm.rendering import read_piece
from tidegate.world.ask import send_requests
from tidegate.world.calls import Get, List, Selection, View
from tidegate.world.exchange import Dispatcher
from tidegate.world.facts import ListPage, NotFound, NotServed, Success, is_error
from tidegate.world.refusals import error_from_outcome

_SOURCE_COMMENT = lazy_regex(r"(?m)^---\n# Source: [^/\n]+/(.+)\n")


class ClusterReleaseReader:
    """Reads the last revisions of releases.

    `clusters`: the known clusters; for all others, `first` is read.
    """

    def __init__(self, world: Dispatcher, clusters: Container[str], first: str) -> None:
        self._world = world
        self._clusters = clusters
        self._first = first

    async def __call__(self, unit: Unit) -> KnownRelease | None:
        """Return the last revision of the release of a unit; None where there is none."""
        spec = unit.policy.release
        if spec is None:
            return None
        cluster = self._cluster_for(unit)
        labels, view = release_selector(spec.name), View.METADATA
        selection = Selection(SECRET, spec.storage, label_selector=labels, view=view)
        (outcome,) = await send_requests(self._world, List(selection), cluster=cluster)
        if is_error(outcome) and not isinstance(outcome, NotFound | NotServed):
            location = Location(f"unit {unit.id}")
            raise error_from_outcome(
                outcome, "reading the records of the release", location=location
            )
        records = outcome.items if isinstance(outcome, ListPage) else ()
        parsed = (_parse_revision(record, spec) for record in records)
        revisions = [revision for revision in parsed if revision is not None]
        last = max(revisions, key=lambda revision: revision.number, default=None)
        if last is None or last.key or last.is_uninstalled:
            return last
        return with_record(last, await self._read_record(unit, spec, last), spec)

    async def read_manifest(self, unit: Unit, revision: KnownRelease) -> tuple[Document, ...]:
        """Return the objects of a revision, then its hooks, each at its chart template."""
        spec = unit.policy.release
        if spec is None:
            return ()
        record = await self._read_record(unit, spec, revision)
        hooks = (get_text(hook, "manifest") for hook in get_mappings(record.content, "hooks"))
        manifests = (record.manifest, *(f"---\n{hook}" for hook in hooks))
        return tuple(document for manifest in manifests for document in _documents(manifest))

    async def _read_record(
        self, unit: Unit, spec: ReleaseSpec, revision: KnownRelease
    ) -> ReleaseRecord:
        ref = record_ref(spec.name, revision.number, spec.storage)
        (outcome,) = await send_requests(self._world, Get(ref), cluster=self._cluster_for(unit))
        if not isinstance(outcome, Success) or outcome.live is None:
            missing = NotFound(f"there is no revision {revision.number}")
            error_outcome = outcome if is_error(outcome) else missing
            location = Location(f"unit {unit.id}")
            raise error_from_outcome(
                error_outcome, "reading the record of the release", location=location
            )
        return read_record(msgspec.json.decode(outcome.live.body))

    def _cluster_for(self, unit: Unit) -> str:
        cluster = unit.destination.cluster
        return cluster if cluster in self._clusters else self._first


def _documents(manifest: str) -> Iterator[Document]:
    """Yield the objects of a recorded manifest, which names the template before each object."""
    _, *parts = _SOURCE_COMMENT.split(manifest)
    for number, (path, piece) in enumerate(zip(parts[::2], parts[1::2], strict=True)):
        yield from read_piece(piece, path, number)


def _parse_revision(live: LiveObject, spec: ReleaseSpec) -> KnownRelease | None:
    metadata = get_mapping(msgspec.json.decode(live.body), "metadata")
    labels = get_mapping(metadata, "labels")
    is_numbered = get_text(labels, "version").isdecimal()
    if not is_numbered:
        return None
    return known_release(labels, read_annotations(metadata), spec)
