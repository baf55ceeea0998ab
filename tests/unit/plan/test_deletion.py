"""The plan that ends a unit."""

from __future__ import annotations

import msgspec

from tests.support.builders import DEFAULT_POLICY, STAGED_POLICY
from tests.support.ordered_manifests import (
    CRD,
    a_hook,
    a_nameless_hook,
    a_unit_of,
    links_of,
    no_budget,
    results_by_name,
    stale,
    step_of,
)
from tidegate.model.k8s.json_fields import get_list
from tidegate.model.k8s.objects import JsonObject
from tidegate.model.plans.manifest import Manifest, Manifests, Phase
from tidegate.model.plans.plan import HookPolicy, ItemAction, Plan
from tidegate.model.units.policy import ObjectOptions, Permission, Policy
from tidegate.plan.changes.delete_unit import build_deletion
from tidegate.plan.changes.prune import PruneCandidate

STAYS = ObjectOptions(delete=Permission.NO)
ASKS = ObjectOptions(delete=Permission.ASK)


def ending(
    *candidates: PruneCandidate,
    before: tuple[Manifest, ...] = (),
    after: tuple[Manifest, ...] = (),
    policy: Policy = DEFAULT_POLICY,
) -> Plan:
    unit = msgspec.structs.replace(
        a_unit_of(policy=policy), before_deletion=before, after_deletion=after
    )
    return build_deletion(unit, candidates, readiness_timeout=no_budget)


def a_job(name: str, *, wave: int = 0, policies: tuple[HookPolicy, ...] = ()) -> Manifest:
    return a_hook("batch/v1 Job", name, Phase.SYNC, wave=wave, policies=policies)


def test_waves_are_deleted_from_the_highest_to_the_lowest() -> None:
    candidates = [stale("Pod", f"p{n}", wave) for n, wave in enumerate((1, 5, 7, 7, 4))]

    plan = ending(*candidates)

    assert results_by_name(plan) == {
        "shop/delete/7": [["-p2", "-p3"]],
        "shop/delete/5": [["-p1"]],
        "shop/delete/4": [["-p4"]],
        "shop/delete/1": [["-p0"]],
    }
    assert links_of(plan) == {
        ("shop/delete/7", "shop/delete/5", "wave"),
        ("shop/delete/5", "shop/delete/4", "wave"),
        ("shop/delete/4", "shop/delete/1", "wave"),
    }


def test_every_step_waits_until_its_objects_are_gone() -> None:
    plan = ending(stale("Pod", "a"), stale("Pod", "b", 1), after=(a_job("tell"),))

    assert not any(step.is_last for step in plan.steps)


def test_objects_with_a_keep_option_are_kept() -> None:
    plan = ending(stale("Pod", "a"), stale("Pod", "b", 0, STAYS), stale(CRD, "gadgets.dev"))

    assert results_by_name(plan) == {"shop/delete/0": [["-a"]]}


def test_objects_with_prune_false_are_deleted_with_their_unit() -> None:
    plan = ending(stale("Pod", "a", 0, ObjectOptions(prune=Permission.NO)))

    assert results_by_name(plan) == {"shop/delete/0": [["-a"]]}


def test_an_object_that_needs_a_confirmation_is_marked_in_the_plan() -> None:
    asking = stale("Pod", "a", 0, ASKS)
    pruning = stale("Pod", "b", 0, ObjectOptions(prune=Permission.ASK))
    staying = stale("Pod", "c", 0, ObjectOptions(delete=Permission.NO, prune=Permission.ASK))

    assert results_by_name(ending(asking, pruning, staying)) == {"shop/delete/0": [["-a?", "-b?"]]}


def test_hooks_run_before_and_after_all_at_once_whatever_their_waves() -> None:
    plan = ending(
        stale("Pod", "a", 3),
        before=(a_job("save", wave=2), a_job("lock")),
        after=(a_job("tell", wave=9), a_job("bill")),
    )

    assert results_by_name(plan) == {
        "shop/predelete": [["lock", "save"]],
        "shop/delete/3": [["-a"]],
        "shop/delete/2": [["-save"]],
        "shop/delete/0": [["-lock"]],
        "shop/postdelete": [["bill", "tell"]],
    }
    assert links_of(plan) == {
        ("shop/predelete", "shop/delete/3", "phase"),
        ("shop/delete/3", "shop/delete/2", "wave"),
        ("shop/delete/2", "shop/delete/0", "wave"),
        ("shop/delete/0", "shop/postdelete", "phase"),
    }


def test_a_hook_of_the_end_is_not_held_in_the_cluster() -> None:
    plan = ending(after=(a_job("tell", policies=(HookPolicy.SUCCEEDED,)),))

    (item,) = step_of(plan, "shop/postdelete").batches[0]
    body: JsonObject = msgspec.json.decode(item.body)
    assert get_list(body, "metadata", "finalizers") == []
    assert (item.action, item.hook) == (ItemAction.APPLY, (HookPolicy.SUCCEEDED,))


def test_a_live_hook_is_deleted_in_its_live_wave() -> None:
    plan = ending(stale("batch/v1 Job", "save", 4), before=(a_job("save", wave=2),))

    assert results_by_name(plan) == {"shop/predelete": [["save"]], "shop/delete/4": [["-save"]]}


def test_a_hook_without_a_known_name_is_deleted_at_the_end() -> None:
    plan = ending(before=(a_nameless_hook("save-", Phase.SYNC),))

    (item,) = step_of(plan, "shop/predelete").batches[0]
    assert results_by_name(plan) == {"shop/predelete": [["save-"]]}
    assert item.hook == (HookPolicy.BEFORE_CREATION, HookPolicy.SUCCEEDED)


def test_a_deletion_has_the_same_digest_for_any_remaining_objects() -> None:
    hooks = (a_job("save"),)
    begun = ending(stale("Pod", "a"), stale("Pod", "b", 1), before=hooks)

    resumed = ending(stale("Pod", "a"), before=hooks)
    other = ending(stale("Pod", "a"), before=(a_job("save", wave=0), a_job("lock")))

    assert resumed.units == begun.units
    assert other.units != begun.units


def test_a_hook_with_a_keep_option_is_kept() -> None:
    hook = msgspec.structs.replace(a_job("save"), options=STAYS)

    assert results_by_name(ending(before=(hook,))) == {"shop/predelete": [["save"]]}


def test_in_stages_kinds_are_deleted_in_reverse_including_crds() -> None:
    candidates = [
        stale("v1 Namespace", "space"),
        stale(CRD, "gadgets.dev"),
        stale("v1 Service", "a", wave=3),
        stale("v1 Service", "b"),
        stale("apps/v1 Deployment", "web"),
        stale("v1 Secret", "kept", 0, STAYS),
    ]

    plan = ending(*candidates, policy=STAGED_POLICY)

    assert results_by_name(plan) == {
        "shop/delete": [["-web"], ["-b", "-a"], ["-space"], ["-gadgets.dev"]]
    }


def test_a_unit_that_has_nothing_needs_no_steps() -> None:
    assert results_by_name(ending()) == results_by_name(ending(policy=STAGED_POLICY)) == {}


def test_the_same_deletion_has_the_same_digest_in_any_order() -> None:
    candidates = [stale("Pod", "a"), stale("Pod", "b"), stale("Pod", "c", 1)]

    assert ending(*candidates) == ending(*reversed(candidates))


def test_a_unit_of_which_git_knows_nothing_any_more_can_be_ended() -> None:
    unit = Manifests(unit=a_unit_of().unit)

    plan = build_deletion(unit, [stale("Pod", "a")], readiness_timeout=no_budget)

    assert [unit.id.name for unit in plan.units] == ["shop"]
    assert results_by_name(plan) == {"shop/delete/0": [["-a"]]}
