"""Fingerprint of the fields that we own in a live object: it changes if one of them is changed.

The fingerprint is a digest of the set of our fields, and of their values in the order of that set.
"""

from __future__ import annotations

import hashlib

import msgspec

from tidegate.model.k8s.json_fields import get_text
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.plan.diff.owned_fields import (
    Fields,
    entry_fields,
    fields_below,
    is_applied_by,
    is_scalar,
    key_values,
    managed_entries,
    parse_items,
)

DIGEST_LENGTH = 32
_encode = msgspec.json.Encoder().encode


def is_secret(body: JsonObject) -> bool:
    return body.get("kind") == "Secret" and body.get("apiVersion") == "v1"


def compute_fingerprint(live: JsonObject, manager: str) -> str:
    """Return a fingerprint that changes with our fields, with their ownership, or with the object.

    That of a Secret does not depend on its values, but changes with every write.
    """
    uid = get_text(live, "metadata", "uid")
    if is_secret(live):
        return digest_parts(uid, get_text(live, "metadata", "resourceVersion"))
    our_fields: Fields = {}
    other_fields: list[Fields] = []
    for entry in managed_entries(live):
        fields = entry_fields(entry)
        if is_applied_by(entry, manager):
            our_fields = fields
        else:
            other_fields.append(fields)
    values: list[Json] = []
    _collect_values(live, our_fields, other_fields, values)
    return digest_parts(uid, our_fields, values)


def content_digest(desired: JsonObject) -> str:
    """Return a digest of the content, or "" for a Secret, whose values could be guessed from it."""
    return "" if is_secret(desired) else digest_parts(desired)


def digest_parts(*parts: object) -> str:
    return hashlib.sha256(_encode(parts)).hexdigest()[:DIGEST_LENGTH]


def _collect_values(
    value: JsonObject, fields: Fields, other_fields: list[Fields], values: list[Json]
) -> None:
    """Append the values of these fields to a flat list; the fields themselves define the
    positions.
    """
    for element, inner in fields.items():
        live_value = value.get(element[2:])
        if not inner and not other_fields:
            values.append(live_value)
        elif not inner:
            # A field that we applied empty may contain fields of other managers.
            values.append(None if any(fields_below(other_fields, element)) else live_value)
        elif type(live_value) is dict:
            _collect_values(
                live_value,
                inner,
                fields_below(other_fields, element) if other_fields else other_fields,
                values,
            )
        elif type(live_value) is list:
            _collect_item_values(
                live_value,
                inner,
                fields_below(other_fields, element) if other_fields else other_fields,
                values,
            )
        else:
            values.append(live_value)


def _collect_item_values(
    value: list[Json], fields: Fields, other_fields: list[Fields], values: list[Json]
) -> None:
    names, keyed, set_values, indexes = parse_items(fields)
    if not keyed:
        values += [
            item
            for index, item in enumerate(value)
            if index in indexes or (is_scalar(item) and item in set_values)
        ]
        return
    other_items = [parse_items(other).keyed for other in other_fields]
    for item in value:
        if type(item) is dict:
            key = key_values(item, names)
            inner = keyed.get(key)
            other_item_fields = (
                [keyed_fields[key] for keyed_fields in other_items if key in keyed_fields]
                if other_fields
                else other_fields
            )
            if inner:
                values += key
                _collect_values(item, inner, other_item_fields, values)
            elif inner is not None:
                values.append(item)
