"""Suggestions for misspelled names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from tidegate.errors import sanitize

GUESS_CUTOFF = 0.6
"""The minimum similarity of a known name to one that is wrong for sure."""
MISSPELLING_CUTOFF = 0.85
"""The minimum similarity of two names for one to be a misspelling of the other."""


def suggest(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return a hint with the closest known name, or `otherwise` if none is close."""
    closest = closest_match(name, known)
    return f"did you mean `{sanitize(closest)}`?" if closest else otherwise


def suggest_one_of(name: str, known: Sequence[str]) -> str:
    """Return a hint with the closest known name, and all known names."""
    listed = "use one of " + ", ".join(f"`{known_name}`" for known_name in known)
    return f"{suggest(name, known)} {listed}".lstrip()


def closest_match(name: str, known: Iterable[str], *, cutoff: float = GUESS_CUTOFF) -> str:
    """Return the known name that is closest to a wrong one, or an empty text if none is close."""
    names = {known_name.lower(): known_name for known_name in sorted(known)}
    return next((names[match] for match in get_close_matches(name.lower(), names, 1, cutoff)), "")


def find_misspelled(name: str, known: Iterable[str], *, cutoff: float = MISSPELLING_CUTOFF) -> str:
    """Return the other known name that a name is probably a misspelling of, or an empty text.

    The name may be right. Names with different digits are different names: `team-1` is not a
    misspelling of `team-2`.
    """
    digits = _digits(name)
    others = [other for other in known if other != name and _digits(other) == digits]
    swapped = (other for other in sorted(others) if _has_swapped_letters(name, other))
    return next(swapped, "") or closest_match(name, others, cutoff=cutoff)


def _has_swapped_letters(name: str, other: str) -> bool:
    """Return whether two names differ in the order of two adjacent letters."""
    return any(
        name[:at] + name[at + 1] + name[at] + name[at + 2 :] == other for at in range(len(name) - 1)
    )


def _digits(name: str) -> str:
    return "".join(char for char in name if char.isdigit())
