"""What an API server says, in nouns of the door: replies, a watch's bytes, and the kinds it serves.

A watch is one JSON event a line, of any length, cut anywhere by the network. Kinds are read in two
requests (aggregated discovery, Kubernetes 1.27 and newer), and again when somebody asks for a kind
that is not known, since its CRD may have arrived a moment ago.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Kind, Served, read_live
from tidegate.world import facts
from tidegate.world.calls import Ticket
from tidegate.world.facts import Bookmark, Change, Changed, Ended

REDIRECT, BAD_REQUEST, UNAUTHORIZED, UNPROCESSABLE = 300, 400, 401, 422
ACCEPT = ",".join(
    f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
    for version in ("v2", "v2beta1")
)
ROOTS = ("/api", "/apis")
LONGEST_LINE = 16 * 1024 * 1024
"""Bytes of one event of a watch; etcd keeps no object above 1.5 MiB."""
UNREADABLE_ERRORS = (ValueError, RecursionError)
"""What comes of reading somebody's bytes: msgspec's errors are ValueErrors."""


class Reply(NamedTuple):
    """What came over the wire."""

    status: int
    body: bytes
    retry_after: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def is_good(self) -> bool:
        return self.status < REDIRECT


class _Cause(msgspec.Struct):
    reason: str = ""
    message: str = ""
    field: str = ""


class _Details(msgspec.Struct, rename="camel"):
    name: str = ""
    causes: list[_Cause] = msgspec.field(default_factory=list)
    retry_after_seconds: int = 0


class Status(msgspec.Struct):
    """Kubernetes' own form of a refusal."""

    reason: str = ""
    message: str = ""
    code: int = 0
    details: _Details | None = None


class _ListMeta(msgspec.Struct, rename={"version": "resourceVersion", "resume": "continue"}):
    version: str = ""
    resume: str = ""


class _Page(msgspec.Struct):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


_decode_status = msgspec.json.Decoder(Status).decode
_decode_page = msgspec.json.Decoder(_Page).decode
_is_status = re.compile(rb'^\s*\{"kind":"Status","apiVersion":"v1"').match
_conflicting_manager = re.compile(r'^conflict with "((?:[^"\\]|\\.)*)"').match
_strict_problems = re.compile(r'(unknown|duplicate) field "([^"]+)"').findall
_is_untyped = re.compile(r"failed to create typed patch object \([^)]*\): ").search
_typed_problems = re.compile(r"\.((?:\[[^\]]*\]|[^\s:\[])+): (\S[^\n]*)").findall
UNDECLARED = "field not declared in schema"
UNREADABLE = "unable to convert unstructured object to "
"""Said, with status 500, of an applied body that is not of its kind's type in Go."""


def read_done(reply: Reply, kind: Kind) -> facts.Done:
    """The object that a read or a write came to; some deletions answer with a bare status."""
    if _is_status(reply.body):
        return facts.Done(None, reply.warnings)
    return facts.Done(read_live(reply.body, kind), reply.warnings)


def read_page(reply: Reply, kind: Kind) -> facts.Listed:
    """A page of a list, its objects still bytes."""
    page = _decode_page(reply.body)
    items = tuple(read_live(bytes(item), kind) for item in page.items or ())
    return facts.Listed(items, page.metadata.version, page.metadata.resume)


def read_refusal(reply: Reply) -> facts.Refusal:
    """Why the server did not do it."""
    return refusal_of(read_status(reply), retry_after=reply.retry_after)


def read_status(reply: Reply) -> Status:
    """Proxies and handlers of paths answer in plain text: that is a status too."""
    try:
        status = _decode_status(reply.body)
    except UNREADABLE_ERRORS:
        text = reply.body.decode(errors="replace").strip()
        return Status(message=text or f"HTTP {reply.status}", code=reply.status)
    return msgspec.structs.replace(status, code=reply.status)


def refusal_of(status: Status, *, retry_after: str = "") -> facts.Refusal:
    """Kubernetes' status as one of our refusals."""
    causes = status.details.causes if status.details else []
    match status.code, status.reason:
        case (404, _):
            return _not_found(status)
        case (409, "AlreadyExists"):
            return facts.Exists(status.message)
        case (409, _):
            return facts.Conflict(status.message, tuple(sorted(_owned(cause) for cause in causes)))
        case (410, _):
            return facts.Expired(status.message)
        case (429, _):
            return facts.Throttled(status.message, _pause(status, retry_after) or Ms(SECOND))
        case (403, _):
            return facts.Forbidden(status.message, _causes(causes))
        case _:
            return _invalid(status, _causes(causes)) or facts.Failed(
                status.code, status.reason, status.message, _pause(status, retry_after)
            )


def _not_found(status: Status) -> facts.Missing | facts.NotServed:
    """A missing object is named; a path that nobody serves is not."""
    if status.details and status.details.name:
        return facts.Missing(status.message)
    return facts.NotServed(status.message)


def _invalid(status: Status, causes: tuple[facts.Cause, ...]) -> facts.Invalid | None:
    """Wrong fields are told as causes, by the decoder, or by the merging of types."""
    named = [
        facts.Cause(field, problem, f"{problem} field")
        for problem, field in _strict_problems(status.message)
    ]
    if untyped := _is_untyped(status.message):
        named += [
            facts.Cause(field, "unknown", "unknown field")
            if problem == UNDECLARED
            else facts.Cause(field, "type", problem)
            for field, problem in _typed_problems(status.message, untyped.end())
        ]
    if named or status.code in {BAD_REQUEST, UNPROCESSABLE} or UNREADABLE in status.message:
        return facts.Invalid(status.message, tuple(sorted({*causes, *named})))
    return None


def _owned(cause: _Cause) -> facts.Owned:
    found = _conflicting_manager(cause.message)
    return facts.Owned(found[1] if found else "", cause.field.removeprefix("."))


def _causes(causes: list[_Cause]) -> tuple[facts.Cause, ...]:
    return tuple(sorted(facts.Cause(cause.field, cause.reason, cause.message) for cause in causes))


def _pause(status: Status, retry_after: str) -> Ms | None:
    if retry_after.isdigit():
        return Ms(int(retry_after) * SECOND)
    if status.details and status.details.retry_after_seconds:
        return Ms(status.details.retry_after_seconds * SECOND)
    return None


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


_decode_event = msgspec.json.Decoder(_Event).decode


class LineSplitter:
    """Whole lines out of chunks; what is left of the last one waits for the next chunk.

    A line that is larger than any object can be is refused with a ValueError.
    """

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._rest: list[bytes] = []
        self._waiting = 0
        self._longest = longest

    def split(self, chunk: bytes) -> Iterator[bytes]:
        head, newline, tail = chunk.partition(b"\n")
        while newline:
            self._rest.append(head)
            line = b"".join(self._rest)
            self._rest.clear()
            self._waiting = 0
            if line:
                yield line
            head, newline, tail = tail.partition(b"\n")
        if head:
            self._rest.append(head)
            self._waiting += len(head)
            if self._waiting > self._longest:
                raise ValueError(f"an event is larger than {self._longest // 1024**2} MiB")


def read_event(line: bytes, ticket: Ticket, kind: Kind) -> Changed | Bookmark | Ended:
    """One event of a watch."""
    event = _decode_event(line)
    if event.type == "ERROR":
        return Ended(ticket, refusal_of(_decode_status(event.object)))
    live = read_live(bytes(event.object), kind)
    if event.type == "BOOKMARK":
        return Bookmark(ticket, live.version)
    if event.type not in Change.__members__:
        raise ValueError("nobody knows an event of this type")
    return Changed(ticket, Change[event.type], live)


class _ResponseKind(msgspec.Struct):
    kind: str = ""


class _Subresource(msgspec.Struct):
    subresource: str = ""


class _Resource(msgspec.Struct, rename="camel"):
    resource: str
    scope: str = ""
    response_kind: _ResponseKind | None = None
    verbs: tuple[str, ...] = ()
    subresources: tuple[_Subresource, ...] = ()


class _GroupVersion(msgspec.Struct):
    version: str
    resources: tuple[_Resource, ...] = ()


class _GroupMeta(msgspec.Struct):
    name: str = ""


class _Group(msgspec.Struct):
    metadata: _GroupMeta
    versions: tuple[_GroupVersion, ...] = ()


class _Groups(msgspec.Struct):
    items: tuple[_Group, ...]


_decode = msgspec.json.Decoder(_Groups).decode


def read_kinds(reply: Reply) -> tuple[Served, ...]:
    """The kinds of one root, in the server's own order: the preferred version of a group first."""
    return tuple(
        Served(
            kind=Kind(group.metadata.name, version.version, resource.response_kind.kind),
            plural=resource.resource,
            namespaced=resource.scope == "Namespaced",
            verbs=tuple(sorted(resource.verbs)),
            subresources=tuple(sorted(sub.subresource for sub in resource.subresources)),
        )
        for group in _decode(reply.body).items
        for version in group.versions
        for resource in version.resources
        if resource.response_kind and resource.response_kind.kind
    )
