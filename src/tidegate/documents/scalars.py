"""YAML scalars as Kubernetes reads them.

YAML 1.1 keywords (`on`, `y`, `~`) count; dates, times of day and scalars with an unknown tag stay
strings. All rules were verified with kubectl; its answers are in tests/data/yaml.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from datetime import datetime
from typing import TypeAlias

from yaml.events import ScalarEvent

from tidegate.documents import numbers
from tidegate.model.text.lazy_regex import lazy_regex

Scalar: TypeAlias = str | int | float | bool | None
_TAG_PREFIX = "tag:yaml.org,2002:"
_STRING = _TAG_PREFIX + "str"
_BINARY = _TAG_PREFIX + "binary"
_MERGE = _TAG_PREFIX + "merge"
_KEYWORDS: dict[str, Scalar] = {
    **dict.fromkeys(
        ("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True
    ),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF"), False),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
}
_NUMERIC_STARTS = frozenset("+-.0123456789")
_NON_STRING_STARTS = _NUMERIC_STARTS | {word[:1] for word in _KEYWORDS}
_DATE = r"(?P<date>[0-9]{4}-[0-9]{1,2}-[0-9]{1,2})"
_TIME = r"(?P<time>[0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2})(?:[.,][0-9]+)?"
_TIMESTAMP = lazy_regex(rf"{_DATE}(?:[Tt]{_TIME}(?:Z|[-+][0-9]{{2}}:[0-9]{{2}})|)")
_TIMESTAMP_WITHOUT_ZONE = lazy_regex(rf"{_DATE} {_TIME}")


class ScalarError(ValueError):
    """A scalar that Kubernetes rejects. The caller adds the location."""

    def __init__(self, code: str, problem: str, hint: str) -> None:
        super().__init__(problem)
        self.code = code
        self.problem = problem
        self.hint = hint


def read_scalar(event: ScalarEvent) -> Scalar:
    """Return the JSON value of a scalar. Raises ScalarError."""
    if event.tag is None:
        text = event.value
        if not event.implicit[0] or text[:1] not in _NON_STRING_STARTS:
            return text
        value = resolve(text)
    else:
        value = _read_tagged(event.tag, event.value)
    if value.__class__ is int or value.__class__ is float:
        if not math.isfinite(value):
            problem = "JSON has no infinity and no not-a-number, so Kubernetes rejects the value"
            raise ScalarError("documents.number", problem, "put the value in quotes")
        return numbers.to_json_number(value)
    return value


def read_key(event: ScalarEvent) -> str:
    """Return the JSON key of a scalar: numbers and booleans become text. Raises ScalarError.

    Like `convertToJSONableObject` in `yaml.go` of sigs.k8s.io/yaml 1.6.0.
    """
    text = event.value
    if event.tag is None and (not event.implicit[0] or text[:1] not in _NON_STRING_STARTS):
        return text
    value = resolve(text) if event.tag is None else _read_tagged(event.tag, text)
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    key = None if value is None else numbers.format_key(value)
    if key is None:
        noun = "`null`" if value is None else "a number of 2^63 or more"
        raise ScalarError("documents.key", f"{noun} cannot be a key", "put the key in quotes")
    return key


def is_merge(event: object) -> bool:
    """Return whether a key is the merge key `<<`, which must be unquoted."""
    if not isinstance(event, ScalarEvent) or event.value != "<<":
        return False
    return event.tag == _MERGE or (event.tag is None and event.implicit[0])


def resolve(text: str) -> Scalar:
    """Resolve a plain scalar to a YAML keyword, a number as Go holds it, or a string.

    Like `resolve` in `resolve.go` of go.yaml.in/yaml 2.4.3.
    """
    if text[:1] not in _NON_STRING_STARTS:
        return text
    if text in _KEYWORDS:
        return _KEYWORDS[text]
    if text[0] in _NUMERIC_STARTS:
        number = numbers.parse_number(text)
        return text if number is None else number
    return text


def _read_tagged(tag: str, text: str) -> Scalar:
    if tag == _BINARY:
        return _decode_binary(text)
    name = tag.removeprefix(_TAG_PREFIX)
    if tag == _STRING or name not in ("null", "bool", "int", "float", "timestamp"):
        return text
    if name == "timestamp":
        return text if _is_timestamp(text) else _reject_tag(name)
    value = resolve(text)
    if name == "float" and type(value) is int and value < 2**63:
        return float(value)
    expected = {"null": type(None), "bool": bool, "int": int, "float": float}[name]
    return value if type(value) is expected else _reject_tag(name)


def _reject_tag(name: str) -> str:
    problem = f"the value does not match its tag `!!{name}`"
    raise ScalarError("documents.tag", problem, "remove the tag, or correct the value")


def _decode_binary(text: str) -> str:
    try:
        raw = base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError):
        problem = "the value has the tag `!!binary` but is not base64"
        raise ScalarError(
            "documents.tag", problem, "remove the tag, or correct the value"
        ) from None
    return replace_invalid_bytes(raw.decode("utf-8", "surrogateescape"))


def replace_invalid_bytes(text: str) -> str:
    """Replace each byte that `surrogateescape` preserved by U+FFFD, as Go prints it."""
    return re.sub("[\udc80-\udcff]", "\ufffd", text)


def _is_timestamp(text: str) -> bool:
    match = _TIMESTAMP.fullmatch(text) or _TIMESTAMP_WITHOUT_ZONE.fullmatch(text)
    if match is None:
        return False
    try:
        # Go knows a year 0, Python does not; both are leap years.
        date = re.sub("^0000", "0400", match["date"])
        datetime.strptime(f"{date} {match['time'] or '0:0:0'}", "%Y-%m-%d %H:%M:%S")  # noqa: DTZ007
    except ValueError:
        return False
    return True
