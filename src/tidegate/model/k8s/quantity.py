"""Kubernetes quantities: `500m`, `1Gi`, `1e3`."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from tidegate.model.k8s.objects import Json
from tidegate.model.text.lazy_regex import lazy_regex

FORMAT_ERROR = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
SUFFIX_ERROR = "unable to parse quantity's suffix"
NANO = 10**9
MAX_BINARY_VALUE = 2**63 - 1
"""The maximum of quantities with a binary suffix."""
MAX_LENGTH = 1_000
MAX_EXPONENT = 999
_PARTS = lazy_regex(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[+-]?[0-9]*)")
_EXPONENT = lazy_regex(r"[eE][+-]?[0-9]+")
_BINARY = {f"{letter}i": 1024**power for power, letter in enumerate("KMGTPE", 1)}
_DECIMAL = {suffix: 3 * power for power, suffix in enumerate("num", -3)}
_DECIMAL |= {suffix: 3 * power for power, suffix in enumerate(("", *"kMGTPE"))}


def to_quantity(value: Json) -> Fraction | None:
    """Convert a text or a number to a quantity. Returns None if it is none."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        return parse_quantity(str(value))
    except ValueError:
        return None


@lru_cache(maxsize=4_096)
def parse_quantity(text: str) -> Fraction:
    """Parse a quantity. Raises ValueError with the message of the API server."""
    match = _PARTS.fullmatch(text) if 0 < len(text) <= MAX_LENGTH else None
    if match is None:
        raise ValueError(FORMAT_ERROR)
    sign, integer, fraction, suffix = match.groups(default="")
    amount = Fraction(int(f"0{integer}{fraction}"), 10 ** len(fraction))
    if suffix in _BINARY:
        amount = min(_round_up(amount * _BINARY[suffix]), Fraction(MAX_BINARY_VALUE))
    else:
        amount = _round_up(amount * Fraction(10) ** _exponent(suffix))
    return -amount if sign == "-" else amount


def _exponent(suffix: str) -> int:
    if suffix in _DECIMAL:
        return _DECIMAL[suffix]
    exponent = int(suffix[1:]) if _EXPONENT.fullmatch(suffix) else MAX_EXPONENT + 1
    if abs(exponent) > MAX_EXPONENT:
        raise ValueError(SUFFIX_ERROR)
    return exponent


def _round_up(amount: Fraction) -> Fraction:
    """Round up to whole billionths."""
    return Fraction(math.ceil(amount * NANO), NANO)
