"""The order of steps, and cycles by name."""

from __future__ import annotations

import pytest

from tests.support.builders import make_unit_id
from tests.support.recorded_wording import RecordedWording
from tidegate.errors import Location, PlanError
from tidegate.model.plans.plan import Edge, Step
from tidegate.plan.build.cycles import reject_cycles, sort_steps


def steps_of(names: str) -> dict[str, Step]:
    return {name: Step(id=name, unit=make_unit_id(f"unit-{name}"), digest="") for name in names}


def ordered(names: str, *edges: str) -> str:
    links = [Edge(*edge) for edge in edges]
    return "".join(step.id for step in sort_steps(steps_of(names), links))


def test_steps_without_edges_keep_their_order() -> None:
    assert ordered("cab") == "cab"


def test_an_order_that_is_right_already_is_kept() -> None:
    assert ordered("abcd", "ab", "ad") == "abcd"


def test_a_step_moves_back_only_as_far_as_it_must() -> None:
    assert ordered("abcd", "ca") == "bcad"


def test_an_edge_that_is_there_twice_counts_once() -> None:
    assert ordered("xy", "yx", "yx") == "yx"


def test_units_of_a_cycle_are_named_in_the_order_of_waiting(
    wording: RecordedWording,
) -> None:
    with pytest.raises(PlanError) as raised:
        ordered("abc", "ab", "bc", "cb")

    assert raised.value.code == "plan.cycle"
    wording(raised.value.problem)


def test_a_step_that_waits_for_itself_is_named(wording: RecordedWording) -> None:
    with pytest.raises(PlanError) as raised:
        ordered("ab", "aa")

    assert raised.value.code == "plan.cycle"
    wording(raised.value.problem)


def test_units_after_a_cycle_are_not_named() -> None:
    with pytest.raises(PlanError) as raised:
        ordered("wxyz", "wx", "xw", "xy", "yz")

    assert "unit-w" in raised.value.problem
    assert "unit-y" not in raised.value.problem
    assert "unit-z" not in raised.value.problem


def test_a_long_cycle_has_a_short_message() -> None:
    names = [make_unit_id(f"kustomization-number-{n}") for n in range(500)]

    with pytest.raises(PlanError) as raised:
        reject_cycles(
            {name: {names[at - 1]: Location("all.yaml", at)} for at, name in enumerate(names)}
        )

    assert len(raised.value.problem) < 300
    assert len(raised.value.hint) < 120
    assert raised.value.location is not None
