"""Response bodies: objects, lists, tables and watch events.

The `Accept` header of a client selects the form of objects: complete, metadata only, or a table.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

import msgspec

from tidegate.apiserver.discovery import ServedKinds
from tidegate.apiserver.printers.tables import build_table, columns_for_kind, partial_metadata
from tidegate.apiserver.requests import ApiRequest
from tidegate.model.k8s.objects import JsonObject, Kind, LiveObject
from tidegate.model.times import Ms

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
"""Annotation of the bookmark after the initial objects of a watch.

Like `InitialEventsAnnotationKey` in `pkg/apis/meta/v1/types.go` of k8s.io/apimachinery 0.36.4.
"""


class ObjectForm(StrEnum):
    """Form in which objects are returned."""

    OBJECT = ""
    METADATA = "PartialObjectMetadata"
    TABLE = "Table"


class OutputFormat(NamedTuple):
    """The form that a client requests."""

    form: ObjectForm
    """The form of objects."""
    include_object: str = "Metadata"
    """What a table contains besides the cells: `Object`, `Metadata` or `None`."""


def parse_accept(accept: str, include_object: str) -> OutputFormat:
    """Return the first supported form of an `Accept` header.

    Like `NegotiateMediaTypeOptions` in `pkg/endpoints/handlers/negotiation/negotiate.go` of
    k8s.io/apiserver 0.36.4.
    """
    for media_type in accept.split(","):
        parameters = {
            key.strip(): value.strip()
            for key, _, value in (parameter.partition("=") for parameter in media_type.split(";"))
        }
        form_name = parameters.get("as", "").removesuffix("List")
        if form_name in {ObjectForm.METADATA, ObjectForm.TABLE} and parameters.get("v") == "v1":
            return OutputFormat(ObjectForm(form_name), include_object or "Metadata")
        if not form_name:
            break
    return OutputFormat(ObjectForm.OBJECT)


class ObjectEncoder:
    """Encoder for objects of one kind in one form."""

    def __init__(
        self, request: ApiRequest, output_format: OutputFormat, served_kinds: ServedKinds
    ) -> None:
        self._kind = request.served.kind
        self._format = output_format
        self._columns = columns_for_kind(self._kind, served_kinds)
        self._has_sent_columns = False

    def encode(self, live: LiveObject, now: Ms) -> bytes:
        """Encode an object."""
        match self._format.form:
            case ObjectForm.OBJECT:
                return live.body
            case ObjectForm.METADATA:
                return msgspec.json.encode(partial_metadata(_decode(live)))
            case ObjectForm.TABLE:
                return msgspec.json.encode(self._build_table((live,), now))

    def encode_page(
        self, objects: tuple[LiveObject, ...], resource_version: str, continue_token: str, now: Ms
    ) -> bytes:
        """Encode a page of a list."""
        metadata: JsonObject = {"resourceVersion": resource_version}
        if continue_token:
            metadata["continue"] = continue_token
        if self._format.form is ObjectForm.TABLE:
            return msgspec.json.encode({**self._build_table(objects, now), "metadata": metadata})
        header: JsonObject = {
            "kind": f"{self._kind.name}List",
            "apiVersion": self._kind.api_version,
        }
        items = [live.body for live in objects]
        if self._format.form is ObjectForm.METADATA:
            header = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"}
            items = [msgspec.json.encode(partial_metadata(_decode(live))) for live in objects]
        raw = [*map(msgspec.Raw, items)]
        return msgspec.json.encode({**header, "metadata": metadata, "items": raw})

    def encode_event(self, event_type: str, live: LiveObject, now: Ms) -> bytes:
        """Encode an event of a watch, as one line.

        Like `HandleHTTP` in `pkg/endpoints/handlers/watch.go` of k8s.io/apiserver 0.36.4.
        """
        return _encode_event(event_type, self.encode(live, now))

    def encode_bookmark(self, resource_version: str, *, ends_initial_events: bool = False) -> bytes:
        """Encode a bookmark of a watch. In a table, it is a row without cells."""
        metadata: JsonObject = {"resourceVersion": resource_version}
        if ends_initial_events:
            metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
        body = _bookmark_object(self._kind, metadata)
        if self._format.form is ObjectForm.TABLE:
            empty_table = build_table((), (), Ms(0), include_objects=False, include_columns=False)
            row: JsonObject = {"cells": [], "object": partial_metadata(body)}
            body = {**empty_table, "metadata": {"resourceVersion": resource_version}, "rows": [row]}
        elif self._format.form is ObjectForm.METADATA:
            body = partial_metadata(body)
        return _encode_event("BOOKMARK", msgspec.json.encode(body))

    def _build_table(self, objects: Iterable[LiveObject], now: Ms) -> JsonObject:
        """Build a table. In a watch, only the first one has the column definitions."""
        bodies = [_decode(live) for live in objects]
        include_objects, include_columns = (
            self._format.include_object == "Object",
            not self._has_sent_columns,
        )
        self._has_sent_columns = True
        return build_table(
            bodies,
            self._columns,
            now,
            include_objects=include_objects,
            include_columns=include_columns,
        )


def _bookmark_object(kind: Kind, metadata: JsonObject) -> JsonObject:
    return {"kind": kind.name, "apiVersion": kind.api_version, "metadata": metadata}


def encode_error_event(status: JsonObject) -> bytes:
    """Encode an error as the last event of a watch."""
    return _encode_event("ERROR", msgspec.json.encode(status))


def _encode_event(event_type: str, body: bytes) -> bytes:
    return msgspec.json.encode({"type": event_type, "object": msgspec.Raw(body)}) + b"\n"


def _decode(live: LiveObject) -> JsonObject:
    body: JsonObject = msgspec.json.decode(live.body)
    return body
