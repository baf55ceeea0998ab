"""From text to a template: literal text and expansions, which may hold expansions again.

    ${name}  ${name:-default}  ${name:offset:length}  ${name/old/new}  ${name##pattern}  ${#name}

Only `${` opens an expansion; outside of them `$$` means `$`. The first `}` closes, whatever it was
meant for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

NESTING_LIMIT = 100

_DEFAULT_SIGNS = "=-?+"


class SubstitutionError(ValueError):
    """An expansion that cannot be read. What stands in it is not told: it may be secret."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem


class UnsetVariableError(ValueError):
    """A variable that nobody set, where one must be."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


@dataclass(frozen=True, slots=True)
class Expansion:
    """One `${…}`: the variable, what is done with its value, and with which arguments."""

    name: str
    operator: str = ""
    arguments: tuple[Node, ...] = ()


Node: TypeAlias = str | Expansion


def parse(text: str) -> tuple[Node, ...]:
    """Read a whole text."""
    return _Parser(text).parse()


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
