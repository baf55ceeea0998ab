"""Requests of a World for HTTP requests: parses path, query and body.

The reverse direction is `kube.http_requests`; the contract tests of every World cover both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from tidegate.documents import read_documents
from tidegate.documents.build import DEPTH_LIMIT
from tidegate.errors import DocumentError
from tidegate.model.k8s.json_fields import get_list, get_mapping, get_text
from tidegate.model.k8s.objects import Json, Propagation, Ref, ServedKind
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.world import requests

NAMESPACES = "namespaces"
TRUE_VALUES = frozenset({"1", "true", "True", "t"})
APPLY_CONTENT_TYPES = ("application/apply-patch+yaml", "application/apply-patch+cbor")
PATCH_TYPES = {
    "application/json-patch+json": requests.PatchType.JSON,
    "application/merge-patch+json": requests.PatchType.MERGE,
    "application/strategic-merge-patch+json": requests.PatchType.STRATEGIC,
}
YAML_CONTENT_TYPES = ("application/yaml", "application/x-yaml", "text/yaml")
JSON_TOKEN = lazy_regex(rb'"(?:[^"\\]|\\.)*+"|[{}\[\]]')
NESTING = {b"{": 1, b"[": 1, b"}": -1, b"]": -1}
"""By how much a token of JSON changes the depth."""
UNKNOWN_MANAGER = "unknown"
STRICT = "Strict"
DEFAULT_WATCH_SECONDS = 1800
"""Duration of a watch if the client sets none.

Like `MinRequestTimeout` in `pkg/server/config.go` of k8s.io/apiserver 0.36.4.
"""
Query = Mapping[str, str]


class ResourcePath(NamedTuple):
    """A parsed API path: group, version, plural, namespace, name and subresource."""

    group: str
    """The API group; empty for the core group."""
    version: str
    """The API version."""
    plural: str = ""
    """The resource; empty for a discovery path."""
    namespace: str = ""
    """The namespace; empty for none."""
    name: str = ""
    """The name of the object; empty for a collection."""
    subresource: str = ""
    """The subresource; empty for none."""


class ApiRequest(msgspec.Struct, frozen=True):
    """An API request: the kind, the path, the query and the body."""

    served: ServedKind
    """The kind."""
    path: ResourcePath
    """The parsed path."""
    query: Query
    """The query parameters."""
    body: bytes = b""
    """The body."""
    content_type: str = ""
    """The `Content-Type` header."""
    user_agent: str = ""
    """The `User-Agent` header."""

    @property
    def ref(self) -> Ref:
        """The object of the path."""
        return Ref(self.served.kind, self.path.namespace, self.path.name)

    def is_set(self, name: str) -> bool:
        """Return whether a boolean query parameter is set."""
        return self.query.get(name, "") in TRUE_VALUES


class BadRequestError(Exception):
    """A request that cannot be processed, with status and reason."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status, self.reason = status, reason


def parse_path(path: str) -> ResourcePath | None:
    """Parse a path below `/api` or `/apis`. Returns None for other paths.

    Like `NewRequestInfo` in `pkg/endpoints/request/requestinfo.go` of k8s.io/apiserver 0.36.4.
    """
    match path.strip("/").split("/"):
        case ["api", version, *segments]:
            group = ""
        case ["apis", group, version, *segments]:
            pass
        case _:
            return None
    match segments:
        case [] | [""]:
            return ResourcePath(group, version)
        case ["namespaces", name, ("status" | "finalize") as subresource] if not group:
            return ResourcePath(group, version, NAMESPACES, "", name, subresource)
        case ["namespaces", namespace, plural, *remaining]:
            return ResourcePath(group, version, plural, namespace, *remaining[:2])
        case [plural, *remaining]:
            return ResourcePath(group, version, plural, "", *remaining[:2])
        case _:
            return None


def build_selection(request: ApiRequest) -> requests.Selection:
    """Return the selection of a list or watch."""
    fields = request.query.get("fieldSelector", "")
    if request.path.name:
        fields = ",".join(filter(None, (fields, f"metadata.name={request.path.name}")))
    return requests.Selection(
        request.served.kind, request.path.namespace, request.query.get("labelSelector", ""), fields
    )


def build_list(request: ApiRequest) -> requests.List:
    """Return the list request for an HTTP request."""
    limit = request.query.get("limit", "")
    return requests.List(
        build_selection(request),
        int(limit) if limit.isdigit() else 0,
        request.query.get("continue", ""),
    )


def build_logs(request: ApiRequest) -> requests.Logs:
    """Return the log request for an HTTP request."""
    tail = request.query.get("tailLines", "")
    return requests.Logs(
        ref=request.ref,
        container=request.query.get("container", ""),
        tail=int(tail) if tail.isdigit() else 0,
        previous=request.is_set("previous"),
    )


def build_write(method: str, request: ApiRequest) -> requests.Write:
    """Return the write for a method."""
    match method:
        case "DELETE":
            return build_deletion(request)
        case "POST":
            verb, patch_type = requests.Verb.CREATE, requests.PatchType.MERGE
        case "PUT":
            verb, patch_type = requests.Verb.REPLACE, requests.PatchType.MERGE
        case _:
            verb, patch_type = _patch_verb(request.content_type)
    body = _json_body(request)
    return requests.Write(
        verb=verb,
        ref=request.ref
        if verb is not requests.Verb.CREATE or request.path.name
        else _ref_from_body(request, body),
        body=body,
        patch_type=patch_type,
        subresource=request.path.subresource,
        manager=request.query.get("fieldManager") or request.user_agent or UNKNOWN_MANAGER,
        force=request.is_set("force"),
        dry_run="All" in request.query.get("dryRun", ""),
        strict=request.query.get("fieldValidation") == STRICT,
    )


def _patch_verb(content_type: str) -> tuple[requests.Verb, requests.PatchType]:
    if content_type in APPLY_CONTENT_TYPES:
        return requests.Verb.APPLY, requests.PatchType.MERGE
    if content_type in PATCH_TYPES:
        return requests.Verb.PATCH, PATCH_TYPES[content_type]
    message = f"the body of the request was in an unknown format - {content_type or 'none'}"
    raise BadRequestError(415, "UnsupportedMediaType", message)


def _json_body(request: ApiRequest) -> bytes:
    """Return the body as JSON. Applies and manifests may be YAML."""
    if "protobuf" in request.content_type:
        message = "this simulated cluster does not support protobuf: apply a manifest instead"
        raise BadRequestError(415, "UnsupportedMediaType", message)
    is_yaml = request.content_type in (*APPLY_CONTENT_TYPES, *YAML_CONTENT_TYPES)
    if not is_yaml or request.body.lstrip()[:1] == b"{":
        _check_depth(request.body)
        return request.body
    try:
        documents = read_documents(request.body, "body")
    except DocumentError as error:
        raise BadRequestError(400, "BadRequest", str(error)) from None
    return msgspec.json.encode(documents[0].body) if documents else b"{}"


def _check_depth(body: bytes) -> None:
    """Reject JSON that is nested deeper than any document may be."""
    if body.count(b"{") + body.count(b"[") <= DEPTH_LIMIT:
        return
    depth = 0
    for token in JSON_TOKEN.finditer(body):
        depth += NESTING.get(token[0], 0)
        if depth > DEPTH_LIMIT:
            message = f"the body of the request is nested more than {DEPTH_LIMIT} deep"
            raise BadRequestError(400, "BadRequest", message)


def _ref_from_body(request: ApiRequest, body: bytes) -> Ref:
    try:
        name = get_text(msgspec.json.decode(body), "metadata", "name")
    except msgspec.DecodeError as error:
        message = f"the body of the request is not JSON: {error}"
        raise BadRequestError(400, "BadRequest", message) from None
    return Ref(request.served.kind, request.path.namespace, name)


def build_deletion(request: ApiRequest, name: str = "", namespace: str = "") -> requests.Write:
    """Return a deletion with the DeleteOptions of the query or the body.

    `name` and `namespace` select one object of a collection.

    Like `DeleteResource` and `DeleteCollection` in `pkg/endpoints/handlers/delete.go` of
    k8s.io/apiserver 0.36.4.
    """
    options = _delete_options(request)
    preconditions = get_mapping(options, "preconditions")
    propagation = get_text(options, "propagationPolicy") or request.query.get(
        "propagationPolicy", ""
    )
    grace_period = options.get("gracePeriodSeconds", request.query.get("gracePeriodSeconds"))
    is_dry_run = "All" in get_list(options, "dryRun") or "All" in request.query.get("dryRun", "")
    return requests.Write(
        verb=requests.Verb.DELETE,
        ref=Ref(
            request.served.kind, namespace or request.path.namespace, name or request.path.name
        ),
        dry_run=is_dry_run,
        uid=get_text(preconditions, "uid"),
        resource_version=get_text(preconditions, "resourceVersion"),
        propagation=Propagation(propagation)
        if propagation in [*Propagation]
        else _orphan_propagation(options),
        grace_period_seconds=int(str(grace_period)) if str(grace_period).isdigit() else None,
    )


def _delete_options(request: ApiRequest) -> dict[str, Json]:
    _check_depth(request.body)
    try:
        options = msgspec.json.decode(request.body) if request.body.strip() else {}
    except msgspec.DecodeError as error:
        raise BadRequestError(400, "BadRequest", str(error)) from None
    return options if isinstance(options, dict) else {}


def _orphan_propagation(options: dict[str, Json]) -> Propagation | None:
    return Propagation.ORPHAN if options.get("orphanDependents") is True else None


def watch_seconds(request: ApiRequest) -> int:
    """Return how many seconds a watch lasts at most."""
    seconds = request.query.get("timeoutSeconds", "")
    return int(seconds) if seconds.isdigit() and int(seconds) else DEFAULT_WATCH_SECONDS
