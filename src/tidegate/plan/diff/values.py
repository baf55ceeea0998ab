"""Equality of values as a server sees it, and their text form.

A server normalizes quantities, merges `stringData` of a Secret into `data`, and omits empty values.
"""

from __future__ import annotations

import base64

import msgspec

from tidegate.errors import sanitize
from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.k8s.quantity import to_quantity
from tidegate.plan.diff.owned_fields import Scalar


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


MAX_LENGTH = 80
CONTEXT_LENGTH = 20
"""Number of characters of two long strings that are shown before they differ."""
QUANTITY_MAPS = word_set(
    "capacity default defaultRequest hard limits max maxLimitRequestRatio min overhead "
    "podFixed requests"
)
QUANTITIES = word_set("averageValue capacity divisor maximumVolumeSize sizeLimit tolerance")
BYTES = frozenset(["caBundle", "request"])
BYTES_MAPS = frozenset(["binaryData"])


def is_same_scalar(desired: Json, live: Json, *, name: str, parent: str) -> bool:
    """Return whether a field of a built-in kind has the desired value."""
    if is_equal(desired, live):
        return True
    if name in QUANTITIES or parent in QUANTITY_MAPS or (name, parent) == ("value", "target"):
        quantity = to_quantity(desired)
        return quantity is not None and quantity == to_quantity(live)
    if isinstance(desired, str) and (name in BYTES or parent in BYTES_MAPS):
        return "".join(desired.split()) == live
    return False


def is_equal(desired: Json, live: Json) -> bool:
    """Return whether two values are equal as JSON: 1 and 1.0 are, 1 and true are not."""
    return desired == live and isinstance(desired, bool) == isinstance(live, bool)


def is_zero(value: Json) -> bool:
    """Return whether a value is null, false, 0, empty, or a mapping of such values."""
    if isinstance(value, dict):
        return all(map(is_zero, value.values()))
    return not value


def normalize_secret(desired: JsonObject) -> JsonObject:
    """Return a Secret as servers store it: `stringData` merged into `data`, without line breaks.

    Values that no server can decode stay unchanged, and are rejected by the server.
    """
    values, string_data = desired.get("data"), desired.get("stringData")
    if not (values or string_data) or not (_is_text_map(values) and _is_text_map(string_data)):
        return desired
    data: JsonObject = {
        name: _without_line_breaks(value) for name, value in get_mapping(desired, "data").items()
    }
    for name, value in get_mapping(desired, "stringData").items():
        data[name] = base64.b64encode(str(value or "").encode()).decode()
    other_fields = {name: value for name, value in desired.items() if name != "stringData"}
    return {**other_fields, "data": data}


def _is_text_map(value: Json) -> bool:
    """Return whether a value is a map of strings. A server reads null as an empty map or string."""
    if not isinstance(value, dict):
        return value is None
    return all(entry is None or isinstance(entry, str) for entry in value.values())


def _without_line_breaks(value: Json) -> Json:
    """Return base64 text without line breaks, which are all that a server ignores in it."""
    return value.replace("\r", "").replace("\n", "") if isinstance(value, str) else value


def format_pair(before: Json, after: Json) -> tuple[str, str]:
    """Return two values in short form; two long strings are shown where they differ."""
    old, new = _format_value(before), _format_value(after)
    if len(old) > MAX_LENGTH and len(new) > MAX_LENGTH:
        start = _first_difference(old, new) - CONTEXT_LENGTH
        if start > 0:
            old, new = "…" + old[start:], "…" + new[start:]
    return _shorten(old), _shorten(new)


def _first_difference(first: str, second: str) -> int:
    """Return the index at which two strings differ."""
    pairs = enumerate(zip(first, second, strict=False))
    return next(
        (index for index, (first_char, second_char) in pairs if first_char != second_char),
        min(len(first), len(second)),
    )


def format_scalar(value: Scalar) -> str:
    return _shorten(_format_value(value))


def _format_value(value: Json) -> str:
    match value:
        case None:
            return ""
        case str():
            return value or '""'
        case _:
            return msgspec.json.encode(value).decode()


def _shorten(text: str) -> str:
    line = sanitize(text[: 4 * MAX_LENGTH])
    return line if len(line) <= MAX_LENGTH else line[: MAX_LENGTH - 1] + "…"
