"""Thousands of bodies, and the verdict of Argo CD 3.5.6 itself on each.

tests/data/health/argo.jsonl.gz is written by `python -m tests.conformance.oracles.argo_health`.
"""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path

import msgspec
import pytest

from tidegate.errors import sanitize
from tidegate.health.argo import builtin_rows, judge
from tidegate.health.argo.judge import RULES
from tidegate.health.rows import HealthRow
from tidegate.model.k8s.objects import Json, Kind
from tidegate.model.k8s.verdict import Health, Verdict

ANSWERS = Path(__file__).parents[2] / "data" / "health" / "argo.jsonl.gz"
SCRIPT_ERRORS = ("<string>:", "failed to convert conditions annotation")
"""How messages begin that are about a mistake of a program and not about the object."""


class Answer(msgspec.Struct, frozen=True):
    """The verdict of Argo CD; a script that decides nothing leaves the status out."""

    status: str = "Unknown"
    message: str = ""


class RecordedAnswer(msgspec.Struct, frozen=True):
    body: dict[str, object]
    answer: Answer | None


class Judged(msgspec.Struct, frozen=True):
    """One body, Argo CD's answer, ours."""

    kind: Kind
    body: dict[str, Json]
    theirs: Answer | None
    ours: Verdict | None


@cache
def judged() -> tuple[Judged, ...]:
    lines = gzip.decompress(ANSWERS.read_bytes()).splitlines()
    bodies = [msgspec.json.decode(line)["body"] for line in lines]
    answers = [msgspec.json.decode(line, type=RecordedAnswer).answer for line in lines]
    return tuple(
        Judged(Kind.of(body["apiVersion"], body["kind"]), body, answer, judge(body))
        for body, answer in zip(bodies, answers, strict=True)
    )


def in_rules(item: Judged) -> bool:
    return (item.kind.group, item.kind.name) in RULES


def states_of(row: HealthRow) -> set[str]:
    """What a row may say, except that a script stops: most bodies at which it does are odd."""
    cases = [inner for case in (*row.cases, row.otherwise) for inner in (case, *case.first)]
    return {case.health for case in cases if case.health and case.reason != "NotUnderstood"}


def test_every_object_has_the_health_that_argo_cd_gives_it() -> None:
    differing = [
        (item.body, item.theirs, item.ours)
        for item in judged()
        if item.ours is None or item.ours.is_checked
        if (item.ours and item.ours.health.value) != (item.theirs and item.theirs.status)
    ]

    assert differing[:1] == []


def test_messages_for_built_in_kinds_equal_those_of_argo_cd() -> None:
    differing = [
        (item.body, item.theirs, item.ours)
        for item in judged()
        if item.ours is not None and item.theirs is not None and in_rules(item)
        if item.theirs.message.strip(", ") and not item.theirs.message.startswith(SCRIPT_ERRORS)
        if sanitize(item.theirs.message) != item.ours.message
    ]

    assert differing[:1] == []


def test_every_verdict_has_a_reason_and_a_message() -> None:
    verdicts = [(item.body, item.ours) for item in judged() if item.ours is not None]

    incomplete = [(body, ours) for body, ours in verdicts if not (ours.reason and ours.message)]

    assert incomplete[:1] == []


@pytest.mark.parametrize("kind", sorted(RULES))
def test_every_rule_was_recorded_for_healthy_and_other_objects(kind: tuple[str, str]) -> None:
    statuses = {
        item.theirs.status
        for item in judged()
        if (item.kind.group, item.kind.name) == kind and item.theirs is not None
    }

    assert Health.HEALTHY in statuses
    assert len(statuses) > 1


def test_every_state_of_every_row_was_recorded() -> None:
    recorded: dict[tuple[str, str], set[str]] = {}
    for item in judged():
        states = recorded.setdefault((item.kind.group, item.kind.name), set())
        states.add(item.theirs.status if item.theirs is not None else "")

    unproven = {
        (group, kind): sorted(missing)
        for (group, kind), row in builtin_rows().named.items()
        if (
            missing := states_of(row)
            - recorded[group.replace("*", "any"), kind.replace("*", "Thing")]
        )
    }

    assert unproven == {}
