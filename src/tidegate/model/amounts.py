"""Numbers that rows compare with, made from an object.

3                                   itself
status.readyReplicas                what stands there; 0 where nothing does, digits in a text too
spec.replicas|1                     with a number to fall back to
count(spec.clusters)                how many items
count(status.executors,RUNNING)     how many that are this
sum(spec.nodeSets,count)            of a field of each item
status.replicas - spec.partition    terms, with blanks around + and -
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from tidegate.model.objects import Json
from tidegate.model.paths import Step, parse_path, walk
from tidegate.model.patterns import late

_TERM = late(r"(?:(count|sum)\((?P<list>[^,()]+)(?:,(?P<of>[^,()]+))?\)|(?P<path>[^|]+))")
_SIGNS = {"+": 1, "-": -1}


class AmountTerm(NamedTuple):
    """One summand: `function` is `count`, `sum` or nothing."""

    sign: int
    path: tuple[Step, ...]
    fallback: int
    function: str = ""
    of: str = ""


def amount(body: Json, text: str) -> float:
    """What a text amounts to."""
    return sum(term.sign * _value(body, term) for term in parse_amount(text))


@cache
def parse_amount(text: str) -> tuple[AmountTerm, ...]:
    """The terms of an amount. Raises ValueError for what is none."""
    words = text.split()
    signs = ["+", *words[1::2]]
    if not len(words) % 2 or not _SIGNS.keys() >= set(signs):
        raise ValueError(f"`{text}` is no amount")
    return tuple(_term(_SIGNS[sign], word) for sign, word in zip(signs, words[::2], strict=True))


def _term(sign: int, word: str) -> AmountTerm:
    known, _, fallback = word.partition("|")
    if known.isdigit():
        return AmountTerm(sign, (), int(known))
    found = _TERM.fullmatch(known)
    if found is None or not (fallback or "0").isdigit():
        raise ValueError(f"`{word}` is no amount")
    path = parse_path(found["list"] or found["path"])
    return AmountTerm(sign, path, int(fallback or 0), found[1] or "", found["of"] or "")


def _value(body: Json, term: AmountTerm) -> float:
    found = walk(body, term.path) if term.path else None
    if term.function == "sum":
        return sum(_number(walk(item, parse_path(term.of)), 0) for item in items_at(found))
    if term.function == "count":
        return sum(1 for item in items_at(found) if not term.of or item == term.of)
    return _number(found, term.fallback)


def items_at(found: Json) -> Iterator[Json]:
    """The items of a list, or what stands under the names of a mapping."""
    if isinstance(found, dict):
        yield from found.values()
    elif isinstance(found, list):
        yield from found


def _number(found: Json, fallback: int) -> float:
    if isinstance(found, str) and found.isdigit():
        return int(found)
    if isinstance(found, bool) or not isinstance(found, int | float):
        return fallback
    return found
