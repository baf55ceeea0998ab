"""Application of files to an empty simulated cluster, with a timeline of the changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from tidegate.clusters.reader import ClusterReader
from tidegate.clusters.sandboxes import SimulationConfig, build_sandbox
from tidegate.documents import Document, read_documents, reject_duplicates
from tidegate.errors import DocumentError, Location
from tidegate.files import read_regular_file
from tidegate.model.k8s.kinds import CLAIM, EVENT, JOB, POD, REPLICA_SET
from tidegate.model.k8s.objects import Kind, Ref, ServedKind
from tidegate.model.redaction import Redactor
from tidegate.model.simulation.timeline import TimelineEntry
from tidegate.model.times import SECOND, Ms
from tidegate.model.units.rendering import Directory
from tidegate.render.plain import read_directory
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.messages import (
    ApiResources,
    Message,
    NotFound,
    NotServed,
    Response,
    WatchEvent,
    is_error,
)
from tidegate.world.one_shot import send_requests
from tidegate.world.requests import Discover, RequestId, Selection, Verb, Watch, Write
from tidegate.world.resilient import ResilientWorld

DEFAULT_NAMESPACE = "default"
RETRY_INTERVAL = Ms(SECOND)
MAX_ATTEMPTS = 30
WATCHED_KINDS = (
    EVENT,
    CLAIM,
    POD,
    REPLICA_SET,
    JOB,
)
"""Kinds that controllers create, watched in addition to the applied kinds."""


class _PendingWrite(msgspec.Struct):
    """An apply request that has not succeeded yet."""

    write: Write
    attempts: int = 0


async def apply_files(
    files: Sequence[Path],
    config: SimulationConfig,
    *,
    until: Ms,
    namespace: str = DEFAULT_NAMESPACE,
) -> list[TimelineEntry]:
    """Apply all files at once to a simulated cluster, and return all changes up to `until`.

    `namespace`: for objects that do not set one. Raises DocumentError if there is no object.
    """
    documents = [document for path in files for document in read_objects(path)]
    if not documents:
        problem = "no objects to apply"
        hint = "set files or directories with Kubernetes manifests"
        raise DocumentError("documents.empty", problem, location=Location(str(files[0])), hint=hint)
    world = Dispatcher(ResilientWorld(build_sandbox(config)))
    (catalogue,) = await send_requests(world, Discover())
    served = catalogue.kinds if isinstance(catalogue, ApiResources) else ()
    cluster_scoped = cluster_scoped_kinds(served, documents)
    writes = [_apply_request(document, cluster_scoped, namespace) for document in documents]
    kinds = list({**{write.ref.kind: None for write in writes}, **dict.fromkeys(WATCHED_KINDS)})
    preinstalled = await _preinstalled_uids(world, kinds)
    redactor = Redactor.from_objects((document.body, ()) for document in documents)
    timeline = await _TimelineRecorder(world, writes, redactor).run(kinds, until)
    return [
        entry for entry in timeline if entry.change != "added" or _uid(entry) not in preinstalled
    ]


async def _preinstalled_uids(world: Dispatcher, kinds: Iterable[Kind]) -> set[str]:
    """Return the uids of preinstalled objects, which are not part of the timeline."""
    return {live.uid for live in await ClusterReader(world).list_all(map(Selection, kinds))}


def _uid(entry: TimelineEntry) -> str:
    return entry.live.uid if entry.live else ""


def cluster_scoped_kinds(
    served: Iterable[ServedKind], documents: Iterable[Document]
) -> set[tuple[str, str]]:
    """Return the cluster-scoped kinds, by group and name, including those of CRDs in files."""
    kinds = {
        (served_kind.kind.group, served_kind.kind.name)
        for served_kind in served
        if not served_kind.namespaced
    }
    for document in documents:
        spec = document.body.get("spec")
        if document.body.get("kind") == "CustomResourceDefinition" and isinstance(spec, dict):
            names = spec.get("names")
            if spec.get("scope") == "Cluster" and isinstance(names, dict):
                kinds.add((str(spec.get("group")), str(names.get("kind"))))
    return kinds


def read_objects(path: Path) -> tuple[Document, ...]:
    """Read the objects of a file or a directory. Raises DocumentError."""
    if path.is_dir():
        return read_directory(Directory(root=path, recurse=True))
    try:
        content = read_regular_file(path)
    except OSError as error:
        problem = f"cannot read the file: {error.strerror}"
        raise DocumentError("documents.file", problem, location=Location(str(path))) from None
    documents = read_documents(content, str(path))
    reject_duplicates(documents)
    return documents


def _apply_request(
    document: Document, cluster_scoped: set[tuple[str, str]], default_namespace: str
) -> Write:
    body = document.body
    metadata = body.get("metadata")
    fields = metadata if isinstance(metadata, dict) else {}
    kind = Kind.of(str(body.get("apiVersion", "")), str(body.get("kind", "")))
    if not kind.name or not kind.version or not fields.get("name"):
        problem = "not a Kubernetes object: apiVersion, kind or metadata.name is missing"
        raise DocumentError("documents.incomplete", problem, location=document.location)
    is_cluster_scoped = (kind.group, kind.name) in cluster_scoped
    namespace = "" if is_cluster_scoped else str(fields.get("namespace") or default_namespace)
    ref = Ref(kind, namespace, str(fields["name"]))
    return Write(verb=Verb.APPLY, ref=ref, body=msgspec.json.encode(body), manager="kubectl")


class _TimelineRecorder:
    """Recorder of changes: applies objects and watches their kinds."""

    def __init__(self, world: Dispatcher, writes: Iterable[Write], redactor: Redactor) -> None:
        self._world = world
        self._redactor = redactor
        self._client = world.client()
        self._start = world.now()
        self._writes = tuple(writes)
        self._pending: dict[RequestId, _PendingWrite] = {}
        self._retries: list[tuple[Ms, _PendingWrite]] = []
        self._timeline: list[TimelineEntry] = []

    async def run(self, kinds: Iterable[Kind], until: Ms) -> list[TimelineEntry]:
        for kind in kinds:
            self._client.submit(Watch(Selection(kind)))
        for write in self._writes:
            self._submit(_PendingWrite(write))
        end = Ms(self._start + until)
        while self._world.now() < end:
            for message in await self._client.wait(
                min([end, *(retry_at for retry_at, _ in self._retries)])
            ):
                self._on_message(message)
            self._retry()
        return self._timeline

    def _submit(self, pending: _PendingWrite) -> None:
        pending.attempts += 1
        self._pending[self._client.submit(pending.write)] = pending

    def _retry(self) -> None:
        now = self._world.now()
        due = [pending for retry_at, pending in self._retries if retry_at <= now]
        self._retries = [retry for retry in self._retries if retry[0] > now]
        for pending in due:
            self._submit(pending)

    def _on_message(self, message: Message) -> None:
        at = Ms(self._world.now() - self._start)
        match message:
            case WatchEvent():
                self._timeline.append(
                    TimelineEntry(at, message.type.value, message.live.ref, message.live)
                )
            case Response() if message.request_id in self._pending:
                self._on_response(message, self._pending.pop(message.request_id), at)
            case _:
                pass

    def _on_response(self, response: Response, pending: _PendingWrite, at: Ms) -> None:
        """Record a rejected write once; retry it while a kind or namespace does not exist yet."""
        if not is_error(response.outcome):
            return
        if pending.attempts == 1:
            reason = self._redactor.redact(response.outcome.message)
            self._timeline.append(TimelineEntry(at, "refused", pending.write.ref, reason=reason))
        if isinstance(response.outcome, NotServed | NotFound) and pending.attempts < MAX_ATTEMPTS:
            self._retries.append((Ms(self._world.now() + RETRY_INTERVAL), pending))
