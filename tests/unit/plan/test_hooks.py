"""Plans of which hooks are left out."""

from __future__ import annotations

from tests.support.builders import make_unit_id
from tests.support.ordered_manifests import (
    a_hook,
    a_thing,
    a_unit_of,
    links_of,
    plan_of,
    results_by_name,
)
from tidegate.model.plans.manifest import Phase
from tidegate.model.plans.plan import Plan
from tidegate.plan.changes.narrow import without_hooks


def a_hooked_plan() -> Plan:
    return plan_of(
        a_hook("Pod", "pre", Phase.PRE_SYNC),
        a_thing("Pod", "a"),
        a_hook("Pod", "seed", Phase.SYNC, wave=1),
        a_hook("batch/v1 Job", "migrate", Phase.SYNC, wave=2),
        a_thing("Pod", "b", wave=2),
        a_hook("Pod", "post", Phase.POST_SYNC),
        a_hook("Pod", "sorry", Phase.SYNC_FAIL),
    )


def test_steps_with_only_hooks_are_removed() -> None:
    plan = without_hooks(a_hooked_plan(), {make_unit_id("shop")})

    assert results_by_name(plan) == {"shop/sync/0": [["a"]], "shop/sync/2": [["b"]]}


def test_the_chain_is_connected_over_removed_steps() -> None:
    plan = without_hooks(a_hooked_plan(), {make_unit_id("shop")})

    assert links_of(plan) == {("shop/sync/0", "shop/sync/2", "wave")}
    assert [step.is_last for step in plan.steps] == [False, True]


def test_the_plan_digest_covers_git_and_the_step_digest_the_actions() -> None:
    whole = a_hooked_plan()
    before = {step.id: step.digest for step in whole.steps}

    plan = without_hooks(whole, {make_unit_id("shop")})

    assert plan.digest == whole.digest
    same = {step.id: step.digest == before[step.id] for step in plan.steps}
    assert same == {"shop/sync/0": True, "shop/sync/2": False}


def test_other_units_keep_their_hooks() -> None:
    plan = plan_of(
        a_unit_of(a_hook("Pod", "pre", Phase.PRE_SYNC), a_thing("Pod", "a"), name="db"),
        a_unit_of(a_hook("Pod", "pre", Phase.PRE_SYNC), a_thing("Pod", "b"), name="web"),
    )

    bare = without_hooks(plan, {make_unit_id("web")})

    assert list(results_by_name(bare)) == [
        "db/presync/0",
        "db/sync/0",
        "web/sync/0",
    ]


def test_a_plan_without_hooks_stays_what_it_is() -> None:
    plan = plan_of(a_thing("Pod", "a"), a_thing("Pod", "b", wave=1))

    assert without_hooks(plan, {make_unit_id("shop")}) is plan
    assert without_hooks(a_hooked_plan(), set()) == a_hooked_plan()


def test_successors_of_a_removed_hook_wait_for_its_predecessors() -> None:
    plan = plan_of(
        a_unit_of(a_thing("Pod", "a"), a_hook("Pod", "post", Phase.POST_SYNC), name="db"),
        a_unit_of(
            a_hook("Pod", "pre", Phase.PRE_SYNC), a_thing("Pod", "b"), name="web", after=("db",)
        ),
    )

    bare = without_hooks(plan, {make_unit_id("db"), make_unit_id("web")})

    assert links_of(bare) == {("db/sync/0", "web/sync/0", "dependsOn")}


def test_a_unit_with_only_hooks_keeps_its_place_in_the_order() -> None:
    plan = plan_of(
        a_unit_of(a_thing("Pod", "a"), name="db"),
        a_unit_of(
            a_hook("Pod", "one", Phase.PRE_SYNC),
            a_hook("Pod", "two", Phase.SYNC),
            name="jobs",
            after=("db",),
        ),
        a_unit_of(a_thing("Pod", "b"), name="web", after=("jobs",)),
    )

    bare = without_hooks(plan, {make_unit_id("jobs")})

    assert links_of(bare) == {("db/sync/0", "web/sync/0", "dependsOn")}
