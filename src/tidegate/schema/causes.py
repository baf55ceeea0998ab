"""Validation errors of fields, in the wording of an API server.

The reasons and messages are those of the API server, because people search for them. Values are
formatted as Go does.

Like `ErrorBody`, `Required` and `NotSupported` in `pkg/util/validation/field/errors.go` of
k8s.io/apimachinery 0.36.4.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

from tidegate.documents.numbers import format_general
from tidegate.model.k8s.objects import Json
from tidegate.world.messages import Cause

NO_FIELD = "<nil>"
"""The field name that the server uses for a problem without a field."""
TYPE_INVALID = "FieldValueTypeInvalid"
"""Reason of a value whose type is not that of its field."""
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def required(field: str, detail: str = "") -> Cause:
    """Return the error for a missing value."""
    return Cause(
        field, "FieldValueRequired", f"Required value: {detail}" if detail else "Required value"
    )


def invalid(field: str, value: Json, detail: str) -> Cause:
    """Return the error for an invalid value."""
    return Cause(field, "FieldValueInvalid", f"Invalid value: {format_value(value)}: {detail}")


def type_invalid(field: str, value: Json, detail: str) -> Cause:
    """Return the error for a value of the wrong type."""
    return Cause(field, TYPE_INVALID, f"Invalid value: {format_value(value)}: {detail}")


def unsupported(field: str, value: Json, allowed: Iterable[str]) -> Cause:
    """Return the error for a value that is not among the allowed ones."""
    supported = ", ".join(quote(value_) for value_ in allowed)
    message = f"Unsupported value: {format_value(value)}: supported values: {supported}"
    return Cause(field, "FieldValueNotSupported", message)


def duplicate(field: str, value: Json) -> Cause:
    """Return the error for a repeated value."""
    return Cause(field, "FieldValueDuplicate", f"Duplicate value: {format_value(value)}")


def forbidden(field: str, detail: str) -> Cause:
    """Return the error for a field that must not be set."""
    return Cause(field, "FieldValueForbidden", f"Forbidden: {detail}")


def not_found(field: str, value: Json) -> Cause:
    """Return the error for a reference to a missing item."""
    return Cause(field, "FieldValueNotFound", f"Not found: {format_value(value)}")


def too_long(field: str, limit: int) -> Cause:
    """Return the error for a value that is too long."""
    unit = "byte" if limit == 1 else "bytes"
    return Cause(field, "FieldValueTooLong", f"Too long: may not be more than {limit} {unit}")


def too_many(field: str, count: int, limit: int) -> Cause:
    """Return the error for a list with too many items."""
    unit = "item" if limit == 1 else "items"
    message = f"Too many: {count}: must have at most {limit} {unit}"
    return Cause(field, "FieldValueTooMany", message)


def format_value(value: Json) -> str:
    """Return a value as it appears in a message."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return format_float(value)
        case str():
            return quote(value)
        case _:
            return format_json(value)


def quote(text: str) -> str:
    """Return a text quoted as Go does with `%q`."""
    return '"' + "".join(_escape(character) for character in text) + '"'


def format_float(value: float) -> str:
    """Return a float as Go prints it: `0.5`, `3`, `1e+06`."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    return format_general(repr(value))


def format_json(value: Json) -> str:
    """Return compact JSON as Go writes it: keys sorted, angle brackets escaped."""
    text = msgspec.json.encode(value, order="sorted").decode()
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _escape(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    return f"\\x{ord(character):02x}" if character.isascii() else f"\\u{ord(character):04x}"
