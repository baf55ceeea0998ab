"""Numeric expressions over an object, which operator rows compare with.

3                                   a number
status.readyReplicas                a field; 0 if it is absent; digits in a string count too
spec.replicas|1                     a field with a default
count(spec.clusters)                number of items
count(status.executors,RUNNING)     number of items with this value
sum(spec.nodeSets,count)            sum of a field over the items
status.replicas - spec.partition    terms, with spaces around + and -
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from tidegate.model.k8s.objects import Json
from tidegate.model.k8s.paths import PathStep, follow_path, parse_path
from tidegate.model.text.lazy_regex import lazy_regex

_TERM = lazy_regex(r"(?:(count|sum)\((?P<list>[^,()]+)(?:,(?P<of>[^,()]+))?\)|(?P<path>[^|]+))")
_SIGNS = {"+": 1, "-": -1}


class AmountTerm(NamedTuple):
    """One summand: `function` is `count`, `sum` or empty."""

    sign: int
    path: tuple[PathStep, ...]
    fallback: int
    function: str = ""
    item: str = ""


def evaluate_amount(body: Json, text: str) -> float:
    """Evaluate a numeric expression for an object. Raises ValueError for an invalid expression."""
    return sum(term.sign * _evaluate_term(body, term) for term in parse_amount(text))


@cache
def parse_amount(text: str) -> tuple[AmountTerm, ...]:
    """Parse a numeric expression into its terms. Raises ValueError for an invalid expression."""
    words = text.split()
    signs = ["+", *words[1::2]]
    if not len(words) % 2 or not _SIGNS.keys() >= set(signs):
        raise ValueError(f"`{text}` is not a numeric expression")
    return tuple(
        _parse_term(_SIGNS[sign], word) for sign, word in zip(signs, words[::2], strict=True)
    )


def _parse_term(sign: int, word: str) -> AmountTerm:
    operand, _, fallback = word.partition("|")
    if operand.isdigit():
        return AmountTerm(sign, (), int(operand))
    match = _TERM.fullmatch(operand)
    if match is None or not (fallback or "0").isdigit():
        raise ValueError(f"`{word}` is not a numeric expression")
    path = parse_path(match["list"] or match["path"])
    return AmountTerm(sign, path, int(fallback or 0), match[1] or "", match["of"] or "")


def _evaluate_term(body: Json, term: AmountTerm) -> float:
    value = follow_path(body, term.path) if term.path else None
    if term.function == "sum":
        return sum(
            _to_number(follow_path(item, parse_path(term.item)), 0) for item in list_items(value)
        )
    if term.function == "count":
        return sum(1 for item in list_items(value) if not term.item or item == term.item)
    return _to_number(value, term.fallback)


def list_items(value: Json) -> Iterator[Json]:
    """Yield the items of a list, or the values of a mapping."""
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _to_number(value: Json, fallback: int) -> float:
    if isinstance(value, str) and value.isdigit():
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return fallback
    return value
