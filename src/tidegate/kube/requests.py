"""A call's request as HTTP: method, path, headers and body."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote, urlencode

import msgspec

from tidegate.model.moment import SECOND
from tidegate.model.objects import Json, Served
from tidegate.world import calls

JSON = "application/json"
METADATA_OBJECT = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
APPLY = "application/apply-patch+yaml"
PATCHES = {
    calls.PatchForm.JSON: "application/json-patch+json",
    calls.PatchForm.MERGE: "application/merge-patch+json",
    calls.PatchForm.STRATEGIC: "application/strategic-merge-patch+json",
}
METHODS = {
    calls.Verb.APPLY: "PATCH",
    calls.Verb.CREATE: "POST",
    calls.Verb.REPLACE: "PUT",
    calls.Verb.PATCH: "PATCH",
    calls.Verb.DELETE: "DELETE",
}

Query = tuple[tuple[str, str | int], ...]


class HttpRequest(NamedTuple):
    """What goes over the wire; path and query are encoded already."""

    method: str
    path: str
    accept: str = JSON
    content_type: str = ""
    body: bytes = b""


def get_request(request: calls.Get, served: Served) -> HttpRequest:
    accept = METADATA_OBJECT if request.view is calls.View.METADATA else JSON
    path = object_path(served, request.ref.namespace, request.ref.name)
    return HttpRequest("GET", path, accept)


def list_request(request: calls.List, served: Served) -> HttpRequest:
    query: Query = (("limit", request.limit), ("continue", request.resume))
    return _collection(request.selection, served, query, METADATA_LIST)


def watch_request(request: calls.Watch, served: Served, *, seconds: int) -> HttpRequest:
    query: Query = (
        ("watch", "1"),
        ("allowWatchBookmarks", "true"),
        ("timeoutSeconds", str(-(-request.lasting // SECOND) or seconds)),
        ("resourceVersion", request.since),
    )
    return _collection(request.selection, served, query, METADATA_OBJECT)


def logs_request(request: calls.Logs, served: Served) -> HttpRequest:
    query: Query = (
        ("container", request.container),
        ("tailLines", request.tail),
        ("previous", "true" if request.previous else ""),
    )
    path = object_path(served, request.ref.namespace, request.ref.name, "log")
    return HttpRequest("GET", _with_query(path, query), "*/*")


def write_request(write: calls.Write, served: Served) -> HttpRequest:
    name = "" if write.verb is calls.Verb.CREATE and not write.subresource else write.ref.name
    path = object_path(served, write.ref.namespace, name, write.subresource)
    if write.verb is calls.Verb.DELETE:
        return HttpRequest("DELETE", path, JSON, JSON, _delete_options(write))
    body = _with_preconditions(write) if write.uid or write.version else write.body
    target = _with_query(path, _writing(write))
    return HttpRequest(METHODS[write.verb], target, JSON, _content_type(write), body)


def object_path(served: Served, namespace: str, name: str, subresource: str = "") -> str:
    """Where an object, or all of its kind, is found."""
    path = _collection_path(served, namespace)
    return path + "".join("/" + quote(part, safe="") for part in (name, subresource) if part)


@lru_cache
def _collection_path(served: Served, namespace: str) -> str:
    kind = served.kind
    parts = ["apis", kind.group, kind.version] if kind.group else ["api", kind.version]
    if served.namespaced and namespace:
        parts += ["namespaces", namespace]
    return "/" + "/".join(quote(part, safe="") for part in (*parts, served.plural))


def _collection(
    selection: calls.Selection, served: Served, query: Query, metadata_form: str
) -> HttpRequest:
    accept = metadata_form if selection.view is calls.View.METADATA else JSON
    path = object_path(served, selection.namespace, "")
    selecting: Query = (("labelSelector", selection.labels), ("fieldSelector", selection.fields))
    return HttpRequest("GET", _with_query(path, selecting + query), accept)


def _writing(write: calls.Write) -> Query:
    return (
        ("fieldManager", write.manager),
        ("force", "true" if write.force else ""),
        ("dryRun", "All" if write.dry_run else ""),
        ("fieldValidation", "Strict" if write.strict else "Warn"),
    )


def _with_query(path: str, query: Query) -> str:
    said = _encoded(query)
    return f"{path}?{said}" if said else path


@lru_cache
def _encoded(query: Query) -> str:
    """What is not said is left out."""
    return urlencode([(key, value) for key, value in query if value])


def _content_type(write: calls.Write) -> str:
    if write.verb is calls.Verb.APPLY:
        return APPLY
    return PATCHES[write.form] if write.verb is calls.Verb.PATCH else JSON


def _delete_options(write: calls.Write) -> bytes:
    options: dict[str, Json] = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if preconditions := _preconditions(write):
        options["preconditions"] = preconditions
    if write.propagation:
        options["propagationPolicy"] = write.propagation.value
    if write.grace is not None:
        options["gracePeriodSeconds"] = write.grace
    if write.dry_run:
        options["dryRun"] = ["All"]
    return msgspec.json.encode(options)


def _preconditions(write: calls.Write) -> dict[str, Json]:
    wanted = (("uid", write.uid), ("resourceVersion", write.version))
    return {key: value for key, value in wanted if value}


def _with_preconditions(write: calls.Write) -> bytes:
    """Written into the object's own metadata, where the server compares them with what lives."""
    if write.verb is calls.Verb.PATCH and write.form is calls.PatchForm.JSON:
        operations = msgspec.json.decode(write.body, type=list[msgspec.Raw])
        claims = [
            {"op": "replace", "path": f"/metadata/{key}", "value": value}
            for key, value in _preconditions(write).items()
        ]
        return msgspec.json.encode([*claims, *operations])
    body = msgspec.json.decode(write.body, type=dict[str, msgspec.Raw])
    metadata = msgspec.json.decode(body.get("metadata", b"{}"), type=dict[str, msgspec.Raw])
    claims_made = {
        key: msgspec.Raw(msgspec.json.encode(value)) for key, value in _preconditions(write).items()
    }
    return msgspec.json.encode({**body, "metadata": {**metadata, **claims_made}})
