"""What comes of a request, as bytes: objects, lists, tables, events of a watch.

What form a client wants its objects in is said by its `Accept`: whole, as their metadata, or as a
table.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

import msgspec

from tidegate.apiserver.catalogue import Body, Serving
from tidegate.apiserver.printing.tables import partial, printers_of, table
from tidegate.apiserver.requests import HttpAsked
from tidegate.model.moment import Ms
from tidegate.model.objects import Kind, Live

BOOKMARK_END = "k8s.io/initial-events-end"
"""The annotation of the bookmark behind what was there when a watch began."""


class TellingForm(StrEnum):
    """How objects are told."""

    WHOLE = ""
    METADATA = "PartialObjectMetadata"
    TABLE = "Table"


class Wanted(NamedTuple):
    """The form that a client asks for; in a table, with whole objects or none beside the cells."""

    form: TellingForm
    included: str = "Metadata"


def wanted_of(accept: str, query: str) -> Wanted:
    """The first form of a list that is known here."""
    for one in accept.split(","):
        words = {
            key.strip(): value.strip()
            for key, _, value in (word.partition("=") for word in one.split(";"))
        }
        asked = words.get("as", "").removesuffix("List")
        if asked in {TellingForm.METADATA, TellingForm.TABLE} and words.get("v") == "v1":
            return Wanted(TellingForm(asked), query or "Metadata")
        if not asked:
            break
    return Wanted(TellingForm.WHOLE)


class Teller:
    """Tells objects of one kind in one form."""

    def __init__(self, asked: HttpAsked, wanted: Wanted, serving: Serving) -> None:
        self._kind = asked.served.kind
        self._wanted = wanted
        self._printers = printers_of(self._kind, serving)
        self._has_told = False

    def one(self, live: Live, now: Ms) -> bytes:
        """An object."""
        match self._wanted.form:
            case TellingForm.WHOLE:
                return live.body
            case TellingForm.METADATA:
                return msgspec.json.encode(partial(_decode(live)))
            case TellingForm.TABLE:
                return msgspec.json.encode(self._table((live,), now))

    def page(self, lives: tuple[Live, ...], version: str, resume: str, now: Ms) -> bytes:
        """A page of a list."""
        metadata: Body = {"resourceVersion": version}
        if resume:
            metadata["continue"] = resume
        if self._wanted.form is TellingForm.TABLE:
            return msgspec.json.encode({**self._table(lives, now), "metadata": metadata})
        head: Body = {"kind": f"{self._kind.name}List", "apiVersion": self._kind.api_version}
        items = [one.body for one in lives]
        if self._wanted.form is TellingForm.METADATA:
            head = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"}
            items = [msgspec.json.encode(partial(_decode(one))) for one in lives]
        raw = [*map(msgspec.Raw, items)]
        return msgspec.json.encode({**head, "metadata": metadata, "items": raw})

    def event(self, change: str, live: Live, now: Ms) -> bytes:
        """One line of a watch."""
        return _event(change, self.one(live, now))

    def bookmark(self, version: str, *, ends_beginning: bool = False) -> bytes:
        """How far a watch has come; in a table, that has no row."""
        metadata: Body = {"resourceVersion": version}
        if ends_beginning:
            metadata["annotations"] = {BOOKMARK_END: "true"}
        marked = _mark(self._kind, metadata)
        if self._wanted.form is TellingForm.TABLE:
            shown = table((), (), Ms(0), whole=False, heads=False)
            row: Body = {"cells": [], "object": partial(marked)}
            marked = {**shown, "metadata": {"resourceVersion": version}, "rows": [row]}
        elif self._wanted.form is TellingForm.METADATA:
            marked = partial(marked)
        return _event("BOOKMARK", msgspec.json.encode(marked))

    def _table(self, lives: Iterable[Live], now: Ms) -> Body:
        """The columns are told once in a watch."""
        bodies = [_decode(one) for one in lives]
        whole, heads = self._wanted.included == "Object", not self._has_told
        self._has_told = True
        return table(bodies, self._printers, now, whole=whole, heads=heads)


def _mark(kind: Kind, metadata: Body) -> Body:
    return {"kind": kind.name, "apiVersion": kind.api_version, "metadata": metadata}


def error_event(status: Body) -> bytes:
    return _event("ERROR", msgspec.json.encode(status))


def _event(change: str, body: bytes) -> bytes:
    return msgspec.json.encode({"type": change, "object": msgspec.Raw(body)}) + b"\n"


def _decode(live: Live) -> Body:
    body: Body = msgspec.json.decode(live.body)
    return body
