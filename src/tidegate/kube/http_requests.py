"""HTTP requests for the requests of a World: method, path, headers and body."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote, urlencode

import msgspec

from tidegate.model.k8s.objects import Json, ServedKind
from tidegate.model.times import SECOND
from tidegate.world import requests

JSON = "application/json"
METADATA_OBJECT = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
APPLY_PATCH = "application/apply-patch+yaml"
PATCH_CONTENT_TYPES = {
    requests.PatchType.JSON: "application/json-patch+json",
    requests.PatchType.MERGE: "application/merge-patch+json",
    requests.PatchType.STRATEGIC: "application/strategic-merge-patch+json",
}
METHODS = {
    requests.Verb.APPLY: "PATCH",
    requests.Verb.CREATE: "POST",
    requests.Verb.REPLACE: "PUT",
    requests.Verb.PATCH: "PATCH",
    requests.Verb.DELETE: "DELETE",
}
Query = tuple[tuple[str, str | int], ...]


class HttpRequest(NamedTuple):
    """An HTTP request. Path and query are already encoded."""

    method: str
    """The method."""
    path: str
    """Path and query."""
    accept: str = JSON
    """The `Accept` header."""
    content_type: str = ""
    """The `Content-Type` header; empty without a body."""
    body: bytes = b""
    """The body."""


def build_get(request: requests.Get, served: ServedKind) -> HttpRequest:
    """Return the HTTP request that reads one object."""
    accept = METADATA_OBJECT if request.view is requests.View.METADATA else JSON
    path = object_path(served, request.ref.namespace, request.ref.name)
    return HttpRequest("GET", path, accept)


def build_list(request: requests.List, served: ServedKind) -> HttpRequest:
    """Return the HTTP request for one page of a list."""
    query: Query = (("limit", request.limit), ("continue", request.continue_token))
    return _build_collection_request(request.selection, served, query, METADATA_LIST)


def build_watch(request: requests.Watch, served: ServedKind, *, seconds: int) -> HttpRequest:
    """Return the HTTP request of a watch that lasts this many seconds at most."""
    query: Query = (
        ("watch", "1"),
        ("allowWatchBookmarks", "true"),
        ("timeoutSeconds", str(-(-request.timeout // SECOND) or seconds)),
        ("resourceVersion", request.resource_version),
    )
    return _build_collection_request(request.selection, served, query, METADATA_OBJECT)


def build_logs(request: requests.Logs, served: ServedKind) -> HttpRequest:
    """Return the HTTP request for logs."""
    query: Query = (
        ("container", request.container),
        ("tailLines", request.tail),
        ("previous", "true" if request.previous else ""),
    )
    path = object_path(served, request.ref.namespace, request.ref.name, "log")
    return HttpRequest("GET", _with_query(path, query), "*/*")


def build_write(write: requests.Write, served: ServedKind) -> HttpRequest:
    """Return the HTTP request of a write."""
    name = "" if write.verb is requests.Verb.CREATE and not write.subresource else write.ref.name
    path = object_path(served, write.ref.namespace, name, write.subresource)
    if write.verb is requests.Verb.DELETE:
        return HttpRequest("DELETE", path, JSON, JSON, _delete_options(write))
    body = _with_preconditions(write) if write.uid or write.resource_version else write.body
    target = _with_query(path, _write_query(write))
    return HttpRequest(METHODS[write.verb], target, JSON, _content_type(write), body)


def object_path(served: ServedKind, namespace: str, name: str, subresource: str = "") -> str:
    """Return the path of an object, or of all objects of its kind."""
    path = _collection_path(served, namespace)
    return path + "".join("/" + quote(part, safe="") for part in (name, subresource) if part)


@lru_cache
def _collection_path(served: ServedKind, namespace: str) -> str:
    kind = served.kind
    parts = ["apis", kind.group, kind.version] if kind.group else ["api", kind.version]
    if served.namespaced and namespace:
        parts += ["namespaces", namespace]
    return "/" + "/".join(quote(part, safe="") for part in (*parts, served.plural))


def _build_collection_request(
    selection: requests.Selection, served: ServedKind, query: Query, metadata_type: str
) -> HttpRequest:
    accept = metadata_type if selection.view is requests.View.METADATA else JSON
    path = object_path(served, selection.namespace, "")
    selectors: Query = (
        ("labelSelector", selection.label_selector),
        ("fieldSelector", selection.field_selector),
    )
    return HttpRequest("GET", _with_query(path, selectors + query), accept)


def _write_query(write: requests.Write) -> Query:
    return (
        ("fieldManager", write.manager),
        ("force", "true" if write.force else ""),
        ("dryRun", "All" if write.dry_run else ""),
        ("fieldValidation", "Strict" if write.strict else "Warn"),
    )


def _with_query(path: str, query: Query) -> str:
    encoded = _encode_query(query)
    return f"{path}?{encoded}" if encoded else path


@lru_cache
def _encode_query(query: Query) -> str:
    """Encode a query, without empty values."""
    return urlencode([(key, value) for key, value in query if value])


def _content_type(write: requests.Write) -> str:
    if write.verb is requests.Verb.APPLY:
        return APPLY_PATCH
    return PATCH_CONTENT_TYPES[write.patch_type] if write.verb is requests.Verb.PATCH else JSON


def _delete_options(write: requests.Write) -> bytes:
    options: dict[str, Json] = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if preconditions := _preconditions(write):
        options["preconditions"] = preconditions
    if write.propagation:
        options["propagationPolicy"] = write.propagation.value
    if write.grace_period_seconds is not None:
        options["gracePeriodSeconds"] = write.grace_period_seconds
    if write.dry_run:
        options["dryRun"] = ["All"]
    return msgspec.json.encode(options)


def _preconditions(write: requests.Write) -> dict[str, Json]:
    pairs = (("uid", write.uid), ("resourceVersion", write.resource_version))
    return {key: value for key, value in pairs if value}


def _with_preconditions(write: requests.Write) -> bytes:
    """Return the body with the preconditions in its metadata, where the server compares them."""
    if write.verb is requests.Verb.PATCH and write.patch_type is requests.PatchType.JSON:
        operations = msgspec.json.decode(write.body, type=list[msgspec.Raw])
        precondition_patches = [
            {"op": "replace", "path": f"/metadata/{key}", "value": value}
            for key, value in _preconditions(write).items()
        ]
        return msgspec.json.encode([*precondition_patches, *operations])
    body = msgspec.json.decode(write.body, type=dict[str, msgspec.Raw])
    metadata = msgspec.json.decode(body.get("metadata", b"{}"), type=dict[str, msgspec.Raw])
    precondition_fields = {
        key: msgspec.Raw(msgspec.json.encode(value)) for key, value in _preconditions(write).items()
    }
    return msgspec.json.encode({**body, "metadata": {**metadata, **precondition_fields}})
