"""Amounts, as `resource.ParseQuantity` of Kubernetes 1.36 reads each of these texts."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest

from tidegate.model.k8s.objects import Json
from tidegate.model.k8s.quantity import FORMAT_ERROR, SUFFIX_ERROR, parse_quantity, to_quantity

READ = """
0=0  1=1  +1=1  -1=-1  007=7  1.=1  .5=0.5  1.5=1.5  0.5=0.5  500m=0.5  1n=1e-9  0.1n=1e-9
-0.1n=-1e-9  1u=1e-6  1k=1e3  1M=1e6  1G=1e9  1T=1e12  1P=1e15  1E=1e18  1Ki=1024  1.5Ki=1536
1Mi=1048576  1Gi=1073741824  1Ti=1099511627776  1Pi=1125899906842624  1Ei=1152921504606846976
8Ei=9223372036854775807  9Ei=9223372036854775807  -9Ei=-9223372036854775807  -1.5Gi=-1610612736
1e3=1000  1E3=1000  1e+3=1000  1e-3=0.001  1e-12=1e-9  0.0000000001=1e-9  1.0000000001=1.000000001
123456789012345678901234567890=123456789012345678901234567890  +=0  .=0  m=0
"""
NO_FORMAT = ["1.1.M", "1+1.0M", "aoeu", "1e3i", "1e3.5", "", " 1", "1 ", "1 Gi", "\u0661", "1\n"]
NO_SUFFIX = ["0.1mi", ".5i", "1i", "-3.01i", "-3.01e-", "1K", "1ki", "1e", "1Mi1", "1+1"]


@pytest.mark.parametrize(("text", "amount"), [row.split("=") for row in READ.split()])
def test_an_amount_is_what_kubernetes_reads(text: str, amount: str) -> None:
    assert parse_quantity(text) == Fraction(Decimal(amount))


@pytest.mark.parametrize(
    ("text", "problem"),
    [*((text, FORMAT_ERROR) for text in NO_FORMAT), *((text, SUFFIX_ERROR) for text in NO_SUFFIX)],
)
def test_an_invalid_quantity_is_rejected_with_the_message_of_a_server(
    text: str, problem: str
) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011  (the words are what counts)
        parse_quantity(text)

    assert str(caught.value) == problem
    assert to_quantity(text) is None


@pytest.mark.parametrize("text", ["1e999999999", "1e-999999999", "1" * 100_000])
def test_an_absurd_amount_costs_nothing(text: str) -> None:
    assert to_quantity(text) is None


@pytest.mark.parametrize(
    ("value", "amount"),
    [(2, 2), (0.5, Fraction(1, 2)), (True, None), (None, None), ([1], None), ({}, None)],
)
def test_a_number_is_an_amount_and_nothing_else_is(value: Json, amount: Fraction | None) -> None:
    assert to_quantity(value) == amount
