"""What is wrong with a field, in an API server's words.

The reasons and the form of the messages are Kubernetes' own, since people search for them. Values
are shown as Go shows them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal

import msgspec

from tidegate.model.k8s.objects import Json
from tidegate.world.messages import Cause

NOWHERE = "<nil>"
"""How the server names the field of a problem that it cannot place."""
TYPE_INVALID = "FieldValueTypeInvalid"
"""Reason of a value whose type is not that of its field."""
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
LEAST_POWER, GREATEST_POWER = -4, 6
"""Beyond these powers of ten, Go writes floats with an exponent."""


def required(field: str, detail: str = "") -> Cause:
    return Cause(
        field, "FieldValueRequired", f"Required value: {detail}" if detail else "Required value"
    )


def invalid(field: str, value: Json, detail: str) -> Cause:
    return Cause(field, "FieldValueInvalid", f"Invalid value: {shown(value)}: {detail}")


def type_invalid(field: str, value: Json, detail: str) -> Cause:
    return Cause(field, TYPE_INVALID, f"Invalid value: {shown(value)}: {detail}")


def unsupported(field: str, value: Json, allowed: Iterable[str]) -> Cause:
    listed = ", ".join(quoted(each) for each in allowed)
    message = f"Unsupported value: {shown(value)}: supported values: {listed}"
    return Cause(field, "FieldValueNotSupported", message)


def duplicate(field: str, value: Json) -> Cause:
    return Cause(field, "FieldValueDuplicate", f"Duplicate value: {shown(value)}")


def forbidden(field: str, detail: str) -> Cause:
    return Cause(field, "FieldValueForbidden", f"Forbidden: {detail}")


def not_found(field: str, value: Json) -> Cause:
    return Cause(field, "FieldValueNotFound", f"Not found: {shown(value)}")


def too_long(field: str, limit: int) -> Cause:
    unit = "byte" if limit == 1 else "bytes"
    return Cause(field, "FieldValueTooLong", f"Too long: may not be more than {limit} {unit}")


def too_many(field: str, count: int, limit: int) -> Cause:
    unit = "item" if limit == 1 else "items"
    message = f"Too many: {count}: must have at most {limit} {unit}"
    return Cause(field, "FieldValueTooMany", message)


def shown(value: Json) -> str:
    """A value inside a message."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return number(value)
        case str():
            return quoted(value)
        case _:
            return as_json(value)


def quoted(text: str) -> str:
    return '"' + "".join(_escaped(mark) for mark in text) + '"'


def number(value: float) -> str:
    """A float as Go prints it: `0.5`, `3`, `1e+06`."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    exact = Decimal(repr(value)).normalize()
    power = exact.adjusted()
    if LEAST_POWER <= power < GREATEST_POWER:
        return f"{exact:f}"
    mantissa = f"{exact.scaleb(-power).normalize():f}"
    return f"{mantissa}e{power:+03d}"


def as_json(value: Json) -> str:
    """Compact, keys sorted, angle brackets escaped: as Go writes JSON."""
    text = msgspec.json.encode(value, order="sorted").decode()
    for mark in "<>&":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


def _escaped(mark: str) -> str:
    if mark in _ESCAPES:
        return _ESCAPES[mark]
    if mark.isprintable():
        return mark
    return f"\\x{ord(mark):02x}" if mark.isascii() else f"\\u{ord(mark):04x}"
