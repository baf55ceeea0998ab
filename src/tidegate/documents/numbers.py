"""Numbers as Kubernetes reads and prints them.

Kubernetes converts YAML to JSON with Go libraries, so numbers follow Go: 64 bits, octal with a
leading zero, underscores removed, whole floats printed as integers. `parse_number` returns the
number that Go holds; `to_json_number` returns the number after the round trip through JSON text.
"""

from __future__ import annotations

import math
import struct
from decimal import Decimal

from tidegate.model.text.lazy_regex import lazy_regex

_INT64 = 2**63
_UINT64 = 2**64
_MAX_DIGITS = 65
"""64 bits in the base with the most digits, and a sign."""
_MIN_LARGE_FLOAT = 1e21
_MAX_SMALL_FLOAT = 1e-6
_FLOAT32_DIGITS = 9
_MIN_PLAIN_EXPONENT = -4
_MIN_LARGE_EXPONENT = 6
_INTEGER = lazy_regex(
    r"([-+]?)(?:0[xX](?P<x>[0-9a-fA-F]+)|0[bB](?P<b>[01]+)|0[oO]?(?P<o>[0-7]+)|(?P<d>0|[1-9][0-9]*))"
)
_BASES = {"x": 16, "b": 2, "o": 8, "d": 10}
_FLOAT = lazy_regex(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_SIGN_INSIDE = lazy_regex(r"0b([-+][01]+)")
_POINT_FIRST = lazy_regex(r"\.[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+(?:_[0-9]+)*)?")


def parse_number(text: str) -> int | float | None:
    """Parse a plain scalar as a number. Returns None if it is a string.

    An integer of 2^63 or more is unsigned in Go.

    Like `resolve` in `resolve.go` of go.yaml.in/yaml 2.4.3.
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
        # The library of Go accepts a sign after the prefix, by accident.
        match = _SIGN_INSIDE.fullmatch(bare)
        fits = match is not None and len(match[1]) <= _MAX_DIGITS
        return _if_64_bits(int(match[1], 2), signed=True) if match and fits else None
    base = match.lastgroup or "d"
    digits = match[base].lstrip("0") or "0"
    if len(digits) > _MAX_DIGITS:
        return None  # does not fit, and is slow to parse
    number = int(digits, _BASES[base])
    return _if_64_bits(-number if match[1] == "-" else number, signed=bool(match[1]))


def _if_64_bits(number: int, *, signed: bool) -> int | None:
    return number if -_INT64 <= number < (_INT64 if signed else _UINT64) else None


def _parse_float(text: str) -> float | None:
    number = float(text)
    return None if math.isinf(number) else number


def to_json_number(number: float) -> int | float:
    """Return the number after Go has printed it as JSON and Kubernetes has read that text.

    An integer keeps its exact value; a number stays a float if Go prints a fraction or an exponent.
    Infinity and NaN have no JSON form: callers must reject them first.
    """
    if isinstance(number, int):
        if -_INT64 <= number < _INT64:
            return number
        number = float(number)
    if number.is_integer() and abs(number) < _MIN_LARGE_FLOAT:
        return int(Decimal(repr(number)))
    return number


def format_json(number: float) -> str:
    """Format a number as Go prints it in JSON."""
    value = to_json_number(number)
    if isinstance(value, int):
        return str(value)
    if _MAX_SMALL_FLOAT <= abs(value) < _MIN_LARGE_FLOAT:
        return format(Decimal(repr(value)), "f")
    return repr(value).replace("e-0", "e-").replace(".0e", "e")


def format_key(number: float) -> str | None:
    """Format a number that is used as a key. Returns None if Kubernetes rejects it as a key.

    Float keys are printed with 32 bits: `123456789.0:` becomes the key `1.2345679e+08`.

    Like `convertToJSONableObject` in `yaml.go` of sigs.k8s.io/yaml 1.6.0.
    """
    if isinstance(number, int):
        return str(number) if number < _INT64 else None
    short = _to_float32(number)
    if math.isfinite(short):
        return _format_float32(short)
    return ".nan" if math.isnan(short) else ".inf" if short > 0 else "-.inf"


def _to_float32(number: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", number))[0])
    except OverflowError:
        return math.copysign(math.inf, number)


def _format_float32(short: float) -> str:
    """Format a float with the fewest digits that give the same 32 bits."""
    texts = (f"{short:.{digits}e}" for digits in range(_FLOAT32_DIGITS))
    return format_general(next(text for text in texts if _to_float32(float(text)) == short))


def format_general(text: str) -> str:
    """Format a number in Go's `g` format: with an exponent if it is small, and from 1e+06 on."""
    number = Decimal(text).normalize()
    exponent = number.adjusted()
    if _MIN_PLAIN_EXPONENT <= exponent < _MIN_LARGE_EXPONENT:
        return format(number, "f")
    digits = f"{number:e}".partition("e")[0]
    return f"{digits}e{exponent:+03}"
