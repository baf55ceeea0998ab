"""Plans of which objects are left out that have nothing to do."""

from __future__ import annotations

from msgspec import structs

from tests.support.builders import DEFAULT_POLICY, make_unit_id
from tests.support.ordered_manifests import a_hook, a_thing, a_unit_of, plan_of, results_by_name
from tidegate.model.k8s.objects import Ref
from tidegate.model.plans.manifest import Phase
from tidegate.model.plans.plan import ItemAction, Plan, step_items
from tidegate.model.units.policy import Policy
from tidegate.model.units.unit import UnitId
from tidegate.plan.changes.narrow import without_in_sync

SPARING = Policy(apply_out_of_sync_only=True)


def a_plan(policy: Policy = DEFAULT_POLICY) -> Plan:
    place = structs.replace(
        a_thing("Namespace", "shop"), phase=Phase.PRE_SYNC, action=ItemAction.CREATE
    )
    unit = a_unit_of(
        place,
        a_thing("Pod", "a"),
        a_thing("Pod", "b", wave=1),
        a_hook("Pod", "seed", Phase.SYNC, wave=1),
        a_thing("Pod", "c", wave=2),
        policy=policy,
    )
    return plan_of(unit)


def settled(plan: Plan, *names: str) -> set[tuple[UnitId, Ref]]:
    items = [item for step in plan.steps for item in step_items(step)]
    return {(make_unit_id("shop"), item.ref) for item in items if item.ref.name in names}


def test_existing_objects_that_are_only_created_are_skipped() -> None:
    plan = a_plan()

    left = without_in_sync(plan, settled(plan, "shop", "a"))

    assert "shop/presync/0" not in results_by_name(left)
    assert results_by_name(left)["shop/sync/0"] == [["a"]]


def test_a_sparing_unit_leaves_out_all_that_is_settled_but_its_hooks() -> None:
    plan = a_plan(SPARING)

    left = without_in_sync(plan, settled(plan, "shop", "a", "b", "seed"))

    assert results_by_name(left) == {"shop/sync/1": [["seed"]], "shop/sync/2": [["c"]]}


def test_the_last_wave_that_is_left_is_the_last() -> None:
    plan = plan_of(a_unit_of(a_thing("Pod", "a"), a_thing("Pod", "b", wave=1), policy=SPARING))

    left = without_in_sync(plan, settled(plan, "b"))

    assert [(step.id, step.is_last) for step in left.steps] == [("shop/sync/0", True)]
    assert left.digest == plan.digest


def test_a_plan_of_which_nothing_is_settled_stays_as_it_is() -> None:
    plan = a_plan(SPARING)

    assert without_in_sync(plan, set()) is plan


def test_a_plan_of_settled_objects_has_no_steps() -> None:
    plan = plan_of(a_unit_of(a_thing("Pod", "a"), a_thing("Pod", "b", wave=1), policy=SPARING))

    assert without_in_sync(plan, settled(plan, "a", "b")).steps == ()
