"""Amounts as Kubernetes reads them: `500m`, `1Gi`, `1e3`."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from tidegate.model.objects import Json
from tidegate.model.patterns import late

FORMAT = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
SUFFIX = "unable to parse quantity's suffix"
NANO = 10**9
LARGEST = 2**63 - 1
"""What is written with a binary suffix is never more than this."""
LONGEST = 1_000
FARTHEST = 999
_PARTS = late(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[+-]?[0-9]*)")
_EXPONENT = late(r"[eE][+-]?[0-9]+")
_BINARY = {f"{letter}i": 1024**power for power, letter in enumerate("KMGTPE", 1)}
_DECIMAL = {suffix: 3 * power for power, suffix in enumerate("num", -3)}
_DECIMAL |= {suffix: 3 * power for power, suffix in enumerate(("", *"kMGTPE"))}


def quantity_of(value: Json) -> Fraction | None:
    """How much a text or a number is; None where it is no quantity."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        return read_quantity(str(value))
    except ValueError:
        return None


@lru_cache(maxsize=4_096)
def read_quantity(written: str) -> Fraction:
    """How much is written there. Raises ValueError in the server's words."""
    found = _PARTS.fullmatch(written) if 0 < len(written) <= LONGEST else None
    if found is None:
        raise ValueError(FORMAT)
    sign, whole, below, suffix = found.groups(default="")
    amount = Fraction(int(f"0{whole}{below}"), 10 ** len(below))
    if suffix in _BINARY:
        amount = min(_rounded(amount * _BINARY[suffix]), Fraction(LARGEST))
    else:
        amount = _rounded(amount * Fraction(10) ** _exponent(suffix))
    return -amount if sign == "-" else amount


def _exponent(suffix: str) -> int:
    if suffix in _DECIMAL:
        return _DECIMAL[suffix]
    exponent = int(suffix[1:]) if _EXPONENT.fullmatch(suffix) else FARTHEST + 1
    if abs(exponent) > FARTHEST:
        raise ValueError(SUFFIX)
    return exponent


def _rounded(amount: Fraction) -> Fraction:
    """Up to whole billionths: who wants a little gets a little."""
    return Fraction(math.ceil(amount * NANO), NANO)
