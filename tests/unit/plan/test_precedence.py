"""What comes before what, of units, objects and steps, becomes edges between steps."""

from __future__ import annotations

import pytest

from tests.support.builders import make_unit_id
from tests.support.ordered_manifests import a_hook, a_thing, a_unit_of, links_of, no_budget, ref_of
from tidegate.errors import Location, PlanError
from tidegate.model.k8s.objects import ClusterRef
from tidegate.model.plans.manifest import Manifests, Phase
from tidegate.model.plans.plan import Edge, EdgeReason, Plan, Precedence, PrecedenceEnd
from tidegate.model.units.unit import Dependency, Destination, Strength, Unit
from tidegate.plan.build.build import build_fragment, build_plan


def two_waves(name: str) -> Manifests:
    """A unit `db` with the Pods `db-0` and `db-1`, one after another."""
    things = (a_thing("Pod", f"{name}-{wave}", wave=wave) for wave in range(2))
    return a_unit_of(*things, name=name)


def planned(*units: Manifests, before: PrecedenceEnd, after: PrecedenceEnd) -> Plan:
    precedence = Precedence(before=before, after=after, reason=EdgeReason.PARENT)
    return build_plan(units, [precedence], readiness_timeout=no_budget)


def between(plan: Plan) -> set[tuple[str, str, str]]:
    return {link for link in links_of(plan) if link[2] != "wave"}


def pod(name: str) -> ClusterRef:
    return ClusterRef("", ref_of("Pod", name))


@pytest.mark.parametrize(
    ("before", "after", "edge"),
    [
        (make_unit_id("db"), make_unit_id("web"), ("db/sync/1", "web/sync/0")),
        (pod("db-0"), make_unit_id("web"), ("db/sync/0", "web/sync/0")),
        (make_unit_id("db"), pod("web-1"), ("db/sync/1", "web/sync/1")),
        (pod("db-0"), pod("web-1"), ("db/sync/0", "web/sync/1")),
        ("db/sync/0", make_unit_id("web"), ("db/sync/0", "web/sync/0")),
        (make_unit_id("db"), "web/sync/1", ("db/sync/1", "web/sync/1")),
    ],
)
def test_a_unit_spans_its_first_to_its_last_step(
    before: PrecedenceEnd, after: PrecedenceEnd, edge: tuple[str, str]
) -> None:
    plan = planned(two_waves("web"), two_waves("db"), before=before, after=after)

    assert between(plan) == {(*edge, "parent")}
    places = [step.id for step in plan.steps]
    assert places.index(edge[0]) < places.index(edge[1])


def test_syncfail_steps_are_neither_first_nor_last_of_a_unit() -> None:
    sorry = a_hook("Pod", "sorry", Phase.SYNC_FAIL)
    db = a_unit_of(a_thing("Pod", "a"), sorry, name="db")

    plan = planned(db, two_waves("web"), before=make_unit_id("db"), after=make_unit_id("web"))

    assert between(plan) == {("db/sync/0", "web/sync/0", "parent")}


def test_a_unit_without_objects_finishes_with_its_dependencies() -> None:
    result = [
        Precedence(before=make_unit_id("a"), after=make_unit_id("empty")),
        Precedence(before=pod("b-0"), after=make_unit_id("empty")),
        Precedence(before=make_unit_id("empty"), after=make_unit_id("web")),
    ]
    units = [two_waves("a"), two_waves("b"), a_unit_of(name="empty"), two_waves("web")]

    plan = build_plan(units, result, readiness_timeout=no_budget)

    assert between(plan) == {
        ("a/sync/1", "web/sync/0", "dependsOn"),
        ("b/sync/0", "web/sync/0", "dependsOn"),
    }


def test_an_object_of_several_steps_precedes_all_dependents() -> None:
    twice = [a_hook("Pod", "h", phase) for phase in (Phase.PRE_SYNC, Phase.POST_SYNC)]
    db = a_unit_of(*twice, a_thing("Pod", "a"), name="db")

    plan = planned(db, two_waves("web"), before=pod("h"), after=make_unit_id("web"))

    assert {link for link in between(plan) if link[2] == "parent"} == {
        ("db/presync/0", "web/sync/0", "parent"),
        ("db/postsync/0", "web/sync/0", "parent"),
    }


def test_a_precedence_between_objects_of_one_step_is_no_edge_to_itself() -> None:
    plan = planned(two_waves("db"), before=make_unit_id("db"), after=pod("db-1"))

    assert between(plan) == set()


def test_an_edge_has_the_strength_and_the_place_of_its_declaration() -> None:
    precedence = Precedence(
        before=make_unit_id("db"),
        after=make_unit_id("web"),
        reason=EdgeReason.REFERENCE,
        strength=Strength.SOFT,
        location="web.yaml:7",
    )

    plan = build_plan(
        [two_waves("db"), two_waves("web")], [precedence], readiness_timeout=no_budget
    )

    (edge,) = [edge for edge in plan.edges if edge.reason is EdgeReason.REFERENCE]
    expected = Edge("db/sync/1", "web/sync/0", EdgeReason.REFERENCE, Strength.SOFT, "web.yaml:7")
    assert edge == expected


def test_a_plan_fragment_can_follow_a_step_of_another_one() -> None:
    precedence = Precedence(
        before="parent/sync/3", after=make_unit_id("web"), reason=EdgeReason.PARENT
    )

    fragment = build_fragment([two_waves("web")], [precedence], readiness_timeout=no_budget)

    assert Edge("parent/sync/3", "web/sync/0", EdgeReason.PARENT) in fragment.edges


def depending(name: str, *dependencies: Dependency, cluster: str = "") -> Manifests:
    things = (a_thing("Pod", f"{name}-0"),)
    unit = Unit(
        id=make_unit_id(name), destination=Destination(cluster), dependencies=tuple(dependencies)
    )
    return Manifests(unit=unit, manifests=things)


def test_a_dependency_on_an_object_of_a_unit_is_an_edge_to_its_step() -> None:
    place = Location("web.yaml", 4)
    after = Dependency(ref=pod("db-0").ref, location=place)

    plan = build_plan([two_waves("db"), depending("web", after)], readiness_timeout=no_budget)

    (edge,) = [edge for edge in plan.edges if edge.reason is EdgeReason.DEPENDS_ON]
    assert (edge.before, edge.after, edge.location) == ("db/sync/0", "web/sync/0", str(place))
    assert "web/awaits" not in {step.id for step in plan.steps}


def test_an_object_of_the_same_name_in_another_cluster_is_not_the_one() -> None:
    after = Dependency(ref=pod("db-0").ref)

    plan = build_plan(
        [two_waves("db"), depending("web", after, cluster="east")], readiness_timeout=no_budget
    )

    assert "east/web/awaits" in {step.id for step in plan.steps}
    assert not [edge for edge in plan.edges if edge.reason is EdgeReason.DEPENDS_ON]


def test_a_dependency_on_a_missing_unit_is_reported_with_its_location() -> None:
    missing = Dependency(unit=make_unit_id("gone"), location=Location("web.yaml", 9))

    with pytest.raises(PlanError) as raised:
        build_plan([depending("web", missing)], readiness_timeout=no_budget)

    assert raised.value.code == "plan.unknown"
    assert raised.value.location == Location("web.yaml", 9)
