"""What a YAML scalar means to Kubernetes.

YAML 1.1 words (`on`, `y`, `~`) count, dates and times of day stay strings, and so does
whatever has an unknown tag. Every rule was asked of kubectl; tests/data/yaml holds its answers.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from datetime import datetime
from typing import TypeAlias

from yaml.events import ScalarEvent

from tidegate.documents import numerals
from tidegate.model.patterns import late

Scalar: TypeAlias = str | int | float | bool | None

_STANDARD = "tag:yaml.org,2002:"
_STRING = _STANDARD + "str"
_BINARY = _STANDARD + "binary"
_MERGE = _STANDARD + "merge"

_WORDS: dict[str, Scalar] = {
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
_STARTS = _NUMERIC_STARTS | {word[:1] for word in _WORDS}

_DATE = r"(?P<date>[0-9]{4}-[0-9]{1,2}-[0-9]{1,2})"
_TIME = r"(?P<time>[0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2})(?:[.,][0-9]+)?"
_MOMENT = late(rf"{_DATE}(?:[Tt]{_TIME}(?:Z|[-+][0-9]{{2}}:[0-9]{{2}})|)")
_MOMENT_WITHOUT_ZONE = late(rf"{_DATE} {_TIME}")


class ScalarError(ValueError):
    """A scalar that Kubernetes refuses; whoever knows the place makes an error of it."""

    def __init__(self, code: str, problem: str, hint: str) -> None:
        super().__init__(problem)
        self.code = code
        self.problem = problem
        self.hint = hint


def read_value(event: ScalarEvent) -> Scalar:
    """The JSON value of a scalar."""
    if event.tag is None:
        text = event.value
        if not event.implicit[0] or text[:1] not in _STARTS:
            return text
        value = resolve(text)
    else:
        value = _read_tagged(event.tag, event.value)
    if value.__class__ is int or value.__class__ is float:
        if not math.isfinite(value):
            problem = "infinity and not-a-number have no form in JSON, so Kubernetes refuses them"
            raise ScalarError("documents.number", problem, "put the value in quotes")
        return numerals.as_json(value)
    return value


def read_key(event: ScalarEvent) -> str:
    """The JSON key of a scalar: numbers and booleans become text."""
    text = event.value
    if event.tag is None and (not event.implicit[0] or text[:1] not in _STARTS):
        return text
    value = resolve(text) if event.tag is None else _read_tagged(event.tag, text)
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    key = None if value is None else numerals.print_key(value)
    if key is None:
        noun = "`null`" if value is None else "a number of 2^63 or more"
        raise ScalarError("documents.key", f"{noun} cannot be a key", "put the key in quotes")
    return key


def is_merge(event: object) -> bool:
    """Whether a key is the merge key `<<`, which is one only without quotes."""
    if not isinstance(event, ScalarEvent) or event.value != "<<":
        return False
    return event.tag == _MERGE or (event.tag is None and event.implicit[0])


def resolve(text: str) -> Scalar:
    """What a plain scalar is: a word YAML knows, a number as Go holds it, or a string."""
    if text[:1] not in _STARTS:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if text[0] in _NUMERIC_STARTS:
        number = numerals.parse(text)
        return text if number is None else number
    return text


def _read_tagged(tag: str, text: str) -> Scalar:
    if tag == _BINARY:
        return _decode(text)
    name = tag.removeprefix(_STANDARD)
    if tag == _STRING or name not in ("null", "bool", "int", "float", "timestamp"):
        return text
    if name == "timestamp":
        return text if _is_moment(text) else _refuse(name)
    value = resolve(text)
    if name == "float" and type(value) is int and value < 2**63:
        return float(value)
    wanted = {"null": type(None), "bool": bool, "int": int, "float": float}[name]
    return value if type(value) is wanted else _refuse(name)


def _refuse(name: str) -> str:
    problem = f"the value is not what its tag `!!{name}` says"
    raise ScalarError("documents.tag", problem, "remove the tag, or mend the value")


def _decode(text: str) -> str:
    try:
        raw = base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError):
        problem = "the value is not base64, as its tag `!!binary` says"
        raise ScalarError("documents.tag", problem, "remove the tag, or mend the value") from None
    return replace_broken(raw.decode("utf-8", "surrogateescape"))


def replace_broken(text: str) -> str:
    """What `surrogateescape` kept apart, as Go shows it: one U+FFFD for each byte."""
    return re.sub("[\udc80-\udcff]", "\ufffd", text)


def _is_moment(text: str) -> bool:
    match = _MOMENT.fullmatch(text) or _MOMENT_WITHOUT_ZONE.fullmatch(text)
    if match is None:
        return False
    try:
        # Go knows a year 0, Python does not; both are leap years.
        date = re.sub("^0000", "0400", match["date"])
        datetime.strptime(f"{date} {match['time'] or '0:0:0'}", "%Y-%m-%d %H:%M:%S")  # noqa: DTZ007
    except ValueError:
        return False
    return True
