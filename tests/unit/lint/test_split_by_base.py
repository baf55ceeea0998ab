"""Findings of two revisions: which of them are new."""

from __future__ import annotations

import pytest

from tidegate.errors import Location
from tidegate.lint.baseline import split_by_base
from tidegate.model.finding import Finding, Severity


def a_finding(message: str, *, file: str = "web.yaml", line: int = 1) -> Finding:
    return Finding(
        code="ORD004",
        severity=Severity.ERROR,
        message=message,
        location=Location(file, line),
    )


@pytest.mark.parametrize(
    ("base", "head"),
    [
        (a_finding("Job `a` in wave 1"), a_finding("Job `a` in wave 1", line=9)),
        (a_finding("Job `a` in wave 1"), a_finding("Job `a` in wave 1", file="moved.yaml")),
        (a_finding("Job `a` in wave 1"), a_finding("Job `a` in wave -20")),
        (a_finding("needs `env-tf28tfk457`"), a_finding("needs `env-89g4tffbfk`")),
        (a_finding("see web.yaml:3"), a_finding("see moved/web.yaml:12")),
    ],
)
def test_the_same_cause_is_not_new(base: Finding, head: Finding) -> None:
    assert split_by_base([head], [base]) == ([], [head])


@pytest.mark.parametrize(
    ("base", "head"),
    [
        (a_finding("Job `team-1`"), a_finding("Job `team-2`")),
        (a_finding("Job `a`"), a_finding("Job `b`")),
    ],
)
def test_another_object_is_new(base: Finding, head: Finding) -> None:
    assert split_by_base([head], [base]) == ([head], [])


def test_a_finding_that_occurs_more_often_is_new_once() -> None:
    same = a_finding("Job `a`")

    assert split_by_base([same, same], [same]) == ([same], [same])
