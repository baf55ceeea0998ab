"""Writer for canonical JSON and YAML.

Keys are sorted, numbers are printed as Go prints them, and a string is quoted whenever Kubernetes
would read it as another type.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator

import msgspec

from tidegate.documents import numbers
from tidegate.documents.scalars import resolve
from tidegate.errors import DocumentError
from tidegate.model.k8s.objects import Json
from tidegate.model.text.lazy_regex import lazy_regex

_encoder = msgspec.json.Encoder(order="sorted")
_encode_text = msgspec.json.Encoder().encode

# Numbers that msgspec may print otherwise than Go; for one that has no JSON it prints `null`.
_MAY_DIFFER = lazy_regex(
    rb"[:,\[](?:null|-?[0-9]{19,}|-?[0-9]+(?:\.[0-9]+(?:e-?[0-9]+)?|e-?[0-9]+))[,\]}]"
)
_PLAIN = lazy_regex(r"[A-Za-z0-9_./][A-Za-z0-9_./@+=-]*(?: [A-Za-z0-9_./@+=-]+)*")
_UNSAFE = "\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff"
"""Characters that YAML forbids, that are invisible, or that change the direction of text."""
_ESCAPED = lazy_regex(f"[{_UNSAFE}]|##(?=\\w*\\[)")
_COMMAND = lazy_regex(r"^\s*::|##\w*\[", re.MULTILINE)
"""Text that CI servers treat as a command if it starts a line."""
_BLOCK = lazy_regex(f"\n*[^\n \t\x00-\x1f{_UNSAFE}][^\x00-\x08\x0b-\x1f{_UNSAFE}]*")
_MAX_SIMPLE_KEY = 1_000


def to_json(body: Json) -> bytes:
    """Encode a body as compact JSON with sorted keys: equal bodies give equal bytes."""
    text = _encoder.encode(body)
    is_different = _MAY_DIFFER.search(text) if isinstance(body, dict | list) else True
    return _encoder.encode(_with_go_numbers(body)) if is_different else text


def to_yaml(body: Json) -> str:
    """Encode a body as block YAML with sorted keys. Reading it gives the same JSON again."""
    lines = (
        [_inline_text(body)]
        if isinstance(body, str)
        else block_lines(body, _string_lines, _inline_text)
    )
    return "\n".join(lines) + "\n"


def _with_go_numbers(body: Json) -> object:
    """Return the body with each number as the text that Go would print."""
    if isinstance(body, dict):
        return {key: _with_go_numbers(value) for key, value in body.items()}
    if isinstance(body, list):
        return [_with_go_numbers(value) for value in body]
    if isinstance(body, bool) or not isinstance(body, int | float):
        return body
    return msgspec.Raw(_format_number(body).encode())


def _format_number(number: float) -> str:
    try:
        finite = math.isfinite(number)
    except OverflowError:
        finite = False
    if not finite:
        raise DocumentError(
            "documents.number", "a number is infinite, not a number or too large for JSON"
        )
    return numbers.format_json(number)


def block_lines(
    value: Json, write: Callable[[str], list[str]], write_key: Callable[[str], str]
) -> Iterator[str]:
    """Yield the lines of a value in block YAML, with custom writers for strings and keys."""
    if isinstance(value, dict) and value:
        for key in sorted(value):
            yield from _entry_lines(write_key(key), value[key], write, write_key)
    elif isinstance(value, list) and value:
        for item in value:
            first, *more = block_lines(item, write, write_key)
            yield f"- {first}"
            yield from _indent(more)
    elif isinstance(value, str):
        yield from write(value)
    elif isinstance(value, bool) or value is None:
        yield {True: "true", False: "false", None: "null"}[value]
    elif isinstance(value, int | float):
        yield _format_number(value)
    else:
        yield "{}" if isinstance(value, dict) else "[]"


def _entry_lines(
    name: str, value: Json, write: Callable[[str], list[str]], write_key: Callable[[str], str]
) -> Iterator[str]:
    if len(name) > _MAX_SIMPLE_KEY:
        yield f"? {name}"
        name = ""
    lines = block_lines(value, write, write_key)
    if isinstance(value, dict | list) and value:
        yield f"{name}:"
        # The items of a list have the indentation of their key, as kubectl prints them.
        yield from lines if isinstance(value, list) else _indent(lines)
    else:
        yield f"{name}: {next(lines)}"
        yield from _indent(lines)


def _indent(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}" if line else line for line in lines)


def _string_lines(text: str) -> list[str]:
    """Return one line, or the header of a block scalar and its lines."""
    is_block = "\n" in text and _BLOCK.fullmatch(text) and not _COMMAND.search(text)
    return _block_lines(text) if is_block else [_inline_text(text)]


def _block_lines(text: str) -> list[str]:
    body = text.rstrip("\n")
    breaks = len(text) - len(body)
    chomping = "-" if breaks == 0 else "" if breaks == 1 else "+"
    return [f"|{chomping}", *body.split("\n"), *[""] * (breaks - 1)]


def _inline_text(text: str) -> str:
    """Return a string on one line: bare if it reads as the same string, else in double quotes."""
    if _PLAIN.fullmatch(text) and isinstance(resolve(text), str):
        return text
    quoted = _encode_text(text).decode()
    return _ESCAPED.sub(_escape, quoted)


def _escape(match: re.Match[str]) -> str:
    return "#\\u0023" if match[0] == "##" else f"\\u{ord(match[0]):04x}"
