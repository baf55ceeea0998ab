"""The substitution language of Flux: literal text and expansions, which may be nested.

${name}  ${name:-default}  ${name:offset:length}  ${name/old/new}  ${name##pattern}  ${#name}

Only `${` starts an expansion; outside of them `$$` means `$`. The first `}` closes it. Values are
bytes, as in Flux: `${name:0:1}` may split a character.

It is similar to bash, not equal. Every rule was tested with Flux' own library; tests/data/envsubst
contains the results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeAlias

import msgspec

from tidegate.documents.scalars import replace_invalid_bytes
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.render.envsubst.pattern import trim_prefix, trim_suffix

MAX_NESTING = 100
MARKER_START, MARKER_END = "\ue000", "\ue001"
"""Characters around the name of a variable whose value is unknown; no text uses them."""
_DEFAULT_OPERATORS = "=-?+"
_NUMBER = lazy_regex(rb"[+-]?[0-9]+")
_INT64 = 2**63
_Function: TypeAlias = Callable[[bytes, list[bytes]], bytes]
_OPERATORS_WITH_DEFAULT = frozenset({"=", ":=", ":-", ":?", ":+"})


class SubstitutionError(ValueError):
    """An invalid expansion. The message does not quote it, as it may contain a secret."""


class UnsetVariableError(ValueError):
    """A required variable that is not set; the message is its name."""


class Expansion(msgspec.Struct, frozen=True):
    """One `${…}`: the variable, the operator, and the arguments."""

    name: str
    """The name of the variable."""
    operator: str = ""
    """The operator, such as `:-`; empty for none."""
    arguments: tuple[Node, ...] = ()
    """The arguments of the operator."""


Node: TypeAlias = str | Expansion


class _Parser:
    """Parser of a text into literals and expansions.

    Like `Parse` in `parse/parse.go` and `scan` in `parse/scan.go` of fluxcd/pkg/envsubst 1.7.1.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._depth = 0

    def parse(self) -> tuple[Node, ...]:
        nodes: list[Node] = []
        while self._position < len(self._text):
            nodes.append(self._nested() if self._starts_expansion() else self._literal("", ("$$",)))
        return tuple(nodes)

    def _starts_expansion(self) -> bool:
        return self._text.startswith("${", self._position)

    def _next(self, ahead: int = 0) -> str:
        """Return the next character; empty at the end."""
        return self._text[self._position + ahead : self._position + ahead + 1]

    def _take(self, characters: str, limit: int) -> str:
        start = self._position
        while self._position - start < limit and self._next() and self._next() in characters:
            self._position += 1
        return self._text[start : self._position]

    def _literal(self, stops: str, escapes: tuple[str, ...]) -> str:
        """Return the text up to an expansion, a stop or the end.

        Of an escape, the second character stays.
        """
        pieces = []
        special = {"$", *stops, *(escape[0] for escape in escapes)}
        while (character := self._next()) and not self._starts_expansion():
            if self._text.startswith(escapes, self._position):
                pieces.append(self._next(1))
                self._position += 2
            elif character in stops:
                break
            else:
                start = self._position
                self._position = self._find_next(special)
                pieces.append(self._text[start : self._position])
        return "".join(pieces)

    def _find_next(self, characters: Iterable[str]) -> int:
        """Return the position after this one of any of the characters, or the end of the text."""
        positions = (self._text.find(character, self._position + 1) for character in characters)
        return min((at for at in positions if at >= 0), default=len(self._text))

    def _nested(self) -> Expansion:
        if self._depth >= MAX_NESTING:
            raise SubstitutionError(f"expansions are nested more than {MAX_NESTING} deep")
        self._depth += 1
        self._position += 2
        expansion = self._length() if self._next() == "#" else self._expansion()
        self._depth -= 1
        return expansion

    def _length(self) -> Expansion:
        self._position += 1
        return self._close(Expansion(self._name(), "length"))

    def _expansion(self) -> Expansion:
        name = self._name()
        match self._next():
            case ":" if self._next(1) and self._next(1) in _DEFAULT_OPERATORS:
                return self._default(name, self._take(":", 1) + self._take(_DEFAULT_OPERATORS, 1))
            case "=":
                return self._default(name, self._take("=", 1))
            case ":":
                return self._substring(name)
            case "," | "^":
                return self._close(Expansion(name, self._take(",^", 2)))
            case "/":
                return self._replacement(name, self._take("/", 1) + self._take("/#%", 1))
            case "#" | "%" as operator_character:
                operator = self._take(operator_character, 2)
                return self._close(Expansion(name, operator, (self._argument("}"),)))
            case _:
                return self._close(Expansion(name))

    def _default(self, name: str, operator: str) -> Expansion:
        arguments = []
        while self._next() != "}":
            arguments.append(self._argument("}"))
        return self._close(Expansion(name, operator, tuple(arguments)))

    def _substring(self, name: str) -> Expansion:
        self._position += 1
        if not self._next().isascii():
            # Flux steps back by the bytes of the character and misses the position.
            raise SubstitutionError("no offset after `:`")
        offset = self._argument(":}")
        if not self._take(":", len(self._text)):
            return self._close(Expansion(name, ":", (offset,)))
        return self._close(Expansion(name, ":", (offset, self._argument("}"))))

    def _replacement(self, name: str, operator: str) -> Expansion:
        old = self._argument("/", ("$$", "\\/", "\\\\"))
        if not self._take("/", len(self._text)):
            raise SubstitutionError("a `/` must separate the pattern from its replacement")
        if self._next() == "}":
            return self._close(Expansion(name, operator, (old,)))
        new = self._argument("}", ("$$", "\\/", "\\\\"))
        return self._close(Expansion(name, operator, (old, new)))

    def _argument(self, stops: str, escapes: tuple[str, ...] = ()) -> Node:
        """Return one expansion or literal text, never both: `${a/${b}c/d}` is invalid."""
        if self._starts_expansion():
            return self._nested()
        start = self._position
        text = self._literal(stops, escapes)
        if self._position == start:
            raise SubstitutionError("missing argument or closing `}`")
        return text

    def _name(self) -> str:
        start = self._position
        while (character := self._next()) and (
            character == "_" or character.isalpha() or character.isdecimal()
        ):
            self._position += 1
        if self._position == start:
            raise SubstitutionError("missing variable name")
        return self._text[start : self._position]

    def _close(self, expansion: Expansion) -> Expansion:
        if self._next() != "}":
            raise SubstitutionError("missing closing `}`")
        self._position += 1
        return expansion


def expand(
    text: str,
    variables: Mapping[str, str],
    *,
    strict: bool,
    is_unknown: Callable[[str], bool] = lambda _name: False,
) -> bytes:
    """Replace every expansion in a text. With `strict` a variable must be set or have a default.

    A marker with the name of the variable replaces one whose value is unknown, unless it has a
    default.

    Like `Execute` and `evalFunc` in `template.go` of fluxcd/pkg/envsubst 1.7.1.
    """
    unset = _UnsetVariables(is_unknown, is_error=strict)
    return b"".join(_evaluate(node, variables, unset) for node in _Parser(text).parse())


class _UnsetVariables(NamedTuple):
    """What happens to the expansion of a variable without a value and without a default."""

    is_unknown: Callable[[str], bool]
    is_error: bool


def _evaluate(node: Node, variables: Mapping[str, str], unset: _UnsetVariables) -> bytes:
    if isinstance(node, str):
        return node.encode()
    is_unset = node.name not in variables and node.operator not in _OPERATORS_WITH_DEFAULT
    if is_unset and unset.is_unknown(node.name):
        return f"{MARKER_START}{node.name}{MARKER_END}".encode()
    # Arguments are evaluated first: a missing variable in an unused default is an error.
    arguments = [_evaluate(argument, variables, unset) for argument in node.arguments]
    if is_unset and unset.is_error:
        raise UnsetVariableError(node.name)
    value = variables.get(node.name, "").encode("utf-8", "surrogateescape")
    return _apply(node, value, arguments)


def _apply(node: Expansion, value: bytes, arguments: list[bytes]) -> bytes:
    if node.operator in _OPERATORS_WITH_DEFAULT:
        return value or b"".join(arguments)
    function = _FUNCTIONS.get(node.operator)
    return function(value, arguments) if function else value


def _substring(value: bytes, arguments: list[bytes]) -> bytes:
    """Return a substring; arguments that are no numbers leave the value unchanged, as in bash.

    Like `toSubstr` in `funcs.go` of fluxcd/pkg/envsubst 1.7.1.
    """
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


def _replace(value: bytes, arguments: list[bytes], *, count: int) -> bytes:
    old, new = arguments[0], b"".join(arguments[1:])
    if old:
        return value.replace(old, new, count)
    # An empty text matches between characters, not between bytes.
    text = value.decode("utf-8", "surrogateescape")
    new_text = new.decode("utf-8", "surrogateescape")
    return text.replace("", new_text, count).encode("utf-8", "surrogateescape")


def _replace_prefix(value: bytes, arguments: list[bytes]) -> bytes:
    """Replace a prefix; `${name/#old/}` without a replacement leaves the value unchanged.

    Like `replacePrefix` in `funcs.go` of fluxcd/pkg/envsubst 1.7.1.
    """
    old, *new = arguments
    return new[0] + value[len(old) :] if new and value.startswith(old) else value


def _replace_suffix(value: bytes, arguments: list[bytes]) -> bytes:
    old, *new = arguments
    return value.removesuffix(old) + new[0] if new and value.endswith(old) else value


def _case_function(change: Callable[[str], str], *, first_only: bool) -> _Function:
    def function(value: bytes, _: list[bytes]) -> bytes:
        text = value.decode("utf-8", "surrogateescape")
        head, rest = (text[:1], text[1:]) if first_only else (text, "")
        changed = "".join(map(change, replace_invalid_bytes(head)))
        return (changed + rest).encode("utf-8", "surrogateescape")

    return function


def _upper(character: str) -> str:
    """Return one character in upper case: `ß` stays, where Python would write `SS`."""
    return next(
        (form for form in (character.upper(), character.title()) if len(form) == 1), character
    )


def _lower(character: str) -> str:
    return character.lower()[:1]


_FUNCTIONS: dict[str, _Function] = {
    "length": lambda value, _: str(len(value)).encode(),
    ":": _substring,
    "^": _case_function(_upper, first_only=True),
    "^^": _case_function(_upper, first_only=False),
    ",": _case_function(_lower, first_only=True),
    ",,": _case_function(_lower, first_only=False),
    "/": lambda value, arguments: _replace(value, arguments, count=1),
    "//": lambda value, arguments: _replace(value, arguments, count=-1),
    "/#": _replace_prefix,
    "/%": _replace_suffix,
    "#": lambda value, arguments: trim_prefix(value, arguments[0], longest=False),
    "##": lambda value, arguments: trim_prefix(value, arguments[0], longest=True),
    "%": lambda value, arguments: trim_suffix(value, arguments[0], longest=False),
    "%%": lambda value, arguments: trim_suffix(value, arguments[0], longest=True),
}
