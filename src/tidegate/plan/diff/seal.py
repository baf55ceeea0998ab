"""A seal on what we own of a live object: while it is unbroken, nobody touched our fields.

It is a digest of the set of our fields and of their values, in the order of that set.
"""

from __future__ import annotations

import hashlib

import msgspec

from tidegate.model.objects import Json
from tidegate.model.reading import text
from tidegate.plan.diff.owned import (
    Body,
    Fields,
    below,
    entries_of,
    fields_in,
    is_entry_of,
    is_scalar,
    key_values,
    read_items,
)

SIZE = 32
_encode = msgspec.json.Encoder().encode


def is_secret(body: Body) -> bool:
    return body.get("kind") == "Secret" and body.get("apiVersion") == "v1"


def seal(live: Body, manager: str) -> str:
    """Changes when a field of ours changes, when what is ours does, or with another object.

    A Secret's says nothing of its values: it changes with every write to the object.
    """
    uid = text(live, "metadata", "uid")
    if is_secret(live):
        return digest_parts(uid, text(live, "metadata", "resourceVersion"))
    mine: Fields = {}
    others: list[Fields] = []
    for entry in entries_of(live):
        fields = fields_in(entry)
        if is_entry_of(entry, manager):
            mine = fields
        else:
            others.append(fields)
    values: list[Json] = []
    _gather(live, mine, others, values)
    return digest_parts(uid, mine, values)


def digest_of(wanted: Body) -> str:
    """A name for exactly this content; none for a Secret, whose values could be guessed from it."""
    return "" if is_secret(wanted) else digest_parts(wanted)


def digest_parts(*parts: object) -> str:
    return hashlib.sha256(_encode(parts)).hexdigest()[:SIZE]


def _gather(value: Body, fields: Fields, others: list[Fields], values: list[Json]) -> None:
    """The values of these fields; flat, since the fields themselves tell where they stand."""
    for element, inner in fields.items():
        there = value.get(element[2:])
        if not inner and not others:
            values.append(there)
        elif not inner:
            # What we applied empty may hold what is theirs.
            values.append(None if any(below(others, element)) else there)
        elif type(there) is dict:
            _gather(there, inner, below(others, element) if others else others, values)
        elif type(there) is list:
            _gather_items(there, inner, below(others, element) if others else others, values)
        else:
            values.append(there)


def _gather_items(
    value: list[Json], fields: Fields, others: list[Fields], values: list[Json]
) -> None:
    names, keyed, single, places = read_items(fields)
    if not keyed:
        values += [
            item
            for place, item in enumerate(value)
            if place in places or (is_scalar(item) and item in single)
        ]
        return
    elsewhere = [read_items(other).keyed for other in others]
    for item in value:
        if type(item) is dict:
            key = key_values(item, names)
            inner = keyed.get(key)
            theirs = [one[key] for one in elsewhere if key in one] if others else others
            if inner:
                values += key
                _gather(item, inner, theirs, values)
            elif inner is not None:
                values.append(item)
