"""Asking an object whether a claim holds: the `Check`s of rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache

from tidegate.model.amounts import amount, parse_amount
from tidegate.model.objects import Json
from tidegate.model.operators import Case, Check
from tidegate.model.paths import find, parse_path


def holds(check: Check, body: Json) -> bool:
    """Whether a claim is true of an object."""
    if check.at_least:
        return (amount(body, check.path) >= amount(body, str(check.at_least))) is not check.negated
    return _is_so(check, find(body, check.place), body) is not check.negated


def _is_so(check: Check, found: Json, body: Json) -> bool:
    if check.absent:
        return found is None
    if check.equals:
        return found == find(body, check.equals)
    if check.matches:
        return isinstance(found, str) and _pattern(check.matches).search(found) is not None
    if not check.wanted:
        return found is not None and found is not False and found not in ("", [], {})
    return any(found == value and type(found) is type(value) for value in check.wanted)


def all_hold(checks: Iterable[Check], body: Json) -> bool:
    return all(holds(check, body) for check in checks)


def mistakes_in(cases: Iterable[Case]) -> Iterator[str]:
    """What is wrong with cases, and with those of their tables."""
    for case in cases:
        if (case.health is None) is not bool(case.first):
            yield "a case needs either `health` or `first`"
        yield from mistakes_of(case.when)
        yield from _refused(parse_path, case.among, *([case.tells] if case.tells else []))
        yield from mistakes_in(case.first)


def mistakes_of(checks: Iterable[Check]) -> Iterator[str]:
    """What is wrong with the paths, amounts and patterns of checks."""
    for check in checks:
        if check.at_least:
            yield from _refused(parse_amount, check.path, str(check.at_least))
        else:
            yield from _refused(parse_path, check.place, *([check.equals] if check.equals else []))
            yield from _refused(_pattern, check.matches)


def _refused(read: Callable[[str], object], *texts: str) -> Iterator[str]:
    for text in texts:
        try:
            read(text)
        except ValueError as error:
            yield str(error)


@cache
def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise ValueError(f"`{text}` is no pattern: {error}") from None
