"""Suggestions for misspelled names."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

SIMILARITY_CUTOFF = 0.8
"""The minimum similarity of two names for one to be a misspelling of the other."""


def closest_match(name: str, known: Iterable[str]) -> str:
    """Return the closest known name. Returns an empty text if none is close enough.

    Names with different digits are different names: `team-1` is not a misspelling of `team-2`.
    """
    digits = _digits(name)
    candidates = sorted(
        {candidate for candidate in known if candidate != name and _digits(candidate) == digits}
    )
    return next(iter(get_close_matches(name, candidates, n=1, cutoff=SIMILARITY_CUTOFF)), "")


def _digits(name: str) -> str:
    return "".join(char for char in name if char.isdigit())
