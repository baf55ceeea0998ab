"""Patterns of groups and kinds, as Argo CD reads them in `resource.customizations`.

`*` also stands for a `/`. Half a bracket, which Argo CD takes as it is, is taken for a mistake.
"""

from __future__ import annotations

import re

from tidegate.errors import KnowledgeError, Location, sanitize
from tidegate.globs import compile_glob
from tidegate.model.text.lazy_regex import lazy_regex

SIGNS = frozenset("*?[{\\")
_PIECE = lazy_regex(r"\\.|\[!?[^\]\[]+\]|[{},*?\[\]\\]|[^{},*?\[\]\\]+", re.DOTALL)
_RANGE = lazy_regex(r"\[!?(.)-(.)\]", re.DOTALL)


def is_pattern(key: str) -> bool:
    return not SIGNS.isdisjoint(key)


def literal_size(key: str) -> int:
    """How much of a pattern is fixed: the more, the closer it fits."""
    return sum(len(piece) for piece in _PIECE.findall(key) if piece[0] not in "*?[{},\\")


def compile_pattern(key: str) -> re.Pattern[str]:
    """Raises ValueError for what is no pattern."""
    pieces = _PIECE.findall(key)
    if not {"[", "]", "\\"}.isdisjoint(pieces) or pieces.count("{") != pieces.count("}"):
        raise ValueError("a bracket has no other half")
    if any(found[1] > found[2] for piece in pieces if (found := _RANGE.fullmatch(piece))):
        raise ValueError("a range ends before it begins")
    return compile_glob(key)


def check_key(key: str, where: Location | None = None) -> None:
    """Raise for a key that can be neither a name nor a pattern."""
    try:
        compile_pattern(key)
    except ValueError as error:
        problem = f"`{sanitize(key)}` is no pattern: {error}"
        raise KnowledgeError("health.lua.key", problem, location=where) from None
