"""An HTTP request as a request of the door: its path, its query, its body.

The other way round is `kube.requests`; the promises that every world makes hold the two together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from tidegate.documents import read
from tidegate.errors import DocumentError
from tidegate.model.objects import Json, Propagation, Ref, Served
from tidegate.model.reading import listed, mapping, text
from tidegate.world import calls

NAMESPACES = "namespaces"
TRUE = frozenset({"1", "true", "True", "t"})
APPLY = ("application/apply-patch+yaml", "application/apply-patch+cbor")
PATCHES = {
    "application/json-patch+json": calls.PatchForm.JSON,
    "application/merge-patch+json": calls.PatchForm.MERGE,
    "application/strategic-merge-patch+json": calls.PatchForm.STRATEGIC,
}
YAML = ("application/yaml", "application/x-yaml", "text/yaml")
UNKNOWN_MANAGER = "unknown"
STRICT = "Strict"
LONG = 1800
"""Seconds of a watch of which nobody says how long it is to last."""

Query = Mapping[str, str]


class PathSpot(NamedTuple):
    """What a path speaks of: a group, its version, a plural, and what of it."""

    group: str
    version: str
    plural: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""


class HttpAsked(msgspec.Struct, frozen=True):
    """What came over the wire: an object or all of its kind, and what is to be done."""

    served: Served
    spot: PathSpot
    query: Query
    body: bytes = b""
    content_type: str = ""
    agent: str = ""

    @property
    def ref(self) -> Ref:
        return Ref(self.served.kind, self.spot.namespace, self.spot.name)

    def is_said(self, name: str) -> bool:
        return self.query.get(name, "") in TRUE


class BadRequestError(Exception):
    """A request that nobody can make sense of, and why."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status, self.reason = status, reason


def spot_of(path: str) -> PathSpot | None:
    """What a path below `/api` or `/apis` speaks of; None for other paths."""
    match path.strip("/").split("/"):
        case ["api", version, *rest]:
            group = ""
        case ["apis", group, version, *rest]:
            pass
        case _:
            return None
    match rest:
        case [] | [""]:
            return PathSpot(group, version)
        case ["namespaces", name, ("status" | "finalize") as through] if not group:
            return PathSpot(group, version, NAMESPACES, "", name, through)
        case ["namespaces", namespace, plural, *last]:
            return PathSpot(group, version, plural, namespace, *last[:2])
        case [plural, *last]:
            return PathSpot(group, version, plural, "", *last[:2])
        case _:
            return None


def selection_of(asked: HttpAsked) -> calls.Selection:
    fields = asked.query.get("fieldSelector", "")
    if asked.spot.name:
        fields = ",".join(filter(None, (fields, f"metadata.name={asked.spot.name}")))
    return calls.Selection(
        asked.served.kind, asked.spot.namespace, asked.query.get("labelSelector", ""), fields
    )


def list_of(asked: HttpAsked) -> calls.List:
    limit = asked.query.get("limit", "")
    return calls.List(
        selection_of(asked),
        int(limit) if limit.isdigit() else 0,
        asked.query.get("continue", ""),
    )


def logs_of(asked: HttpAsked) -> calls.Logs:
    tail = asked.query.get("tailLines", "")
    return calls.Logs(
        ref=asked.ref,
        container=asked.query.get("container", ""),
        tail=int(tail) if tail.isdigit() else 0,
        previous=asked.is_said("previous"),
    )


def write_of(method: str, asked: HttpAsked) -> calls.Write:
    """The change that a method asks for."""
    match method:
        case "DELETE":
            return deletion_of(asked)
        case "POST":
            verb, form = calls.Verb.CREATE, calls.PatchForm.MERGE
        case "PUT":
            verb, form = calls.Verb.REPLACE, calls.PatchForm.MERGE
        case _:
            verb, form = _patching(asked.content_type)
    body = _json(asked)
    return calls.Write(
        verb=verb,
        ref=asked.ref if verb is not calls.Verb.CREATE or asked.spot.name else _named(asked, body),
        body=body,
        form=form,
        subresource=asked.spot.subresource,
        manager=asked.query.get("fieldManager") or asked.agent or UNKNOWN_MANAGER,
        force=asked.is_said("force"),
        dry_run="All" in asked.query.get("dryRun", ""),
        strict=asked.query.get("fieldValidation") == STRICT,
    )


def _patching(content_type: str) -> tuple[calls.Verb, calls.PatchForm]:
    if content_type in APPLY:
        return calls.Verb.APPLY, calls.PatchForm.MERGE
    if content_type in PATCHES:
        return calls.Verb.PATCH, PATCHES[content_type]
    told = f"the body of the request was in an unknown format - {content_type or 'none'}"
    raise BadRequestError(415, "UnsupportedMediaType", told)


def _json(asked: HttpAsked) -> bytes:
    """The body as JSON; applies and manifests may be YAML, of which JSON is a part."""
    if "protobuf" in asked.content_type:
        told = (
            "this simulated cluster reads JSON and YAML, and no protobuf: apply a manifest instead"
        )
        raise BadRequestError(415, "UnsupportedMediaType", told)
    is_yaml = asked.content_type in (*APPLY, *YAML)
    if not is_yaml or asked.body.lstrip()[:1] == b"{":
        return asked.body
    try:
        documents = read(asked.body, "body")
    except DocumentError as error:
        raise BadRequestError(400, "BadRequest", str(error)) from None
    return msgspec.json.encode(documents[0].body) if documents else b"{}"


def _named(asked: HttpAsked, body: bytes) -> Ref:
    try:
        name = text(msgspec.json.decode(body), "metadata", "name")
    except msgspec.DecodeError as error:
        told = f"the body of the request is not JSON: {error}"
        raise BadRequestError(400, "BadRequest", told) from None
    return Ref(asked.served.kind, asked.spot.namespace, name)


def deletion_of(asked: HttpAsked, name: str = "", namespace: str = "") -> calls.Write:
    """A deletion, as the query or the body's DeleteOptions say; of one object of many by name."""
    options = _options(asked)
    conditions = mapping(options, "preconditions")
    wanted = text(options, "propagationPolicy") or asked.query.get("propagationPolicy", "")
    said = options.get("gracePeriodSeconds", asked.query.get("gracePeriodSeconds"))
    dry = "All" in listed(options, "dryRun") or "All" in asked.query.get("dryRun", "")
    return calls.Write(
        verb=calls.Verb.DELETE,
        ref=Ref(asked.served.kind, namespace or asked.spot.namespace, name or asked.spot.name),
        dry_run=dry,
        uid=text(conditions, "uid"),
        version=text(conditions, "resourceVersion"),
        propagation=Propagation(wanted) if wanted in [*Propagation] else _orphans(options),
        grace=int(str(said)) if str(said).isdigit() else None,
    )


def _options(asked: HttpAsked) -> dict[str, Json]:
    try:
        options = msgspec.json.decode(asked.body) if asked.body.strip() else {}
    except msgspec.DecodeError as error:
        raise BadRequestError(400, "BadRequest", str(error)) from None
    return options if isinstance(options, dict) else {}


def _orphans(options: dict[str, Json]) -> Propagation | None:
    return Propagation.ORPHAN if options.get("orphanDependents") is True else None


def lasting_of(asked: HttpAsked) -> int:
    """Seconds that a watch is to last, unless something ends it before."""
    seconds = asked.query.get("timeoutSeconds", "")
    return int(seconds) if seconds.isdigit() and int(seconds) else LONG
