"""Units become steps and edges."""

from __future__ import annotations

import msgspec
import pytest

from tests.support.builders import make_config_map, make_unit
from tests.support.ordered_manifests import (
    a_hook,
    a_thing,
    a_unit_of,
    links_of,
    plan_of,
    results_by_name,
    step_of,
)
from tests.support.recorded_wording import RecordedWording
from tidegate.errors import PlanError
from tidegate.model.plans.manifest import Phase
from tidegate.model.plans.plan import Plan


def last_of(plan: Plan) -> list[str]:
    return [step.id for step in plan.steps if step.is_last]


def test_the_steps_of_a_unit_make_a_chain_with_reasons() -> None:
    plan = plan_of(
        a_hook("Pod", "pre", Phase.PRE_SYNC),
        a_thing("Pod", "a"),
        a_thing("Pod", "b", wave=1),
        a_hook("Pod", "post", Phase.POST_SYNC),
    )

    assert links_of(plan) == {
        ("shop/presync/0", "shop/sync/0", "phase"),
        ("shop/sync/0", "shop/sync/1", "wave"),
        ("shop/sync/1", "shop/postsync/0", "phase"),
    }


def test_a_syncfail_step_is_outside_the_chain() -> None:
    plan = plan_of(a_thing("Pod", "a"), a_hook("Pod", "sorry", Phase.SYNC_FAIL))

    assert links_of(plan) == set()
    assert [step.only_on_failure for step in plan.steps] == [False, True]


def test_the_last_step_of_a_unit_is_marked() -> None:
    plan = plan_of(a_thing("Pod", "a"), a_thing("Pod", "b", wave=1))

    assert last_of(plan) == ["shop/sync/1"]


def test_a_syncfail_step_is_never_the_last() -> None:
    assert last_of(plan_of(a_hook("Pod", "sorry", Phase.SYNC_FAIL))) == []


def test_a_last_step_with_a_hook_is_awaited_after_other_steps() -> None:
    plan = plan_of(a_thing("Pod", "a"), a_hook("Pod", "post", Phase.POST_SYNC))

    assert last_of(plan) == []


def test_an_only_step_with_a_hook_is_still_the_last() -> None:
    plan = plan_of(a_thing("Pod", "a"), a_hook("Pod", "hook", Phase.SYNC))

    assert last_of(plan) == ["shop/sync/0"]


def test_a_syncfail_hook_makes_the_only_step_one_of_several() -> None:
    plan = plan_of(a_hook("Pod", "hook", Phase.SYNC), a_hook("Pod", "sorry", Phase.SYNC_FAIL))

    assert last_of(plan) == []


def test_a_unit_starts_after_its_dependencies() -> None:
    plan = plan_of(
        a_unit_of(a_thing("Pod", "w"), name="web", after=("db", "cache")),
        a_unit_of(a_thing("Pod", "d"), a_thing("Pod", "e", wave=1), name="db"),
        a_unit_of(a_thing("Pod", "c"), name="cache"),
    )

    assert links_of(plan) == {
        ("db/sync/0", "db/sync/1", "wave"),
        ("db/sync/1", "web/sync/0", "dependsOn"),
        ("cache/sync/0", "web/sync/0", "dependsOn"),
    }
    assert list(results_by_name(plan)) == ["db/sync/0", "db/sync/1", "cache/sync/0", "web/sync/0"]


def test_a_unit_without_objects_finishes_with_its_dependencies() -> None:
    plan = plan_of(
        a_unit_of(a_thing("Pod", "d"), name="db"),
        a_unit_of(name="group", after=("db",)),
        a_unit_of(name="outer", after=("group",)),
        a_unit_of(a_thing("Pod", "w"), name="web", after=("outer", "db")),
    )

    assert links_of(plan) == {("db/sync/0", "web/sync/0", "dependsOn")}


def test_a_unit_that_depends_on_an_unknown_one_is_refused() -> None:
    with pytest.raises(PlanError, match=r"`web`.*`db`") as raised:
        plan_of(a_unit_of(a_thing("Pod", "w"), name="web", after=("db",)))

    assert raised.value.code == "plan.unknown"


def test_a_unit_without_objects_may_not_depend_on_an_unknown_one_either() -> None:
    with pytest.raises(PlanError) as raised:
        plan_of(a_unit_of(name="web", after=("db",)))

    assert raised.value.code == "plan.unknown"


def test_units_of_a_cycle_are_named_even_without_objects(wording: RecordedWording) -> None:
    with pytest.raises(PlanError) as raised:
        plan_of(
            a_unit_of(a_thing("Pod", "a"), name="a", after=("b",)),
            a_unit_of(name="b", after=("a",)),
        )

    assert raised.value.code == "plan.cycle"
    wording(raised.value.problem)


def test_a_unit_that_depends_on_itself_is_refused(wording: RecordedWording) -> None:
    with pytest.raises(PlanError, match="`a` ") as raised:
        plan_of(a_unit_of(a_thing("Pod", "a"), a_thing("Pod", "b", wave=1), name="a", after=("a",)))

    assert raised.value.code == "plan.cycle"
    wording(raised.value.problem)


def test_two_units_of_one_name_are_refused() -> None:
    with pytest.raises(PlanError) as raised:
        plan_of(a_unit_of(name="web"), a_unit_of(name="web"))

    assert raised.value.code == "plan.duplicate"


def test_units_with_colliding_step_names_are_rejected() -> None:
    near = a_unit_of(a_thing("Pod", "a"), name="prod/web")
    far = make_unit(make_config_map(), name="web", cluster="prod")

    with pytest.raises(PlanError) as raised:
        plan_of(near, far)

    assert raised.value.code == "plan.duplicate"


def test_the_cluster_of_a_unit_is_in_the_names_of_its_steps() -> None:
    far = make_unit(make_config_map(), name="web", cluster="prod")

    assert list(results_by_name(plan_of(far))) == ["prod/web/sync/0"]


def test_a_plan_without_objects_has_no_steps() -> None:
    plan = plan_of(a_unit_of(name="web"))

    assert (plan.steps, plan.edges, [unit.id.name for unit in plan.units]) == ((), (), ["web"])


def test_the_location_of_an_object_in_git_does_not_change_the_plan() -> None:
    thing = a_thing("Pod", "a")
    moved = msgspec.structs.replace(thing, origin="elsewhere.yaml:9")

    assert plan_of(thing).digest == plan_of(moved).digest


def test_a_policy_that_changes_changes_the_step_and_the_plan() -> None:
    kept, gone = a_hook("Pod", "a", Phase.SYNC), a_hook("Pod", "a", Phase.SYNC, policies=())

    assert plan_of(kept).digest != plan_of(gone).digest
    assert step_of(plan_of(kept), "shop/sync/0").digest != plan_of(gone).steps[0].digest
