"""API server responses as outcomes: objects, lists, errors, watch streams and discovery.

A watch is one JSON event per line, of any length, split anywhere by the network. Discovery takes
two requests (aggregated discovery, Kubernetes 1.27 and newer). It is repeated when a kind is not
known, since its CRD may have been created a moment ago.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from tidegate.model.k8s.objects import Kind, ServedKind, parse_live_object
from tidegate.model.times import SECOND, Ms
from tidegate.world import messages
from tidegate.world.messages import Bookmark, WatchEnded, WatchEvent, WatchEventType
from tidegate.world.requests import RequestId

REDIRECT, BAD_REQUEST, UNAUTHORIZED, UNPROCESSABLE = 300, 400, 401, 422
DISCOVERY_ACCEPT = ",".join(
    f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
    for version in ("v2", "v2beta1")
)
DISCOVERY_ROOTS = ("/api", "/apis")
MAX_LINE_SIZE = 16 * 1024 * 1024
"""Maximum bytes of one watch event; etcd stores no object above 1.5 MiB."""
DECODE_ERRORS = (ValueError, RecursionError)
"""Errors of decoding external bytes; the errors of msgspec are ValueErrors."""


class HttpResponse(NamedTuple):
    """An HTTP response."""

    status: int
    """HTTP status."""
    body: bytes
    """The body."""
    retry_after: str = ""
    """The `Retry-After` header; empty for none."""
    warnings: tuple[str, ...] = ()
    """Texts of the `Warning` headers."""

    @property
    def is_success(self) -> bool:
        """Whether the status is a success."""
        return self.status < REDIRECT


class _Cause(msgspec.Struct):
    """A cause in the details of a `Status`."""

    reason: str = ""
    """Reason for programs."""
    message: str = ""
    """Message for people."""
    field: str = ""
    """The path of the field."""


class _Details(msgspec.Struct, rename="camel"):
    """The details of a `Status`."""

    name: str = ""
    """The name of the object."""
    causes: list[_Cause] = msgspec.field(default_factory=list)
    """Problems by field."""
    retry_after_seconds: int = 0
    """Delay before a retry."""


class Status(msgspec.Struct):
    """A Kubernetes `Status` object."""

    reason: str = ""
    """Reason for programs."""
    message: str = ""
    """Message for people."""
    code: int = 0
    """HTTP status; 0 if missing."""
    details: _Details | None = None
    """The object, and problems by field; None if missing."""


class _ListMeta(msgspec.Struct, rename={"version": "resourceVersion", "resume": "continue"}):
    """The metadata of a list."""

    version: str = ""
    """The resource version."""
    resume: str = ""
    """The continue token."""


class _Page(msgspec.Struct):
    """A page of a list."""

    metadata: _ListMeta
    """The metadata of the list."""
    items: list[msgspec.Raw] | None = None
    """The objects, not decoded."""


_decode_status = msgspec.json.Decoder(Status).decode
_decode_page = msgspec.json.Decoder(_Page).decode
_is_status = re.compile(rb'^\s*\{"kind":"Status","apiVersion":"v1"').match
_match_conflict = re.compile(r'^conflict with "((?:[^"\\]|\\.)*)"').match
_find_strict_problems = re.compile(r'(unknown|duplicate) field "([^"]+)"').findall
_search_typed_error = re.compile(r"failed to create typed patch object \([^)]*\): ").search
_find_typed_problems = re.compile(r"\.((?:\[[^\]]*\]|[^\s:\[])+): (\S[^\n]*)").findall
UNDECLARED = "field not declared in schema"
CONVERSION_FAILED = "unable to convert unstructured object to "
"""Message, with status 500, about an applied body that does not fit the Go type of its kind."""


def read_object(response: HttpResponse, kind: Kind) -> messages.Success:
    """Return the object of a read or a write. Some deletions respond with a bare `Status`."""
    if _is_status(response.body):
        return messages.Success(None, response.warnings)
    return messages.Success(parse_live_object(response.body, kind), response.warnings)


def read_list_page(response: HttpResponse, kind: Kind) -> messages.ListPage:
    """Return a page of a list. Its objects stay bytes."""
    page = _decode_page(response.body)
    items = tuple(parse_live_object(bytes(item), kind) for item in page.items or ())
    return messages.ListPage(items, page.metadata.version, page.metadata.resume)


def read_error(response: HttpResponse) -> messages.ErrorOutcome:
    """Return the error outcome of a response."""
    return outcome_from_status(read_status(response), retry_after=response.retry_after)


def read_status(response: HttpResponse) -> Status:
    """Return the `Status` of a response.

    The plain text of proxies and path handlers becomes the message of a `Status`.
    """
    try:
        status = _decode_status(response.body)
    except DECODE_ERRORS:
        text = response.body.decode(errors="replace").strip()
        return Status(message=text or f"HTTP {response.status}", code=response.status)
    return msgspec.structs.replace(status, code=response.status)


def outcome_from_status(status: Status, *, retry_after: str = "") -> messages.ErrorOutcome:
    """Return the error outcome for a `Status`."""
    causes = status.details.causes if status.details else []
    match status.code, status.reason:
        case (404, _):
            return _not_found_outcome(status)
        case (409, "AlreadyExists"):
            return messages.AlreadyExists(status.message)
        case (409, _):
            return messages.Conflict(
                status.message, tuple(sorted(_field_owner(cause) for cause in causes))
            )
        case (410, _):
            return messages.Expired(status.message)
        case (429, _):
            return messages.TooManyRequests(
                status.message, _retry_after(status, retry_after) or Ms(SECOND)
            )
        case (403, _):
            return messages.Forbidden(status.message, _convert_causes(causes))
        case _:
            return _invalid_outcome(status, _convert_causes(causes)) or messages.ServerError(
                status.code, status.reason, status.message, _retry_after(status, retry_after)
            )


def _not_found_outcome(status: Status) -> messages.NotFound | messages.NotServed:
    """Return whether the object or the kind is missing: only a missing object is named in the
    details.

    Like `NewNotFound` and `NewGenericServerResponse` in `pkg/api/errors/errors.go` of
    k8s.io/apimachinery 0.36.4.
    """
    if status.details and status.details.name:
        return messages.NotFound(status.message)
    return messages.NotServed(status.message)


def _invalid_outcome(status: Status, causes: tuple[messages.Cause, ...]) -> messages.Invalid | None:
    """Return the outcome for invalid fields. Returns None if the status is about something else.

    The fields are named in the causes, by the strict decoder, or by the typed merge of an apply.
    """
    field_causes = [
        messages.Cause(field, problem, f"{problem} field")
        for problem, field in _find_strict_problems(status.message)
    ]
    if typed_error := _search_typed_error(status.message):
        field_causes += [
            messages.Cause(field, "unknown", "unknown field")
            if problem == UNDECLARED
            else messages.Cause(field, "type", problem)
            for field, problem in _find_typed_problems(status.message, typed_error.end())
        ]
    if (
        field_causes
        or status.code in {BAD_REQUEST, UNPROCESSABLE}
        or CONVERSION_FAILED in status.message
    ):
        return messages.Invalid(status.message, tuple(sorted({*causes, *field_causes})))
    return None


def _field_owner(cause: _Cause) -> messages.FieldOwner:
    match = _match_conflict(cause.message)
    return messages.FieldOwner(match[1] if match else "", cause.field.removeprefix("."))


def _convert_causes(causes: list[_Cause]) -> tuple[messages.Cause, ...]:
    return tuple(
        sorted(messages.Cause(cause.field, cause.reason, cause.message) for cause in causes)
    )


def _retry_after(status: Status, retry_after: str) -> Ms | None:
    if retry_after.isdigit():
        return Ms(int(retry_after) * SECOND)
    if status.details and status.details.retry_after_seconds:
        return Ms(status.details.retry_after_seconds * SECOND)
    return None


class _Event(msgspec.Struct):
    """An event of a watch."""

    type: str
    """The type of the event."""
    object: msgspec.Raw
    """The object, not decoded."""


_decode_event = msgspec.json.Decoder(_Event).decode


class LineSplitter:
    """Complete lines from chunks. The rest of a chunk is kept for the next one.

    Raises ValueError for a line that is longer than any object can be.
    """

    def __init__(self, limit: int = MAX_LINE_SIZE) -> None:
        self._buffer: list[bytes] = []
        self._buffered = 0
        self._limit = limit

    def split(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the lines that a chunk completes."""
        head, newline, tail = chunk.partition(b"\n")
        while newline:
            self._buffer.append(head)
            line = b"".join(self._buffer)
            self._buffer.clear()
            self._buffered = 0
            if line:
                yield line
            head, newline, tail = tail.partition(b"\n")
        if head:
            self._buffer.append(head)
            self._buffered += len(head)
            if self._buffered > self._limit:
                raise ValueError(f"an event is larger than {self._limit // 1024**2} MiB")


def read_event(
    line: bytes, request_id: RequestId, kind: Kind
) -> WatchEvent | Bookmark | WatchEnded:
    """Decode one event of a watch. Raises ValueError for an unknown event type."""
    event = _decode_event(line)
    if event.type == "ERROR":
        return WatchEnded(request_id, outcome_from_status(_decode_status(event.object)))
    live = parse_live_object(bytes(event.object), kind)
    if event.type == "BOOKMARK":
        return Bookmark(request_id, live.resource_version)
    if event.type not in WatchEventType.__members__:
        raise ValueError("unknown event type")
    return WatchEvent(request_id, WatchEventType[event.type], live)


class _ResponseKind(msgspec.Struct):
    """The kind of the objects of a resource."""

    kind: str = ""
    """The kind."""


class _Subresource(msgspec.Struct):
    """A subresource in discovery."""

    subresource: str = ""
    """The name of the subresource."""


class _Resource(msgspec.Struct, rename="camel"):
    """A resource in discovery."""

    resource: str
    """The plural of the kind."""
    scope: str = ""
    """`Namespaced` or `Cluster`."""
    response_kind: _ResponseKind | None = None
    """The kind of the objects."""
    verbs: tuple[str, ...] = ()
    """The supported verbs."""
    subresources: tuple[_Subresource, ...] = ()
    """The subresources."""


class _GroupVersion(msgspec.Struct):
    """A version of a group in discovery."""

    version: str
    """The version."""
    resources: tuple[_Resource, ...] = ()
    """The resources of the version."""


class _GroupMeta(msgspec.Struct):
    """The metadata of a group."""

    name: str = ""
    """The name of the group; empty for the core group."""


class _Group(msgspec.Struct):
    """An API group in discovery."""

    metadata: _GroupMeta
    """The metadata of the group."""
    versions: tuple[_GroupVersion, ...] = ()
    """The versions, the preferred one first."""


class _Groups(msgspec.Struct):
    """The response of aggregated discovery."""

    items: tuple[_Group, ...]
    """The groups."""


_decode_groups = msgspec.json.Decoder(_Groups).decode


def read_served_kinds(response: HttpResponse) -> tuple[ServedKind, ...]:
    """Return the kinds of one discovery root in the server's order: the preferred version first.

    Like `SplitGroupsAndResources` in `discovery/aggregated_discovery.go` of k8s.io/client-go
    0.36.4.
    """
    return tuple(
        ServedKind(
            kind=Kind(group.metadata.name, version.version, resource.response_kind.kind),
            plural=resource.resource,
            namespaced=resource.scope == "Namespaced",
            verbs=tuple(sorted(resource.verbs)),
            subresources=tuple(sorted(sub.subresource for sub in resource.subresources)),
        )
        for group in _decode_groups(response.body).items
        for version in group.versions
        for resource in version.resources
        if resource.response_kind and resource.response_kind.kind
    )
