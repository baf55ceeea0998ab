"""Rows of health: which case decides, its message, and which rows are refused."""

from __future__ import annotations

import pytest
from msgspec import structs

from tests.support.recorded_wording import RecordedWording
from tidegate.errors import TidegateError
from tidegate.health.argo import judge
from tidegate.health.rows import (
    HealthRowIndex,
    judge_by_health_row,
    judge_by_kind_row,
    read_health_rows,
)
from tidegate.model.k8s.objects import Json
from tidegate.model.k8s.verdict import Health, Verdict
from tidegate.model.operators.rows import Check, HealthCase, KindRow, Stage

WIDGETS = """
rows:
- group: shop.example
  kinds: [Widget]
  source: our own manual
  observed: status.observedGeneration
  cases:
  - health: Suspended
    reason: Paused
    message: it is paused
    when: [{path: spec.paused, values: [true]}]
  - {health: Degraded, final: true, when: [{condition: Ready, values: ["False"]}]}
  - {health: Healthy, message_from: status.note, when: [{condition: Ready}]}
  otherwise: {health: Progressing, reason: NoStatus, message: it is being made}
- group: "*.shop.example"
  kinds: ["*"]
  source: our own manual
  cases: [{health: Healthy, when: [{path: status.phase, values: [Done]}]}]
- group: shop.example
  kinds: [Crate]
  source: our own manual
  cases:
  - by: since
    first:
    - {health: Degraded, when: [{condition: Broken}]}
    - {health: Healthy, when: [{condition: Full}, {path: item.reason, values: [Late], not: true}]}
  - among: status.boxes
    first: [{health: Suspended, message_from: item.note, when: [{path: item.open, values: [true]}]}]
"""
ROWS = HealthRowIndex.from_rows(read_health_rows(WIDGETS.encode(), "widgets.yaml"))
A_CASE = "rows:\n- {{group: a, kinds: [B], source: c, cases: [{{health: Healthy, when: [{}]}}]}}"
DATABASE = KindRow(
    group="shop.example",
    kinds=("Database",),
    versions=("v1",),
    source="our own manual",
    stages=(Stage(name="ready"),),
    ready_when=(Check(path="status.phase", values=("Up",)), Check(condition="Ready")),
    observed="status.seen",
)


def a_widget(ready: str = "", *, seen: int = 2, **spec: Json) -> dict[str, Json]:
    result: list[Json] = [
        {"type": "Ready", "status": ready, "reason": "Checked", "message": "it was looked at"}
    ]
    return {
        "apiVersion": "shop.example/v1",
        "kind": "Widget",
        "metadata": {"name": "one", "generation": 2},
        "spec": {**spec},
        "status": {
            "observedGeneration": seen,
            "conditions": result if ready else [],
            "note": "all is well",
        },
    }


def a_database(phase: str, ready: str, seen: int = 1) -> dict[str, Json]:
    result: list[Json] = [
        {"type": "Ready", "status": ready, "reason": "Starting", "message": "it starts"}
    ]
    return {
        "metadata": {"name": "db", "generation": 1},
        "status": {"phase": phase, "seen": seen, "conditions": result},
    }


def test_the_first_case_that_holds_decides() -> None:
    verdict = judge(a_widget("False", paused=True), ROWS)

    assert verdict == Verdict(Health.SUSPENDED, "Paused", "it is paused", observed_generation=2)


def test_a_case_has_the_message_of_the_condition_that_it_checks() -> None:
    verdict = judge(a_widget("False"), ROWS)

    expected = Verdict(
        Health.DEGRADED, "Checked", "it was looked at", is_final=True, observed_generation=2
    )
    assert verdict == expected


def test_a_case_can_have_the_message_of_another_field() -> None:
    verdict = judge(a_widget("True"), ROWS)

    assert verdict == Verdict(Health.HEALTHY, "Checked", "all is well", observed_generation=2)


def test_without_a_matching_case_otherwise_applies() -> None:
    verdict = judge(a_widget(), ROWS)

    assert verdict == Verdict(
        Health.PROGRESSING, "NoStatus", "it is being made", observed_generation=2
    )


def test_a_status_of_an_older_generation_is_ignored() -> None:
    verdict = judge(a_widget("True", seen=1), ROWS)

    assert verdict is not None
    assert (verdict.health, verdict.reason) == (Health.PROGRESSING, "GenerationNotObserved")
    assert verdict.observed_generation == 1


def test_a_pattern_matches_every_kind_of_every_group(wording: RecordedWording) -> None:
    body: dict[str, Json] = {"metadata": {"name": "one"}, "status": {"phase": "Done"}}

    verdict = judge({"apiVersion": "toys.shop.example/v1", "kind": "Ball", **body}, ROWS)

    assert verdict is not None
    assert verdict == Verdict(Health.HEALTHY, "Healthy", verdict.message)
    wording(verdict.message)


def test_a_row_with_a_name_takes_precedence_over_a_pattern() -> None:
    named = ROWS.find("shop.example", "Widget")

    assert named is not None
    assert named.kinds == ("Widget",)


def test_without_a_status_generation_that_of_a_condition_is_used() -> None:
    row = ROWS.named["shop.example", "Widget"]
    condition: dict[str, Json] = {"type": "Ready", "status": "True", "observedGeneration": 7}

    verdict = judge_by_health_row({"metadata": {}, "status": {"conditions": [condition]}}, row)

    assert verdict.observed_generation == 7


def a_crate(*conditions: Json, **status: Json) -> dict[str, Json]:
    head: dict[str, Json] = {"apiVersion": "shop.example/v1", "kind": "Crate", "metadata": {}}
    return {**head, "status": {"conditions": [*conditions], **status}}


def a_condition(name: str, since: str, reason: str = "Seen") -> dict[str, Json]:
    return {"type": name, "status": "True", "since": since, "reason": reason, "message": since}


def test_the_first_condition_that_fits_a_table_decides() -> None:
    full, broken = a_condition("Full", "noon"), a_condition("Broken", "one")

    verdict = judge(a_crate(broken, {"type": "Other"}, full), ROWS)

    assert verdict == Verdict(Health.HEALTHY, "Seen", "noon")


def test_a_table_skips_what_fits_none_of_its_cases() -> None:
    full, broken = a_condition("Full", "noon", "Late"), a_condition("Broken", "one")

    verdict = judge(a_crate(full, broken), ROWS)

    assert verdict == Verdict(Health.DEGRADED, "Seen", "one")


def test_a_table_goes_through_any_list() -> None:
    verdict = judge(a_crate(boxes={"left": {"open": True, "note": "the left box is open"}}), ROWS)

    assert verdict == Verdict(Health.SUSPENDED, "Suspended", "the left box is open")


def test_a_table_that_nothing_fits_leaves_the_decision_to_the_next_case() -> None:
    verdict = judge(a_crate(), ROWS)

    assert verdict is not None
    assert verdict.health is Health.PROGRESSING


def test_an_operators_object_has_the_state_of_the_first_of_its_cases_that_holds(
    wording: RecordedWording,
) -> None:
    broken = HealthCase(
        health=Health.DEGRADED, when=(Check(path="status.phase", values=("Lost",)),)
    )

    verdict = judge_by_kind_row(
        a_database("Lost", "True"), structs.replace(DATABASE, cases=(broken,))
    )

    assert verdict == Verdict(Health.DEGRADED, "Degraded", verdict.message, observed_generation=1)
    wording(verdict.message)


def test_an_operators_object_is_healthy_when_all_of_its_row_holds() -> None:
    verdict = judge_by_kind_row(a_database("Up", "True"), DATABASE)

    assert verdict == Verdict(Health.HEALTHY, "Ready", "it starts", observed_generation=1)


def test_an_operators_object_names_the_check_that_fails(wording: RecordedWording) -> None:
    verdict = judge_by_kind_row(a_database("Booting", "True"), DATABASE)

    assert verdict == Verdict(
        Health.PROGRESSING, "NotReady", verdict.message, observed_generation=1
    )
    wording(verdict.message)


def test_a_false_condition_provides_the_message() -> None:
    verdict = judge_by_kind_row(a_database("Up", "False"), DATABASE)

    assert verdict == Verdict(Health.PROGRESSING, "Starting", "it starts", observed_generation=1)


def test_an_object_that_its_operator_has_not_observed_is_progressing() -> None:
    verdict = judge_by_kind_row(a_database("Up", "True", seen=0), DATABASE)

    assert (verdict.health, verdict.reason) == (Health.PROGRESSING, "GenerationNotObserved")


@pytest.mark.parametrize(
    ("text", "line", "code"),
    [
        ("rows:\n- {group: a, kinds: [B], source: c}", 2, "file.missing"),
        ("rows:\n- {group: a, kinds: [B], source: c, cases: [{health: Well}]}", 2, "file.value"),
        ("rows:\n- {group: a, kinds: [B], source: c, cases: [], when: []}", 2, "file.key"),
        ("rows:\n- {group: a, kinds: [B], source: c, cases: [], observed: '..'}", 2, "health.row"),
        ("rows:\n- {group: a, kinds: [B], source: c, cases: [{message: so}]}", 2, "health.row"),
        (A_CASE.format("{path: a, matches: '('}"), 2, "health.row"),
        (A_CASE.format("{path: a, at_least: 1 * 2}"), 2, "health.row"),
        (A_CASE.format("{path: a, equals: '..'}"), 2, "health.row"),
        ("rows: 3", 1, "file.type"),
        ("row: []", 1, "file.key"),
    ],
)
def test_an_invalid_row_is_refused_with_its_location(text: str, line: int, code: str) -> None:
    with pytest.raises(ExceptionGroup) as refusal:
        read_health_rows(text.encode(), "mine.yaml")

    (error,) = refusal.value.exceptions
    assert isinstance(error, TidegateError)
    assert error.code == code
    assert error.location is not None
    assert (error.location.name, error.location.line) == ("mine.yaml", line)
