"""Patterns of groups and kinds, as Argo CD reads them in `resource.customizations`.

`*` also matches a `/`. An unbalanced bracket is an error here; Argo CD takes it literally.

Like `getWildcardHealthOverrideLua` in `util/lua/lua.go` of Argo CD 3.5.6.
"""

from __future__ import annotations

import re

from tidegate.errors import KnowledgeError, Location, sanitize
from tidegate.globs import compile_glob
from tidegate.model.text.lazy_regex import lazy_regex

PATTERN_CHARACTERS = frozenset("*?[{\\")
_PIECE = lazy_regex(r"\\.|\[!?[^\]\[]+\]|[{},*?\[\]\\]|[^{},*?\[\]\\]+", re.DOTALL)
_RANGE = lazy_regex(r"\[!?(.)-(.)\]", re.DOTALL)


def is_pattern(key: str) -> bool:
    """Return whether a key has wildcards."""
    return not PATTERN_CHARACTERS.isdisjoint(key)


def count_literal_characters(key: str) -> int:
    """Return how many characters of a pattern are fixed. More means more specific."""
    return sum(len(piece) for piece in _PIECE.findall(key) if piece[0] not in "*?[{},\\")


def compile_pattern(key: str) -> re.Pattern[str]:
    """Compile a pattern. Raises ValueError if it is invalid."""
    pieces = _PIECE.findall(key)
    if not {"[", "]", "\\"}.isdisjoint(pieces) or pieces.count("{") != pieces.count("}"):
        raise ValueError("a bracket is not closed")
    if any(
        range_match[1] > range_match[2]
        for piece in pieces
        if (range_match := _RANGE.fullmatch(piece))
    ):
        raise ValueError("a range is reversed")
    return compile_glob(key)


def check_key(key: str, location: Location | None = None) -> None:
    """Raise KnowledgeError for a key that is neither a name nor a pattern."""
    try:
        compile_pattern(key)
    except ValueError as error:
        problem = f"`{sanitize(key)}` is not a valid pattern: {error}"
        raise KnowledgeError("health.lua.key", problem, location=location) from None
