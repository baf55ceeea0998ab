"""Plans that are narrowed: edges are bridged, reasons kept."""

from __future__ import annotations

from tests.support.builders import make_unit_id
from tests.support.ordered_manifests import links_of
from tidegate.model.plans.plan import Edge, EdgeReason, Plan, Step
from tidegate.model.units.unit import Strength
from tidegate.plan.build.chains import narrow_plan


def a_step(name: str, *, expands: str = "") -> Step:
    return Step(
        id=name, unit=make_unit_id(name[0]), digest="", wave=int(name[1:]), expansion=expands
    )


def plan_of_steps(*names: str, edges: tuple[Edge, ...]) -> Plan:
    return Plan(digest="", steps=tuple(map(a_step, names)), edges=edges)


def without(plan: Plan, *names: str) -> Plan:
    return narrow_plan(plan, lambda step: None if step.id in names else step)


def test_an_edge_over_two_removed_steps_is_one_edge() -> None:
    chain = (Edge("a0", "a1"), Edge("a1", "a2"), Edge("a2", "a3"))
    plan = plan_of_steps("a0", "a1", "a2", "a3", edges=chain)

    assert links_of(without(plan, "a1", "a2")) == {("a0", "a3", "wave")}


def test_the_order_around_a_removed_step_is_kept() -> None:
    edges = (
        Edge("a0", "c0", EdgeReason.DEPENDS_ON),
        Edge("b0", "c0", EdgeReason.REFERENCE),
        Edge("c0", "d0", EdgeReason.DEPENDS_ON),
        Edge("c0", "e0", EdgeReason.PARENT),
    )
    plan = plan_of_steps("a0", "b0", "c0", "d0", "e0", edges=edges)

    assert links_of(without(plan, "c0")) == {
        ("a0", "d0", "dependsOn"),
        ("b0", "d0", "reference"),
        ("a0", "e0", "dependsOn"),
        ("b0", "e0", "reference"),
    }


def test_a_bridge_is_soft_if_a_part_of_it_was() -> None:
    edges = (
        Edge("a0", "b0", EdgeReason.REFERENCE, Strength.SOFT),
        Edge("b0", "c0", EdgeReason.DEPENDS_ON),
    )

    (bridge,) = without(plan_of_steps("a0", "b0", "c0", edges=edges), "b0").edges

    assert bridge == Edge("a0", "c0", EdgeReason.REFERENCE, Strength.SOFT)


def test_a_bridge_between_units_has_the_reason_between_units() -> None:
    edges = (Edge("a0", "a1"), Edge("a1", "b0", EdgeReason.DEPENDS_ON), Edge("b0", "b1"))
    plan = plan_of_steps("a0", "a1", "b0", "b1", edges=edges)

    assert links_of(without(plan, "a1", "b0")) == {("a0", "b1", "dependsOn")}


def test_a_step_at_the_beginning_takes_its_edges_along() -> None:
    plan = plan_of_steps("a0", "a1", edges=(Edge("a0", "a1"),))

    assert without(plan, "a0").edges == without(plan, "a1").edges == ()


def test_nothing_cut_leaves_all_edges_as_they_are() -> None:
    edges = (Edge("b0", "c0", EdgeReason.REFERENCE, Strength.SOFT), Edge("a0", "c0"))
    plan = plan_of_steps("a0", "b0", "c0", edges=edges)

    assert without(plan).edges == edges
