"""Numbers on their way through Go's hands."""

from __future__ import annotations

import pytest

from tidegate.documents import numbers


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1000.0, "1000"),
        (-0.0, "0"),
        (0.1, "0.1"),
        (0.000001, "0.000001"),
        (0.0000001, "1e-7"),
        (1.5e-300, "1.5e-300"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (-1.25e30, "-1.25e+30"),
        (2.0**62, "4611686018427388000"),
        (2**62, "4611686018427387904"),
        (2**63, "9223372036854776000"),
        (-(2**63), "-9223372036854775808"),
        (10**22, "1e+22"),
    ],
)
def test_a_number_is_printed_like_go(number: float, text: str) -> None:
    assert numbers.format_json(number) == text


def test_a_number_that_has_become_json_stays_what_it_is() -> None:
    once = numbers.to_json_number(2**64 - 1)

    assert once == 18446744073709552000
    assert numbers.to_json_number(once) == once


@pytest.mark.parametrize(
    "text", ["", "-", "1.2.3", "0x", "1e", "12:30", "1 2", "\u0663", "1\u0663"]
)
def test_text_that_resembles_a_number_is_not_a_number(text: str) -> None:
    assert numbers.parse_number(text) is None


@pytest.mark.parametrize(
    ("number", "key"),
    [
        (3.4028235e38, "3.4028235e+38"),
        (3.5e38, ".inf"),
        (1e-46, "0"),
        (0.3, "0.3"),
        (3.14159265358979, "3.1415927"),
        (999999.0, "999999"),
        (2**63, None),
    ],
)
def test_a_float_that_is_a_key_has_32_bits(number: float, key: str | None) -> None:
    assert numbers.format_key(number) == key
