"""Match names against the patterns of Argo CD's `include` and `exclude`, and of paths.

`*` stands for anything, slashes too; `?` for one sign; `[a-c]` and `[!a-c]` for one of some signs,
or none of them; `{a,b}` for one of several patterns; a backslash takes the sign behind it as it is.
In the name of one file or directory, `[a-c_^]` may hold several ranges and signs, and `^` negates
as well as `!`. A pattern cannot make matching slow: all ways through it are followed at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

MOST_ALTERNATIVES = 1_000


@dataclass(frozen=True, slots=True)
class _Sign:
    """One place of a pattern: which signs fit there, and whether it may be filled at will."""

    signs: frozenset[str] = frozenset()
    ranges: tuple[tuple[str, str], ...] = ()
    negated: bool = False
    repeats: bool = False

    def fits(self, sign: str) -> bool:
        inside = sign in self.signs or any(low <= sign <= high for low, high in self.ranges)
        return inside != self.negated


_ANY = _Sign(negated=True)
_MANY = _Sign(negated=True, repeats=True)


class Glob:
    """A pattern, ready to match. Raises ValueError for one that is no pattern."""

    def __init__(self, pattern: str) -> None:
        self._alternatives = [_signs(text, _class) for text in expand_braces(pattern)]

    def matches(self, name: str) -> bool:
        return any(_matches(signs, name) for signs in self._alternatives)


class NameGlob:
    """A pattern for one name of a path, without braces. Raises ValueError for no pattern."""

    def __init__(self, pattern: str) -> None:
        self._signs = _signs(pattern, _class_of_a_name)

    def matches(self, name: str) -> bool:
        return _matches(self._signs, name)


def _matches(signs: list[_Sign], name: str) -> bool:
    states = _reach({0}, signs)
    for sign in name:
        stepped = {
            state if signs[state].repeats else state + 1
            for state in states
            if state < len(signs) and signs[state].fits(sign)
        }
        states = _reach(stepped, signs)
    return len(signs) in states


def _reach(states: set[int], signs: list[_Sign]) -> set[int]:
    """With each state, those that follow because `*` may stand for nothing."""
    reached = set(states)
    for state in states:
        following = state
        while following < len(signs) and signs[following].repeats:
            following += 1
            reached.add(following)
    return reached


def expand_braces(pattern: str) -> list[str]:
    """The pattern without braces: one text for each alternative."""
    texts, rest = [""], pattern
    while rest:
        piece, braces, rest = _until_brace(rest)
        texts = [text + piece for text in texts]
        if braces is not None:
            choices = [inner for choice in _choices(braces) for inner in expand_braces(choice)]
            texts = [text + choice for text in texts for choice in choices]
        if len(texts) > MOST_ALTERNATIVES:
            raise ValueError("too many alternatives")
    return texts


def _until_brace(text: str) -> tuple[str, str | None, str]:
    """The text before a brace, what the braces hold, and the rest."""
    start = _find(text, "{")
    if start < 0:
        return text, None, ""
    depth, at = 1, start + 1
    while depth:
        if at >= len(text):
            raise ValueError("a brace is not closed")
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        at += 2 if text[at] == "\\" else 1
    return text[:start], text[start + 1 : at - 1], text[at:]


def _find(text: str, wanted: str) -> int:
    at = 0
    while at < len(text):
        if text[at] == wanted:
            return at
        at += 2 if text[at] == "\\" else 1
    return -1


def _choices(text: str) -> list[str]:
    """What stands between the commas, except for those in braces further in."""
    choices, depth, start, at = [], 0, 0, 0
    while at < len(text):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if text[at] == "," and not depth:
            choices.append(text[start:at])
            start = at + 1
        at += 2 if text[at] == "\\" else 1
    return [*choices, text[start:]]


_ReadClass: TypeAlias = Callable[[str], _Sign]


def _signs(text: str, read_class: _ReadClass) -> list[_Sign]:
    signs: list[_Sign] = []
    at = 0
    while at < len(text):
        match text[at]:
            case "*":
                signs.append(_MANY)
            case "?":
                signs.append(_ANY)
            case "[":
                end = text.find("]", at + 2)
                if end < 0:
                    raise ValueError("a bracket is not closed")
                signs.append(read_class(text[at + 1 : end]))
                at = end
            case "\\" if at + 1 < len(text):
                at += 1
                signs.append(_Sign(frozenset(text[at])))
            case sign:
                signs.append(_Sign(frozenset(sign)))
        at += 1
    return signs


def _class(text: str) -> _Sign:
    negated = text.startswith("!")
    body = text.removeprefix("!")
    if len(body) == 3 and body[1] == "-":  # noqa: PLR2004  (low, dash, high)
        return _Sign(ranges=((body[0], body[2]),), negated=negated)
    return _Sign(frozenset(body), negated=negated)


def _class_of_a_name(text: str) -> _Sign:
    negated = text[:1] in {"!", "^"}
    rest = [*text[negated:]]
    signs: set[str] = set()
    ranges: list[tuple[str, str]] = []
    while rest:
        low = rest.pop(0)
        if len(rest) > 1 and rest[0] == "-":
            ranges.append((low, rest[1]))
            del rest[:2]
        else:
            signs.add(low)
    return _Sign(frozenset(signs), tuple(ranges), negated=negated)
