"""Patterns of groups and kinds, as Argo CD reads them in `resource.customizations`.

`*` stands for any text, also across the `/`; `?` for one character; `[abc]`, `[!abc]` and `[a-z]`
for one of a class; `{a,b}` for one of several; `\\` takes the next character as it is.
"""

from __future__ import annotations

import re

from tidegate.errors import OperatorsError, Place, foreign

SIGNS = frozenset("*?[{\\")
ANY = {"*": ".*", "?": "."}
_PIECE = re.compile(r"\\.|\[!?[^\]\[]+\]|[{},*?\[\]\\]|[^{},*?\[\]\\]+", re.DOTALL)


def is_pattern(key: str) -> bool:
    return not SIGNS.isdisjoint(key)


def literal_size(key: str) -> int:
    """How much of a pattern is fixed: the more, the closer it fits."""
    return sum(len(piece) for piece in _PIECE.findall(key) if piece[0] not in "*?[{},\\")


def compile_pattern(key: str) -> re.Pattern[str]:
    """Raises ValueError for what is no pattern."""
    made, depth = "", 0
    for piece in _PIECE.findall(key):
        depth += {"{": 1, "}": -1}.get(piece, 0)
        if depth < 0 or piece in {"[", "]", "\\"}:
            raise ValueError("a bracket has no other half")
        made += _expression(piece, inside=depth > 0)
    if depth:
        raise ValueError("a bracket has no other half")
    try:
        return re.compile(made, re.DOTALL)
    except re.error as error:
        raise ValueError("a range ends before it begins") from error


def check_key(key: str, where: Place | None = None) -> None:
    """Raise for a key that can be neither a name nor a pattern."""
    try:
        compile_pattern(key)
    except ValueError as error:
        problem = f"`{foreign(key)}` is no pattern: {error}"
        raise OperatorsError("health.lua.key", problem, where=where) from None


def _expression(piece: str, *, inside: bool) -> str:
    if piece in ANY:
        return ANY[piece]
    if piece[0] == "[":
        return _one_of(piece[1:-1])
    if piece[0] == "\\":
        return re.escape(piece[1:])
    alternatives = {"{": "(?:", "}": ")"} | ({",": "|"} if inside else {})
    return alternatives.get(piece) or re.escape(piece)


def _one_of(listed: str) -> str:
    """A class: the characters as they stand, or a range of two."""
    negated, listed = listed[:1] == "!", listed.removeprefix("!")
    begin, dash, end = listed[:1], listed[1:2], listed[2:]
    is_range = dash == "-" and len(end) == 1
    inner = f"{re.escape(begin)}-{re.escape(end)}" if is_range else re.escape(listed)
    return f"[{'^' if negated else ''}{inner}]"
