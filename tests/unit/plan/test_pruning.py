"""What has left Git goes inside the sync."""

from __future__ import annotations

import pytest

from tests.support.builders import STAGED_POLICY, make_unit_id
from tests.support.ordered_manifests import (
    CRD,
    SHOP,
    a_hook,
    a_thing,
    a_unit_of,
    add_prunes,
    links_of,
    plan_of,
    results_by_name,
    stale,
)
from tidegate.model.plans.manifest import Phase
from tidegate.model.plans.plan import Plan, PlannedUnit
from tidegate.model.units.policy import ObjectOptions, Permission
from tidegate.plan.changes.prune import PruneCandidate, prune_units, reverse_waves

LAST = ObjectOptions(prune_last=True)
NEVER = ObjectOptions(prune=Permission.NO)
ASKS = ObjectOptions(prune=Permission.ASK)
NOTHING = plan_of(a_unit_of())
STAGED_SHOP = PlannedUnit(id=make_unit_id("shop"), policy=STAGED_POLICY)


def kept(*waves: int) -> Plan:
    return plan_of(*(a_thing("ConfigMap", f"k{wave}", wave=wave) for wave in waves))


def gone(*waves: int, handling: ObjectOptions | None = None) -> list[PruneCandidate]:
    return [
        stale("Pod", f"p{wave}{'abc'[at]}", wave, handling)
        for wave in dict.fromkeys(waves)
        for at in range(waves.count(wave))
    ]


def pruned(plan: Plan, *going: PruneCandidate) -> dict[str, list[list[str]]]:
    return results_by_name(add_prunes(plan, SHOP, going))


@pytest.mark.parametrize(
    ("waves", "swapped"),
    [
        ([1, 3, 4], {1: 4, 3: 3, 4: 1}),
        ([1, 3, 3, 4, 5], {1: 5, 3: 4, 4: 3, 5: 1}),
        ([0, 1, 2, 3, 4], {0: 4, 1: 3, 2: 2, 3: 1, 4: 0}),
        ([-2], {-2: -2}),
        ([], {}),
    ],
)
def test_waves_are_turned_round_and_stay_the_same_numbers(
    waves: list[int], swapped: dict[int, int]
) -> None:
    assert reverse_waves(waves) == swapped


def test_pruning_goes_from_the_highest_wave_to_the_lowest() -> None:
    assert pruned(NOTHING, *gone(0, 1, 2, 3, 4)) == {
        "shop/sync/0": [["-p4a"]],
        "shop/sync/1": [["-p3a"]],
        "shop/sync/2": [["-p2a"]],
        "shop/sync/3": [["-p1a"]],
        "shop/sync/4": [["-p0a"]],
    }


def test_waves_that_stay_are_not_turned_round() -> None:
    assert pruned(kept(0, 2), *gone(1, 3, 4)) == {
        "shop/sync/0": [["k0"]],
        "shop/sync/1": [["-p4a"]],
        "shop/sync/2": [["k2"]],
        "shop/sync/3": [["-p3a"]],
        "shop/sync/4": [["-p1a"]],
    }


def test_a_wave_deletes_before_it_applies() -> None:
    assert pruned(kept(-1, 3, 5), *gone(1, 3, 3, 4, 5)) == {
        "shop/sync/-1": [["k-1"]],
        "shop/sync/1": [["-p5a"]],
        "shop/sync/3": [["-p4a"], ["k3"]],
        "shop/sync/4": [["-p3a", "-p3b"]],
        "shop/sync/5": [["-p1a"], ["k5"]],
    }


@pytest.mark.parametrize(
    ("plan", "waves", "wave"),
    [
        (kept(0), (1, 2, 3, 4), 5),
        (kept(0), (0,), 1),
        (kept(2), (1, 7), 8),
        (kept(-9, -3), (-2,), 1),
        (kept(12), (1,), 13),
    ],
)
def test_objects_with_prune_last_are_pruned_after_every_wave(
    plan: Plan, waves: tuple[int, ...], wave: int
) -> None:
    steps = pruned(plan, *gone(*waves, handling=LAST))

    going = [name for step, batches in steps.items() for name in batches[0] if name[0] == "-"]
    assert len(going) == len(waves)
    assert steps[f"shop/sync/{wave}"] == [sorted(going)]


def test_an_object_with_prune_last_does_not_change_the_reverse_order() -> None:
    going = [*gone(1, 2, 4), *gone(3, handling=LAST)]

    assert pruned(kept(0), *going) == {
        "shop/sync/0": [["k0"]],
        "shop/sync/1": [["-p4a"]],
        "shop/sync/3": [["-p2a"]],
        "shop/sync/4": [["-p1a"]],
        "shop/sync/5": [["-p3a"]],
    }


def test_waves_of_hooks_do_not_count_for_what_is_pruned_last() -> None:
    plan = plan_of(a_thing("Pod", "a"), a_hook("Pod", "post", Phase.POST_SYNC, wave=9))

    assert list(pruned(plan, *gone(0, handling=LAST))) == [
        "shop/sync/0",
        "shop/sync/1",
        "shop/postsync/9",
    ]


def test_objects_with_prune_false_are_kept() -> None:
    plan = kept(0)

    assert add_prunes(plan, SHOP, gone(0, 1, handling=NEVER)) is plan


def test_objects_with_prune_false_count_for_the_reverse_order() -> None:
    going = [*gone(1, handling=NEVER), *gone(3, 4)]

    assert pruned(NOTHING, *going) == {"shop/sync/1": [["-p4a"]], "shop/sync/3": [["-p3a"]]}


def test_an_object_that_needs_a_confirmation_is_marked_in_the_plan() -> None:
    assert pruned(kept(0), *gone(0, handling=ASKS)) == {"shop/sync/0": [["-p0a?"], ["k0"]]}


def test_definitions_are_never_pruned() -> None:
    plan = kept(0)

    assert add_prunes(plan, SHOP, [stale(CRD, "gadgets.dev")]) is plan


def test_nothing_to_prune_leaves_the_plan_as_it_is() -> None:
    plan = kept(0)

    assert add_prunes(plan, SHOP, []) is plan


def test_the_plan_digest_covers_git_and_the_step_digest_the_actions() -> None:
    plan = kept(0, 1)

    with_prunes = add_prunes(plan, SHOP, gone(0))

    assert with_prunes.digest == plan.digest
    assert with_prunes.steps[0].digest != plan.steps[0].digest
    assert with_prunes.steps[1] == plan.steps[1]


def test_steps_that_only_prune_are_part_of_the_chain() -> None:
    plan = add_prunes(kept(0, 2), SHOP, gone(1, 3))

    assert links_of(plan) == {
        ("shop/sync/0", "shop/sync/1", "wave"),
        ("shop/sync/1", "shop/sync/2", "wave"),
        ("shop/sync/2", "shop/sync/3", "wave"),
    }
    assert [step.is_last for step in plan.steps] == [False, False, False, True]


def test_hooks_run_after_objects_with_prune_last() -> None:
    plan = plan_of(a_thing("Pod", "a"), a_hook("Pod", "post", Phase.POST_SYNC))

    with_prunes = add_prunes(plan, SHOP, gone(0, handling=LAST))

    assert links_of(with_prunes) == {
        ("shop/sync/0", "shop/sync/1", "wave"),
        ("shop/sync/1", "shop/postsync/0", "phase"),
    }


def test_a_step_that_rescues_stays_outside_the_chain() -> None:
    plan = plan_of(a_thing("Pod", "a"), a_hook("Pod", "sorry", Phase.SYNC_FAIL))

    with_prunes = add_prunes(plan, SHOP, gone(0, handling=LAST))

    assert links_of(with_prunes) == {("shop/sync/0", "shop/sync/1", "wave")}


def test_dependents_of_a_unit_wait_for_its_pruning() -> None:
    plan = plan_of(
        a_unit_of(a_thing("Pod", "a"), name="db"),
        a_unit_of(a_thing("Pod", "b"), name="shop", after=("db",)),
        a_unit_of(a_thing("Pod", "c"), name="web", after=("shop",)),
    )

    with_prunes = add_prunes(plan, SHOP, gone(-1, 1))

    assert links_of(with_prunes) == {
        ("db/sync/0", "shop/sync/-1", "dependsOn"),
        ("shop/sync/-1", "shop/sync/0", "wave"),
        ("shop/sync/0", "shop/sync/1", "wave"),
        ("shop/sync/1", "web/sync/0", "dependsOn"),
    }
    assert [step.id for step in with_prunes.steps] == [
        "db/sync/0",
        "shop/sync/-1",
        "shop/sync/0",
        "shop/sync/1",
        "web/sync/0",
    ]


def test_units_other_than_the_one_that_prunes_keep_their_steps() -> None:
    plan = plan_of(a_unit_of(a_thing("Pod", "a"), name="web"), a_unit_of(a_thing("Pod", "b")))

    with_prunes = add_prunes(plan, SHOP, gone(5))

    assert results_by_name(with_prunes) == {
        "web/sync/0": [["a"]],
        "shop/sync/0": [["b"]],
        "shop/sync/5": [["-p5a"]],
    }


def test_a_unit_in_a_cluster_prunes_there() -> None:
    unit = PlannedUnit(id=make_unit_id("shop"), cluster="prod")

    (step,) = add_prunes(NOTHING, unit, gone(0)).steps

    assert (step.id, step.cluster) == ("prod/shop/sync/0", "prod")


def test_in_stages_deletions_are_last_in_reverse_kind_order() -> None:
    plan = plan_of(
        a_unit_of(a_thing("Namespace", "n"), a_thing("ConfigMap", "c"), policy=STAGED_POLICY)
    )
    going = [
        stale("v1 Namespace", "old"),
        stale("v1 Service", "a"),
        stale("v1 Service", "b"),
        stale("apps/v1 Deployment", "web"),
    ]

    with_prunes = add_prunes(plan, STAGED_SHOP, going)

    assert results_by_name(with_prunes) == {
        "shop/definitions": [["n"]],
        "shop/rest": [["c"], ["-web"], ["-b", "-a"], ["-old"]],
    }
    assert links_of(with_prunes) == {("shop/definitions", "shop/rest", "stage")}


def test_in_stages_waves_and_crds_have_no_special_order() -> None:
    plan = plan_of(a_unit_of(a_thing("ConfigMap", "c"), policy=STAGED_POLICY))
    going = [stale("v1 Pod", "a", wave=3), stale(CRD, "gadgets.dev"), *gone(7, handling=NEVER)]

    with_prunes = add_prunes(plan, STAGED_SHOP, going)

    assert results_by_name(with_prunes) == {"shop/rest": [["c"], ["-a"], ["-gadgets.dev"]]}


def test_a_unit_in_stages_that_has_nothing_left_still_prunes() -> None:
    with_prunes = add_prunes(NOTHING, STAGED_SHOP, gone(1, 2))

    assert results_by_name(with_prunes) == {"shop/rest": [["-p2a", "-p1a"]]}
    assert [step.stage for step in with_prunes.steps] == ["rest"]


def test_several_units_prune_at_once_as_they_would_one_after_another() -> None:
    plan = plan_of(
        a_unit_of(a_thing("Pod", "a"), name="db"),
        a_unit_of(a_thing("Pod", "b"), name="shop", after=("db",)),
        a_unit_of(name="web"),
    )
    units = {unit.id.name: unit for unit in plan.units}
    one_by_one = add_prunes(plan, units["db"], gone(1))
    one_by_one = add_prunes(one_by_one, units["shop"], gone(-1))
    one_by_one = add_prunes(one_by_one, units["web"], gone(0))

    together = prune_units(
        plan, [(units["db"], gone(1)), (units["shop"], gone(-1)), (units["web"], gone(0))]
    )

    assert results_by_name(together) == results_by_name(one_by_one)
    assert links_of(together) == links_of(one_by_one)
