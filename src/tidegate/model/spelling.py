"""Names that may be meant where another one is written."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

ALIKE = 0.8
"""How much of two names must be the same, so that one may be a slip of the other."""


def meant(name: str, known: Iterable[str]) -> str:
    """The known name that comes nearest; empty where none does.

    Names that differ in their digits are names of a row: `team-1` is no slip of `team-2`.
    """
    digits = _digits(name)
    alike = sorted({one for one in known if one != name and _digits(one) == digits})
    return next(iter(get_close_matches(name, alike, n=1, cutoff=ALIKE)), "")


def _digits(name: str) -> str:
    return "".join(one for one in name if one.isdigit())
