"""Canonical text out: one JSON form and one YAML form of a body.

Keys are sorted, numbers are printed as Go prints them, and a string is quoted whenever Kubernetes
would read it as something else.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import msgspec

from tidegate.documents import numerals
from tidegate.documents.scalars import resolve
from tidegate.errors import DocumentError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tidegate.model.objects import Json

_encoder = msgspec.json.Encoder(order="sorted")
_encode_text = msgspec.json.Encoder().encode

# Numbers that msgspec may print otherwise than Go; for one that has no JSON it prints `null`.
_DIFFERENT = re.compile(
    rb"[:,\[](?:null|-?[0-9]{19,}|-?[0-9]+(?:\.[0-9]+(?:e-?[0-9]+)?|e-?[0-9]+))[,\]}]"
)

_PLAIN = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./@+=-]*(?: [A-Za-z0-9_./@+=-]+)*")
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_BLOCK = re.compile(
    "\n*[^\n \t\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]"
    "[^\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]*"
)
_LONGEST_SIMPLE_KEY = 1_000


def to_json(body: Json) -> bytes:
    """Compact JSON with sorted keys: equal bodies give equal bytes."""
    text = _encoder.encode(body)
    is_different = _DIFFERENT.search(text) if isinstance(body, dict | list) else True
    return _encoder.encode(_exact(body)) if is_different else text


def to_yaml(body: Json) -> str:
    """Block YAML with sorted keys, such that reading it gives the same JSON again."""
    return "\n".join(_lines(body)) + "\n"


def _exact(body: Json) -> object:
    """The body with each number as the text Go would print."""
    if isinstance(body, dict):
        return {key: _exact(value) for key, value in body.items()}
    if isinstance(body, list):
        return [_exact(value) for value in body]
    if isinstance(body, bool) or not isinstance(body, int | float):
        return body
    return msgspec.Raw(_number(body).encode())


def _number(number: float) -> str:
    try:
        finite = math.isfinite(number)
    except OverflowError:
        finite = False
    if not finite:
        raise DocumentError("documents.number", "a number is too large, or none, for JSON")
    return numerals.print_json(number)


def _lines(value: Json) -> Iterator[str]:
    """The lines of a value that stands on lines of its own."""
    if isinstance(value, dict) and value:
        for key in sorted(value):
            yield from _entry(key, value[key])
    elif isinstance(value, list) and value:
        for item in value:
            first, *rest = _lines(item)
            yield f"- {first}"
            yield from _indented(rest)
    else:
        first, *rest = _scalar(value)
        yield first
        yield from _indented(rest)


def _entry(key: str, value: Json) -> Iterator[str]:
    name = _text(key)
    if len(name) > _LONGEST_SIMPLE_KEY:
        yield f"? {name}"
        name = ""
    if isinstance(value, dict | list) and value:
        yield f"{name}:"
        # The items of a list stand below their key, as kubectl prints them.
        yield from _lines(value) if isinstance(value, list) else _indented(_lines(value))
    else:
        first, *rest = _scalar(value)
        yield f"{name}: {first}"
        yield from _indented(rest)


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}" if line else line for line in lines)


def _scalar(value: Json) -> list[str]:
    """The text of a scalar: one line, or the head of a block and its lines."""
    if isinstance(value, str):
        is_block = "\n" in value and _BLOCK.fullmatch(value)
        return _block(value) if is_block else [_text(value)]
    if isinstance(value, bool) or value is None:
        return [{True: "true", False: "false", None: "null"}[value]]
    if isinstance(value, int | float):
        return [_number(value)]
    return ["{}" if isinstance(value, dict) else "[]"]


def _block(text: str) -> list[str]:
    body = text.rstrip("\n")
    breaks = len(text) - len(body)
    keep = "-" if breaks == 0 else "" if breaks == 1 else "+"
    return [f"|{keep}", *body.split("\n"), *[""] * (breaks - 1)]


def _text(text: str) -> str:
    """A string on one line: bare if it is read as the same string, else in double quotes."""
    if _PLAIN.fullmatch(text) and isinstance(resolve(text), str):
        return text
    quoted = _encode_text(text).decode()
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", quoted)
