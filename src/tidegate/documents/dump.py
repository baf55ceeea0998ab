"""Canonical text out: one JSON form and one YAML form of a body.

Keys are sorted, numbers are printed as Go prints them, and a string is quoted whenever Kubernetes
would read it as something else.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator

import msgspec

from tidegate.documents import numerals
from tidegate.documents.scalars import resolve
from tidegate.errors import DocumentError
from tidegate.model.objects import Json
from tidegate.model.patterns import late

_encoder = msgspec.json.Encoder(order="sorted")
_encode_text = msgspec.json.Encoder().encode

# Numbers that msgspec may print otherwise than Go; for one that has no JSON it prints `null`.
_DIFFERENT = late(
    rb"[:,\[](?:null|-?[0-9]{19,}|-?[0-9]+(?:\.[0-9]+(?:e-?[0-9]+)?|e-?[0-9]+))[,\]}]"
)

_PLAIN = late(r"[A-Za-z0-9_./][A-Za-z0-9_./@+=-]*(?: [A-Za-z0-9_./@+=-]+)*")
_ODD = "\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff"
"""What cannot stand in YAML, is not seen, or turns the text around it."""
_ESCAPED = late(f"[{_ODD}]|##(?=\\w*\\[)")
_COMMAND = late(r"^\s*::|##\w*\[", re.MULTILINE)
"""What CI servers take for a command where it stands in a line of its own."""
_BLOCK = late(f"\n*[^\n \t\x00-\x1f{_ODD}][^\x00-\x08\x0b-\x1f{_ODD}]*")
_LONGEST_SIMPLE_KEY = 1_000


def to_json(body: Json) -> bytes:
    """Compact JSON with sorted keys: equal bodies give equal bytes."""
    text = _encoder.encode(body)
    is_different = _DIFFERENT.search(text) if isinstance(body, dict | list) else True
    return _encoder.encode(_exact(body)) if is_different else text


def to_yaml(body: Json) -> str:
    """Block YAML with sorted keys, such that reading it gives the same JSON again."""
    lines = [_text(body)] if isinstance(body, str) else block_lines(body, _string, _text)
    return "\n".join(lines) + "\n"


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


def block_lines(
    value: Json, write: Callable[[str], list[str]], write_key: Callable[[str], str]
) -> Iterator[str]:
    """The lines of a value in block YAML, its strings and keys written as these write them."""
    if isinstance(value, dict) and value:
        for key in sorted(value):
            yield from _entry(write_key(key), value[key], write, write_key)
    elif isinstance(value, list) and value:
        for item in value:
            first, *rest = block_lines(item, write, write_key)
            yield f"- {first}"
            yield from _indented(rest)
    elif isinstance(value, str):
        yield from write(value)
    elif isinstance(value, bool) or value is None:
        yield {True: "true", False: "false", None: "null"}[value]
    elif isinstance(value, int | float):
        yield _number(value)
    else:
        yield "{}" if isinstance(value, dict) else "[]"


def _entry(
    name: str, value: Json, write: Callable[[str], list[str]], write_key: Callable[[str], str]
) -> Iterator[str]:
    if len(name) > _LONGEST_SIMPLE_KEY:
        yield f"? {name}"
        name = ""
    lines = block_lines(value, write, write_key)
    if isinstance(value, dict | list) and value:
        yield f"{name}:"
        # The items of a list stand below their key, as kubectl prints them.
        yield from lines if isinstance(value, list) else _indented(lines)
    else:
        yield f"{name}: {next(lines)}"
        yield from _indented(lines)


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}" if line else line for line in lines)


def _string(text: str) -> list[str]:
    """One line, or the head of a block and its lines."""
    is_block = "\n" in text and _BLOCK.fullmatch(text) and not _COMMAND.search(text)
    return _block(text) if is_block else [_text(text)]


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
    return _ESCAPED.sub(_escape, quoted)


def _escape(found: re.Match[str]) -> str:
    return "#\\u0023" if found[0] == "##" else f"\\u{ord(found[0]):04x}"
