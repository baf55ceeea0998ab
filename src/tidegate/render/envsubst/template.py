"""The substitution language of Flux: literal text and expansions, which may hold expansions again.

    ${name}  ${name:-default}  ${name:offset:length}  ${name/old/new}  ${name##pattern}  ${#name}

Only `${` opens an expansion; outside of them `$$` means `$`. The first `}` closes, whatever it was
meant for. Values are bytes, as they are for Flux: `${name:0:1}` may well cut a character in two.

It looks like bash and is not. Every rule was asked of Flux' own library; tests/data/envsubst holds
its answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec

from tidegate.documents.scalars import replace_invalid_bytes
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.render.envsubst.pattern import trim_prefix, trim_suffix

NESTING_LIMIT = 100
_DEFAULT_SIGNS = "=-?+"
_NUMBER = lazy_regex(rb"[+-]?[0-9]+")
_INT64 = 2**63
_Function: TypeAlias = Callable[[bytes, list[bytes]], bytes]
_DEFAULTS = frozenset({"=", ":=", ":-", ":?", ":+"})


class SubstitutionError(ValueError):
    """Why an expansion cannot be read. What stands in it is not told: it may be secret."""


class UnsetVariableError(ValueError):
    """The name of a variable that nobody set, where one must be."""


class Expansion(msgspec.Struct, frozen=True):
    """One `${…}`: the variable, what is done with its value, and with which arguments."""

    name: str
    operator: str = ""
    arguments: tuple[Node, ...] = ()


Node: TypeAlias = str | Expansion


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0

    def parse(self) -> tuple[Node, ...]:
        nodes: list[Node] = []
        while self._at < len(self._text):
            nodes.append(self._nested() if self._opens() else self._literal("", ("$$",)))
        return tuple(nodes)

    def _opens(self) -> bool:
        return self._text.startswith("${", self._at)

    def _next(self, ahead: int = 0) -> str:
        """The character to come; empty at the end."""
        return self._text[self._at + ahead : self._at + ahead + 1]

    def _take(self, signs: str, most: int) -> str:
        start = self._at
        while self._at - start < most and self._next() and self._next() in signs:
            self._at += 1
        return self._text[start : self._at]

    def _literal(self, stops: str, escapes: tuple[str, ...]) -> str:
        """Text up to an expansion, a stop or the end; of an escape the second sign is left."""
        pieces = []
        while (sign := self._next()) and not self._opens():
            if self._text.startswith(escapes, self._at):
                pieces.append(self._next(1))
                self._at += 2
            elif sign in stops:
                break
            else:
                pieces.append(sign)
                self._at += 1
        return "".join(pieces)

    def _nested(self) -> Expansion:
        if self._depth >= NESTING_LIMIT:
            raise SubstitutionError(f"expansions are nested more than {NESTING_LIMIT} deep")
        self._depth += 1
        self._at += 2
        expansion = self._length() if self._next() == "#" else self._expansion()
        self._depth -= 1
        return expansion

    def _length(self) -> Expansion:
        self._at += 1
        return self._close(Expansion(self._name(), "length"))

    def _expansion(self) -> Expansion:
        name = self._name()
        match self._next():
            case ":" if self._next(1) and self._next(1) in _DEFAULT_SIGNS:
                return self._default(name, self._take(":", 1) + self._take(_DEFAULT_SIGNS, 1))
            case "=":
                return self._default(name, self._take("=", 1))
            case ":":
                return self._substring(name)
            case "," | "^":
                return self._close(Expansion(name, self._take(",^", 2)))
            case "/":
                return self._replacement(name, self._take("/", 1) + self._take("/#%", 1))
            case "#" | "%" as sign:
                operator = self._take(sign, 2)
                return self._close(Expansion(name, operator, (self._argument("}"),)))
            case _:
                return self._close(Expansion(name))

    def _default(self, name: str, operator: str) -> Expansion:
        arguments = []
        while self._next() != "}":
            arguments.append(self._argument("}"))
        return self._close(Expansion(name, operator, tuple(arguments)))

    def _substring(self, name: str) -> Expansion:
        self._at += 1
        if not self._next().isascii():
            # Flux steps back over the character's bytes and loses its place.
            raise SubstitutionError("no offset stands behind the `:`")
        offset = self._argument(":}")
        if not self._take(":", len(self._text)):
            return self._close(Expansion(name, ":", (offset,)))
        return self._close(Expansion(name, ":", (offset, self._argument("}"))))

    def _replacement(self, name: str, operator: str) -> Expansion:
        old = self._argument("/", ("$$", "\\/", "\\\\"))
        if not self._take("/", len(self._text)):
            raise SubstitutionError("a `/` must part what is replaced from what replaces it")
        if self._next() == "}":
            return self._close(Expansion(name, operator, (old,)))
        new = self._argument("}", ("$$", "\\/", "\\\\"))
        return self._close(Expansion(name, operator, (old, new)))

    def _argument(self, stops: str, escapes: tuple[str, ...] = ()) -> Node:
        """One expansion, or text: never both, which is why `${a/${b}c/d}` cannot be read."""
        if self._opens():
            return self._nested()
        start = self._at
        text = self._literal(stops, escapes)
        if self._at == start:
            raise SubstitutionError("an argument is missing, or the closing `}`")
        return text

    def _name(self) -> str:
        start = self._at
        while (sign := self._next()) and (sign == "_" or sign.isalpha() or sign.isdecimal()):
            self._at += 1
        if self._at == start:
            raise SubstitutionError("no variable name follows")
        return self._text[start : self._at]

    def _close(self, expansion: Expansion) -> Expansion:
        if self._next() != "}":
            raise SubstitutionError("no closing `}` stands where it must")
        self._at += 1
        return expansion


def expand(text: str, variables: Mapping[str, str], *, strict: bool) -> bytes:
    """Replace every expansion in a text. With `strict` a variable must be set or have a default."""
    return b"".join(_evaluate(node, variables, strict=strict) for node in _Parser(text).parse())


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
        changed = "".join(map(change, replace_invalid_bytes(head)))
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
