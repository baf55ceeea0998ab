"""Numbers as Kubernetes reads and prints them.

Kubernetes turns YAML into JSON with Go's libraries, so a number is what Go makes of it: 64 bits,
octal with a leading zero, underscores dropped, whole floats printed as whole numbers. `parse` gives
the number as Go holds it; `as_json` gives what is left after the trip through JSON text.
"""

from __future__ import annotations

import math
import struct
from decimal import Decimal

from tidegate.model.patterns import late

_INT64 = 2**63
_UINT64 = 2**64
_MOST_DIGITS = 65
"""64 bits in the base with the most digits, and a sign."""
_LONG_FLOAT = 1e21
_SHORT_FLOAT = 1e-6
_FLOAT32_DIGITS = 9
_LEAST_PLAIN_EXPONENT = -4
_FIRST_LARGE_EXPONENT = 6

_INTEGER = late(
    r"([-+]?)(?:0[xX](?P<x>[0-9a-fA-F]+)|0[bB](?P<b>[01]+)|0[oO]?(?P<o>[0-7]+)|(?P<d>0|[1-9][0-9]*))"
)
_BASES = {"x": 16, "b": 2, "o": 8, "d": 10}
_FLOAT = late(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_SIGN_INSIDE = late(r"0b([-+][01]+)")
_POINT_FIRST = late(r"\.[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+(?:_[0-9]+)*)?")


def parse(text: str) -> int | float | None:
    """The number that a plain scalar means, or None if it is a string.

    An integer of 2^63 or more is what Go holds as unsigned.
    """
    if text.startswith("."):
        return _parse_float(text) if _POINT_FIRST.fullmatch(text) else None
    bare = text.replace("_", "")
    number = _parse_integer(bare)
    if number is None and _FLOAT.fullmatch(bare):
        return _parse_float(bare)
    return number


def _parse_integer(bare: str) -> int | None:
    match = _INTEGER.fullmatch(bare)
    if match is None:
        # A sign behind the prefix is an accident of Go's library, and so it counts.
        match = _SIGN_INSIDE.fullmatch(bare)
        fits = match is not None and len(match[1]) <= _MOST_DIGITS
        return _fit(int(match[1], 2), signed=True) if match and fits else None
    base = match.lastgroup or "d"
    digits = match[base].lstrip("0") or "0"
    if len(digits) > _MOST_DIGITS:
        return None  # it would not fit, and takes long to count
    number = int(digits, _BASES[base])
    return _fit(-number if match[1] == "-" else number, signed=bool(match[1]))


def _fit(number: int, *, signed: bool) -> int | None:
    return number if -_INT64 <= number < (_INT64 if signed else _UINT64) else None


def _parse_float(text: str) -> float | None:
    number = float(text)
    return None if math.isinf(number) else number


def as_json(number: float) -> int | float:
    """The number after Go has printed it as JSON and Kubernetes has read that text again.

    An integer means exactly what its digits say; a float is left where Go prints a fraction or an
    exponent. Infinity and not-a-number have no JSON: callers refuse them first.
    """
    if isinstance(number, int):
        if -_INT64 <= number < _INT64:
            return number
        number = float(number)
    if number.is_integer() and abs(number) < _LONG_FLOAT:
        return int(Decimal(repr(number)))
    return number


def print_json(number: float) -> str:
    """The text Go prints for a number in JSON."""
    known = as_json(number)
    if isinstance(known, int):
        return str(known)
    if _SHORT_FLOAT <= abs(known) < _LONG_FLOAT:
        return format(Decimal(repr(known)), "f")
    return repr(known).replace("e-0", "e-").replace(".0e", "e")


def print_key(number: float) -> str | None:
    """The text of a number that stands as a key; None if Kubernetes refuses it as one.

    Float keys are printed with 32 bits: `123456789.0:` becomes the key `1.2345679e+08`.
    """
    if isinstance(number, int):
        return str(number) if number < _INT64 else None
    short = _as_float32(number)
    if math.isfinite(short):
        return _shortest(short)
    return ".nan" if math.isnan(short) else ".inf" if short > 0 else "-.inf"


def _as_float32(number: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", number))[0])
    except OverflowError:
        return math.copysign(math.inf, number)


def _shortest(short: float) -> str:
    """The fewest digits that give the same 32 bits."""
    texts = (f"{short:.{digits}e}" for digits in range(_FLOAT32_DIGITS))
    return print_short(next(text for text in texts if _as_float32(float(text)) == short))


def print_short(text: str) -> str:
    """A fraction in Go's `g` format: an exponent where it is small, and from 1e+06 on."""
    number = Decimal(text).normalize()
    exponent = number.adjusted()
    if _LEAST_PLAIN_EXPONENT <= exponent < _FIRST_LARGE_EXPONENT:
        return format(number, "f")
    digits = f"{number:e}".partition("e")[0]
    return f"{digits}e{exponent:+03}"
