"""The patch from the current status to the new one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from tidegate.errors import Location
from tidegate.model.finding import Finding, Severity
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.plans.plan import Plan, PlanFragment
from tidegate.model.units.unit import UnitId
from tidegate.planning.plan import Fault, PlanResult, PreparedRollout
from tidegate.rollout.status_writer import UnitFault, merge_patch
from tidegate.sandbox.server.patches import apply_merge_patch

KEYS = st.sampled_from("abcd")
VALUES: st.SearchStrategy[Json] = st.recursive(
    st.one_of(st.booleans(), st.integers(0, 3), st.sampled_from("xyz")),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=8,
)
BODIES: st.SearchStrategy[JsonObject] = st.dictionaries(KEYS, VALUES, max_size=4)
APPS, INFRA = (UnitId("Kustomization", "", "flux-system", name) for name in ("apps", "infra"))
ERROR = Finding(
    code="source.path",
    severity=Severity.ERROR,
    message="a message in other words",
    location=Location("apps.yaml", 7, field="spec.path"),
    unit=APPS,
    unit_problem="there is no such path",
)


def prepared(*findings: Finding, **faults: Fault) -> PreparedRollout:
    plan = Plan.from_fragment(PlanFragment(units=(), steps=()))
    units = {"apps": APPS, "infra": INFRA}
    by_unit = {units[name]: fault for name, fault in faults.items()}
    return PreparedRollout(PlanResult(plan, (), findings, by_unit), findings, {})


@given(BODIES, BODIES)
def test_a_server_defaults_the_status(before: JsonObject, after: JsonObject) -> None:
    assert apply_merge_patch(before, merge_patch(before, after)) == after


@given(BODIES)
def test_an_unchanged_status_is_not_written(body: JsonObject) -> None:
    assert merge_patch(body, body) == {}


def test_the_error_of_a_unit_is_found_for_any_message() -> None:
    assert prepared(ERROR).fault_findings == {APPS: ERROR}


def test_the_error_that_blocks_a_unit_is_first() -> None:
    cause = Finding(code="plan.cycle", severity=Severity.ERROR, message="they wait for each other")

    findings = prepared(ERROR, apps=Fault("x", cause), infra=Fault("y")).fault_findings

    assert findings == {APPS: cause}


def test_an_error_that_a_status_does_not_report_is_left_out() -> None:
    assert prepared(structs.replace(ERROR, unit_problem="")).fault_findings == {}
    assert prepared(structs.replace(ERROR, severity=Severity.WARNING)).fault_findings == {}


def test_a_status_has_the_problem_without_the_unit_for_any_message() -> None:
    fault = UnitFault.from_finding(APPS, ERROR)

    assert fault == UnitFault("source.path", "spec.path", "there is no such path")


def test_a_status_of_another_unit_repeats_the_whole_message() -> None:
    assert UnitFault.from_finding(INFRA, ERROR).message == "a message in other words"
