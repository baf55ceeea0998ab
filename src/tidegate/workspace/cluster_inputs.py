"""Inputs of rendering that are read from clusters: data, lookups of charts, and releases."""

from __future__ import annotations

from collections.abc import Container, Iterator
from http import HTTPStatus
from urllib.parse import unquote

import msgspec

from tidegate.clusters.reader import ClusterReader
from tidegate.clusters.session import Session
from tidegate.dialect.helm.record import (
    ReleaseRecord,
    read_annotations,
    read_record,
    record_ref,
    release_selector,
)
from tidegate.dialect.helm.record_owner import known_release, with_record
from tidegate.documents import Document
from tidegate.errors import Location, sanitize
from tidegate.knowledge.settings import has_open_keys
from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text
from tidegate.model.k8s.kinds import SECRET
from tidegate.model.k8s.objects import Kind, LiveObject, Ref, ServedKind
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.units.chart_request import LOOKUP_NOT_FOUND, LookupResult
from tidegate.model.units.release_history import KnownRelease, ReleaseSpec
from tidegate.model.units.unit import Unit
from tidegate.render.helm.chart_renderer import read_rendered_text
from tidegate.workers.rendering import ClusterDataResult
from tidegate.workspace.rendering.sources import decode_data
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.errors import error_from_outcome, raise_for_error
from tidegate.world.messages import (
    ApiResources,
    ListPage,
    NotFound,
    NotServed,
    Outcome,
    Success,
    is_error,
)
from tidegate.world.one_shot import send_requests
from tidegate.world.requests import Discover, Get, List, Selection, View


class ClusterDataReader:
    """Reader of ConfigMaps and Secrets in the cluster of Flux; each is read once."""

    def __init__(self, world: Dispatcher, cluster: str) -> None:
        self._world = world
        self._cluster = cluster
        self._results: dict[Ref, ClusterDataResult] = {}

    @property
    def has_read(self) -> bool:
        """Whether anything was read, so that units may differ with other objects."""
        return bool(self._results)

    async def __call__(self, kind: str, namespace: str, name: str) -> ClusterDataResult:
        ref = Ref(Kind("", "v1", kind), namespace, name)
        if ref not in self._results:
            self._results[ref] = await self._read(ref)
        return self._results[ref]

    async def _read(self, ref: Ref) -> ClusterDataResult:
        (outcome,) = await send_requests(self._world, Get(ref), cluster=self._cluster)
        if isinstance(outcome, Success) and outcome.live is not None:
            body = msgspec.json.decode(outcome.live.body)
            if has_open_keys(body):
                return ClusterDataResult(None, "its contents are unknown")
            return ClusterDataResult(decode_data(body))
        if isinstance(outcome, NotFound) or not is_error(outcome):
            return ClusterDataResult(None, "not found in the cluster")
        return ClusterDataResult(None, f"cannot be read: {sanitize(outcome.message)}")


NAMESPACED_SEGMENTS = 3
"""Minimum number of segments after the version of a path that names a namespace."""


class LookupPath(msgspec.Struct, frozen=True):
    """The request of an API path: the kinds of a group version, one object, or a list."""

    api_version: str
    plural: str = ""
    namespace: str = ""
    name: str = ""


class ClusterLookups:
    """Chart lookups in the clusters of a session, with the identity of the unit."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._kinds: dict[str, tuple[ServedKind, ...]] = {}

    async def __call__(self, unit: Unit, path: str) -> LookupResult:
        """Return the response to an API path; not found is a response.

        Raises if the cluster rejects the request.
        """
        lookup, cluster = (
            parse_lookup_path(path),
            self._session.cluster_or_default(unit.destination.cluster),
        )
        if lookup is None:
            return LOOKUP_NOT_FOUND
        kinds = await self.kinds(cluster)
        served = [
            candidate for candidate in kinds if candidate.kind.api_version == lookup.api_version
        ]
        if not lookup.plural:
            return (
                _json_response(_api_resource_list(lookup.api_version, served))
                if served
                else LOOKUP_NOT_FOUND
            )
        resource = next(
            (candidate for candidate in served if candidate.plural == lookup.plural), None
        )
        if resource is None:
            return LOOKUP_NOT_FOUND
        request: Get | List = List(Selection(resource.kind, lookup.namespace))
        if lookup.name:
            request = Get(Ref(resource.kind, lookup.namespace, lookup.name))
        items = list[LiveObject]()
        while True:
            identity = unit.policy.identity
            (outcome,) = await send_requests(
                self._session.world, request, cluster=cluster, identity=identity
            )
            if not isinstance(outcome, ListPage):
                return _to_response(outcome, path, unit)
            items += outcome.items
            if not outcome.continue_token:
                return _json_response(_object_list(resource.kind, items))
            request = msgspec.structs.replace(request, continue_token=outcome.continue_token)

    async def kinds(self, cluster: str) -> tuple[ServedKind, ...]:
        """Return the kinds that a cluster serves now: a rollout may have added some."""
        if cluster not in self._kinds:
            (outcome,) = await send_requests(self._session.world, Discover(), cluster=cluster)
            self._kinds[cluster] = outcome.kinds if isinstance(outcome, ApiResources) else ()
        return self._kinds[cluster]


def parse_lookup_path(path: str) -> LookupPath | None:
    """Return the parsed API path; None for any other path."""
    match [unquote(segment) for segment in path.split("/")]:
        case ["", "api", version, *segments]:
            api_version = version
        case ["", "apis", group, version, *segments]:
            api_version = f"{group}/{version}"
        case _:
            return None
    namespace = ""
    if len(segments) >= NAMESPACED_SEGMENTS and segments[0] == "namespaces":
        namespace, segments = segments[1], segments[2:]
    match segments:
        case []:
            return LookupPath(api_version)
        case [plural]:
            return LookupPath(api_version, plural, namespace)
        case [plural, name]:
            return LookupPath(api_version, plural, namespace, name)
        case _:
            return None


def _to_response(outcome: Outcome, path: str, unit: Unit) -> LookupResult:
    if isinstance(outcome, Success) and outcome.live is not None:
        return LookupResult(HTTPStatus.OK, outcome.live.body.decode())
    action = f"looking up `{sanitize(path)}` for the chart"
    location = unit.location or Location(f"unit {unit.id}")
    raise_for_error(outcome, action, location, ignored=NotFound | NotServed)
    return LOOKUP_NOT_FOUND


def _api_resource_list(api_version: str, served: list[ServedKind]) -> dict[str, object]:
    names = ("name", "kind", "namespaced", "verbs")
    rows = (
        (resource.plural, resource.kind.name, resource.namespaced, resource.verbs)
        for resource in served
    )
    resources = [dict(zip(names, row, strict=True)) for row in rows]
    return {"kind": "APIResourceList", "groupVersion": api_version, "resources": resources}


def _object_list(kind: Kind, items: list[LiveObject]) -> dict[str, object]:
    bodies = [msgspec.Raw(item.body) for item in items]
    header = {"apiVersion": kind.api_version, "kind": f"{kind.name}List"}
    return {**header, "metadata": {}, "items": bodies}


def _json_response(body: dict[str, object]) -> LookupResult:
    return LookupResult(HTTPStatus.OK, msgspec.json.encode(body).decode())


_SOURCE_COMMENT = lazy_regex(r"(?m)^---\n# Source: [^/\n]+/(.+)\n")


class ClusterReleaseReader:
    """Reader of the last revisions of releases.

    `clusters`: the known clusters; for all others, `first` is read.
    """

    def __init__(self, world: Dispatcher, clusters: Container[str], first: str) -> None:
        self._world = world
        self._clusters = clusters
        self._first = first

    async def __call__(self, unit: Unit) -> KnownRelease | None:
        """Return the last revision of the release of a unit; None if there is none."""
        spec = unit.policy.release
        if spec is None:
            return None
        cluster = self._cluster_for(unit)
        labels, view = release_selector(spec.name), View.METADATA
        selection = Selection(SECRET, spec.storage, label_selector=labels, view=view)
        listing = await ClusterReader(self._world, cluster).list_each((selection,))
        action = "listing the records of the Helm release"
        listing.raise_errors(action, Location(f"unit {unit.id}"))
        parsed = (_parse_revision(record, spec) for record in listing.items)
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
        live = await ClusterReader(self._world, self._cluster_for(unit)).get(ref)
        if live is None:
            missing, location = (
                NotFound(f"revision {revision.number} not found"),
                Location(f"unit {unit.id}"),
            )
            raise error_from_outcome(
                missing, "reading the record of the Helm release", location=location
            )
        return read_record(msgspec.json.decode(live.body))

    def _cluster_for(self, unit: Unit) -> str:
        cluster = unit.destination.cluster
        return cluster if cluster in self._clusters else self._first


def _documents(manifest: str) -> Iterator[Document]:
    """Yield the objects of a recorded manifest, which names the template before each object."""
    _, *parts = _SOURCE_COMMENT.split(manifest)
    for number, (path, piece) in enumerate(zip(parts[::2], parts[1::2], strict=True)):
        yield from read_rendered_text(piece, path, number)


def _parse_revision(live: LiveObject, spec: ReleaseSpec) -> KnownRelease | None:
    metadata = get_mapping(msgspec.json.decode(live.body), "metadata")
    labels = get_mapping(metadata, "labels")
    is_numbered = get_text(labels, "version").isdecimal()
    if not is_numbered:
        return None
    return known_release(labels, read_annotations(metadata), spec)
