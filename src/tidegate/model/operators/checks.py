"""Evaluation of the `Check`s of operator rows and health rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache

from tidegate.model.k8s.objects import Json
from tidegate.model.k8s.paths import find_value, parse_path
from tidegate.model.operators.amounts import evaluate_amount, parse_amount
from tidegate.model.operators.rows import Check, HealthCase


def check_passes(check: Check, body: Json) -> bool:
    """Return whether a check holds for an object."""
    if check.at_least:
        return (
            evaluate_amount(body, check.path) >= evaluate_amount(body, str(check.at_least))
        ) is not check.negated
    return _matches(check, find_value(body, check.target_path), body) is not check.negated


def _matches(check: Check, value: Json, body: Json) -> bool:
    if check.absent:
        return value is None
    if check.equals:
        return value == find_value(body, check.equals)
    if check.matches:
        return isinstance(value, str) and _compile_pattern(check.matches).search(value) is not None
    if not check.expected_values:
        return value is not None and value is not False and value not in ("", [], {})
    return any(
        value == expected and type(value) is type(expected) for expected in check.expected_values
    )


def all_checks_pass(checks: Iterable[Check], body: Json) -> bool:
    return all(check_passes(check, body) for check in checks)


def case_errors(cases: Iterable[HealthCase]) -> Iterator[str]:
    """Yield the errors of health cases and of their nested cases."""
    for case in cases:
        if (case.health is None) is not bool(case.first):
            yield "a case needs either `health` or `first`"
        yield from check_errors(case.when)
        yield from _parse_errors(
            parse_path, case.among, *([case.message_from] if case.message_from else [])
        )
        yield from case_errors(case.first)


def check_errors(checks: Iterable[Check]) -> Iterator[str]:
    """Yield the errors in the paths, amounts and patterns of checks."""
    for check in checks:
        if check.at_least:
            yield from _parse_errors(parse_amount, check.path, str(check.at_least))
        else:
            yield from _parse_errors(
                parse_path, check.target_path, *([check.equals] if check.equals else [])
            )
            yield from _parse_errors(_compile_pattern, check.matches)


def _parse_errors(parse: Callable[[str], object], *texts: str) -> Iterator[str]:
    for text in texts:
        try:
            parse(text)
        except ValueError as error:
            yield str(error)


@cache
def _compile_pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise ValueError(f"`{text}` is not a valid regular expression: {error}") from None
