"""Put values into a template.

Values are bytes, as they are for Flux: `${name:0:1}` may well cut a character in two.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from tidegate.render.envsubst.pattern import replace_broken, trim_prefix, trim_suffix
from tidegate.render.envsubst.template import Expansion, Node, UnsetVariableError, parse

_NUMBER = re.compile(rb"[+-]?[0-9]+")
_INT64 = 2**63
_Function: TypeAlias = Callable[[bytes, list[bytes]], bytes]

_DEFAULTS = frozenset({"=", ":=", ":-", ":?", ":+"})


def expand(text: str, variables: Mapping[str, str], *, strict: bool) -> bytes:
    """Replace every expansion in a text. With `strict` a variable must be set or have a default."""
    return b"".join(_evaluate(node, variables, strict=strict) for node in parse(text))


def _evaluate(node: Node, variables: Mapping[str, str], *, strict: bool) -> bytes:
    if isinstance(node, str):
        return node.encode()
    # Arguments come first, so a variable missing in a default counts even where it is not used.
    arguments = [_evaluate(part, variables, strict=strict) for part in node.arguments]
    if strict and node.name not in variables and node.operator not in _DEFAULTS:
        raise UnsetVariableError(node.name)
    value = variables.get(node.name, "").encode("utf-8", "surrogateescape")
    return _apply(node, value, arguments)


def _apply(node: Expansion, value: bytes, arguments: list[bytes]) -> bytes:
    if node.operator in _DEFAULTS:
        return value or b"".join(arguments)
    function = _FUNCTIONS.get(node.operator)
    return function(value, arguments) if function else value


def _substring(value: bytes, arguments: list[bytes]) -> bytes:
    """What cannot be read as a number leaves the value as it is, as in bash."""
    numbers = [_read_number(text) for text in arguments]
    start, size = numbers[0], numbers[1] if numbers[1:] else len(value)
    if start is None or size is None:
        return value
    if start < 0:
        start = max(len(value) + start, 0)
    return value[start : start + size] if size >= 0 else value[start : max(len(value) + size, 0)]


def _read_number(text: bytes) -> int | None:
    number = int(text) if _NUMBER.fullmatch(text) else _INT64
    return number if -_INT64 <= number < _INT64 else None


def _replace(value: bytes, arguments: list[bytes], *, most: int) -> bytes:
    old, new = arguments[0], b"".join(arguments[1:])
    if old:
        return value.replace(old, new, most)
    # An empty text is found between characters, not between bytes.
    found = value.decode("utf-8", "surrogateescape")
    new_text = new.decode("utf-8", "surrogateescape")
    return found.replace("", new_text, most).encode("utf-8", "surrogateescape")


def _replace_prefix(value: bytes, arguments: list[bytes]) -> bytes:
    """Nothing is no replacement here: `${name/#old/}` leaves the value as it is."""
    old, *new = arguments
    return new[0] + value[len(old) :] if new and value.startswith(old) else value


def _replace_suffix(value: bytes, arguments: list[bytes]) -> bytes:
    old, *new = arguments
    return value.removesuffix(old) + new[0] if new and value.endswith(old) else value


def _case(change: Callable[[str], str], *, first_only: bool) -> _Function:
    def function(value: bytes, _: list[bytes]) -> bytes:
        text = value.decode("utf-8", "surrogateescape")
        head, rest = (text[:1], text[1:]) if first_only else (text, "")
        changed = "".join(map(change, replace_broken(head)))
        return (changed + rest).encode("utf-8", "surrogateescape")

    return function


def _upper(sign: str) -> str:
    """One character for one: `ß` stays, where Python would write `SS`."""
    return next((form for form in (sign.upper(), sign.title()) if len(form) == 1), sign)


def _lower(sign: str) -> str:
    return sign.lower()[:1]


_FUNCTIONS: dict[str, _Function] = {
    "length": lambda value, _: str(len(value)).encode(),
    ":": _substring,
    "^": _case(_upper, first_only=True),
    "^^": _case(_upper, first_only=False),
    ",": _case(_lower, first_only=True),
    ",,": _case(_lower, first_only=False),
    "/": lambda value, arguments: _replace(value, arguments, most=1),
    "//": lambda value, arguments: _replace(value, arguments, most=-1),
    "/#": _replace_prefix,
    "/%": _replace_suffix,
    "#": lambda value, arguments: trim_prefix(value, arguments[0], longest=False),
    "##": lambda value, arguments: trim_prefix(value, arguments[0], longest=True),
    "%": lambda value, arguments: trim_suffix(value, arguments[0], longest=False),
    "%%": lambda value, arguments: trim_suffix(value, arguments[0], longest=True),
}
