"""Hooks that have only the beginning of a name get the rest of it when a rollout begins."""

from __future__ import annotations

import msgspec
import pytest

from tests.support.builders import make_unit_id
from tests.support.ordered_manifests import (
    a_nameless_hook,
    a_thing,
    a_unit_of,
    plan_of,
    results_by_name,
)
from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import JsonObject
from tidegate.model.plans.manifest import Phase
from tidegate.model.plans.plan import HookPolicy, Plan
from tidegate.model.times import Ms
from tidegate.plan.build.hook_names import complete_hook_names

BEGUN = Ms(1_700_000_000_999)


def named(plan: Plan, revision: str = "FooBarBaz") -> Plan:
    return complete_hook_names(
        plan, revision=revision, started_at={unit.id: BEGUN for unit in plan.units}
    )


def a_twice_run_plan() -> Plan:
    hooks = (a_nameless_hook("seed-", Phase.PRE_SYNC), a_nameless_hook("seed-", Phase.POST_SYNC))
    return plan_of(a_thing("Pod", "a"), *hooks)


@pytest.mark.parametrize(
    ("revision", "short"),
    [
        ("FooBarBaz", "foobarb"),
        ("foobarba", "foobarb"),
        ("foobarb", "foobarb"),
        ("foobar", "foobar"),
    ],
)
def test_a_name_is_made_of_revision_phase_and_time(revision: str, short: str) -> None:
    plan = named(a_twice_run_plan(), revision)

    assert results_by_name(plan) == {
        "shop/presync/0": [[f"seed-{short}-presync-1700000000"]],
        "shop/sync/0": [["a"]],
        "shop/postsync/0": [[f"seed-{short}-postsync-1700000000"]],
    }


def test_the_text_has_the_name_too_and_no_beginning_of_one() -> None:
    plan = named(a_twice_run_plan())

    item = plan.steps[0].batches[0][0]
    body: JsonObject = msgspec.json.decode(item.body)
    metadata = get_mapping(body, "metadata")
    assert metadata["name"] == item.ref.name
    assert "generateName" not in metadata
    assert not item.generates_name


def test_the_digest_covers_the_manifest_of_git() -> None:
    plan = a_twice_run_plan()

    assert named(plan).digest == plan.digest


def test_only_steps_with_new_names_change() -> None:
    plan = a_twice_run_plan()

    changed = [
        item.digest != other.digest
        for item, other in zip(plan.steps, named(plan).steps, strict=True)
    ]

    assert changed == [True, False, True]


def test_hooks_with_the_same_beginning_in_one_phase_are_distinguished() -> None:
    hook = a_nameless_hook("seed-", Phase.SYNC)

    (names,) = results_by_name(named(plan_of(hook, hook, hook))).values()

    base = "seed-foobarb-sync-1700000000"
    assert names == [[base, f"{base}-2", f"{base}-3"]]


def test_a_plan_in_which_everything_has_a_name_stays_what_it_is() -> None:
    plan = plan_of(a_unit_of(a_thing("Pod", "a")))

    assert named(plan) is plan


def test_the_hooks_of_a_unit_are_named_by_its_own_beginning() -> None:
    early = a_unit_of(a_nameless_hook("seed-", Phase.PRE_SYNC), name="early")
    later = a_unit_of(a_nameless_hook("seed-", Phase.PRE_SYNC), name="late")

    plan = complete_hook_names(
        plan_of(early, later),
        revision="foo",
        started_at={make_unit_id("early"): Ms(1_000), make_unit_id("late"): Ms(9_000)},
    )

    assert results_by_name(plan) == {
        "early/presync/0": [["seed-foo-presync-1"]],
        "late/presync/0": [["seed-foo-presync-9"]],
    }


def test_an_earlier_object_with_the_same_name_is_deleted() -> None:
    hook = a_nameless_hook("seed-", Phase.PRE_SYNC)
    kept = msgspec.structs.replace(hook, hook_policies=(HookPolicy.SUCCEEDED,))

    plan = named(plan_of(kept))

    item = plan.steps[0].batches[0][0]
    assert item.hook == (HookPolicy.SUCCEEDED, HookPolicy.BEFORE_CREATION)
