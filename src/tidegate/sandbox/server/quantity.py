"""Amounts as Kubernetes writes them."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

from tidegate.model.objects import Json

QUANTITY = re.compile(r"([+-]?[0-9.]+)(?:([eE][+-]?[0-9]+)|([numkMGTPE]i?|))")
SCALES = {"": Fraction(1), "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000)}
SCALES |= {letter: Fraction(1000**power) for power, letter in enumerate("kMGTPE", 1)}
SCALES |= {f"{letter}i": Fraction(1024**power) for power, letter in enumerate("KMGTPE", 1)}


def quantity_of(value: Json) -> Fraction:
    """An amount: `10Gi`, `500M`, `1e9`, `250m`; nothing where it is none."""
    return _read(str(value))


@lru_cache(maxsize=1_024)
def _read(written: str) -> Fraction:
    found = QUANTITY.fullmatch(written.replace("Ki", "ki"))
    if found is None:
        return Fraction(0)
    number = Fraction(f"{found[1]}{found[2] or ''}")
    return number * SCALES[(found[3] or "").replace("ki", "Ki")]
