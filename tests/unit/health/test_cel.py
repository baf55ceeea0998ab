"""Results of CEL expressions are the same as in Flux: compared with recorded ones of cel-go."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tidegate.errors import Location
from tidegate.health.cel.interpreter import CelInterpreter
from tidegate.health.cel.messages import (
    CelCompileError,
    CelEvaluationError,
    CelMatch,
    CelRequest,
    CelResponse,
    encode_cel_response,
    read_cel_verdict,
)
from tidegate.health.cel.rules import CelRules
from tidegate.model.k8s.objects import Json, JsonObject, Kind
from tidegate.model.k8s.verdict import Health
from tidegate.model.units.expressions import HealthExpressions


class Row(msgspec.Struct, frozen=True):
    expression: str
    checked: bool
    outcome: str


class Recorded(msgspec.Struct, frozen=True):
    by: str
    object: msgspec.Raw
    rows: list[Row]


FILE = Path(__file__).parents[2] / "data" / "health" / "cel-go.json"
RECORDED = msgspec.json.decode(FILE.read_bytes(), type=Recorded)
OBJECT: JsonObject = msgspec.json.decode(RECORDED.object)
ACCEPTED_HERE = {"[1,'a'].size() == 2", "{'a': 1, 'b': 'x'}.size() == 2"}
"""Flux refuses literals of mixed types in `readyExpr`; docs/flux.md says so."""
REFUSED_HERE = {"-1 < 1u"}
"""Flux compares numbers of two types in `readyExpr`; docs/flux.md says so."""


@pytest.fixture(scope="module")
def machine() -> CelInterpreter:
    return CelInterpreter()


def outcome(answer: CelResponse) -> str:
    match answer:
        case CelMatch(place):
            return "true" if place == 0 else "not true"
        case CelCompileError():
            return "refused"
        case CelEvaluationError():
            return "error"


def test_results_equal_those_of_cel_go_except_two(machine: CelInterpreter) -> None:
    differing: dict[str, tuple[str, str]] = {}
    for row in RECORDED.rows:
        variables: Json = {"self": OBJECT, "dep": OBJECT} if row.checked else OBJECT
        question = CelRequest((row.expression,), msgspec.json.encode(variables), row.checked)
        result = outcome(machine.evaluate(question))
        if result != row.outcome:
            assert row.checked, row.expression
            differing[row.expression] = (row.outcome, result)

    assert len(RECORDED.rows) > 200
    assert differing == {
        **dict.fromkeys(ACCEPTED_HERE, ("refused", "true")),
        **dict.fromkeys(REFUSED_HERE, ("true", "refused")),
    }


@pytest.mark.parametrize(
    ("in_progress", "failed", "current", "health"),
    [
        ("true", "true", "true", Health.PROGRESSING),
        ("false", "true", "true", Health.DEGRADED),
        ("", "false", "true", Health.HEALTHY),
        ("", "", "false", Health.PROGRESSING),
        ("", "", "nothing.here", Health.UNKNOWN),
        ("", "1 +", "true", Health.UNKNOWN),
    ],
)
def test_expressions_are_evaluated_in_the_order_of_flux(
    machine: CelInterpreter, in_progress: str, failed: str, current: str, health: Health
) -> None:
    reply = encode_cel_response(machine.evaluate(CelRequest((in_progress, failed, current))))

    assert read_cel_verdict(reply, {}).health is health


def rule(group: str, kind: str, current: str = "true") -> HealthExpressions:
    return HealthExpressions(group=group, kind=kind, current=current, location=Location("a.yaml"))


def test_an_exact_kind_takes_precedence_over_its_group() -> None:
    rules = CelRules.from_expressions([rule("a.io", "", "false"), rule("a.io", "One")])

    matches = [rules.find(Kind("a.io", "v1", name)) for name in ("One", "Two")]

    assert [item and item.kind for item in matches] == ["One", ""]
    assert rules.find(Kind("b.io", "v1", "One")) is None


@pytest.mark.parametrize(
    ("observed", "is_evaluated"), [(1, False), (2, True), ("1", True), (None, True), (-1, False)]
)
def test_nothing_is_evaluated_before_a_controller_has_observed_the_last_change(
    observed: Json, *, is_evaluated: bool
) -> None:
    body: JsonObject = {
        "apiVersion": "a.io/v1",
        "kind": "One",
        "metadata": {"name": "one", "generation": 2},
        "status": {} if observed is None else {"observedGeneration": observed},
    }

    request = CelRules.from_expressions([rule("a.io", "One")]).make_request(body)

    assert (request is not None) is is_evaluated
