"""Selective sync: only the named objects."""

from __future__ import annotations

import pytest

from tests.support.ordered_manifests import a_hook, a_thing, links_of, plan_of, results_by_name
from tidegate.errors import PlanError, UsageError
from tidegate.model.plans.manifest import Phase
from tidegate.model.plans.plan import Plan
from tidegate.plan.changes.selection import select_objects


def a_shop() -> Plan:
    return plan_of(
        a_hook("Pod", "migrate", Phase.PRE_SYNC),
        a_thing("Service", "x"),
        a_thing("Service", "x", namespace="other"),
        a_thing("serving.dev/v1 Service", "x"),
        a_thing("apps/v1 Deployment", "x", wave=1),
        a_thing("apps/v1 Deployment", "y", wave=2),
        a_thing("rbac.authorization.k8s.io/v1 ClusterRole", "system:shop", wave=3),
    )


def selected(*selectors: str) -> list[str]:
    plan = select_objects(a_shop(), selectors)
    items = [item for step in plan.steps for batch in step.batches for item in batch]
    return [f"{item.ref.kind.group}:{item.ref}" for item in items]


def test_an_object_is_selected_by_group_kind_and_name() -> None:
    assert selected("apps:Deployment:x") == ["apps:Deployment default/x"]


def test_a_name_without_a_namespace_chooses_in_all_of_them() -> None:
    assert selected(":Service:x") == [":Service default/x", ":Service other/x"]


def test_a_name_with_a_namespace_chooses_there() -> None:
    assert selected(":Service:other/x") == [":Service other/x"]


def test_a_group_that_is_empty_is_the_core_group() -> None:
    assert selected("serving.dev:Service:x") == ["serving.dev:Service default/x"]


def test_a_star_matches_anything() -> None:
    assert selected("*:Service:*") == [
        ":Service default/x",
        ":Service other/x",
        "serving.dev:Service default/x",
    ]
    assert selected("apps:*:*") == ["apps:Deployment default/x", "apps:Deployment default/y"]


def test_a_name_may_have_colons_in_it() -> None:
    chosen = selected("rbac.authorization.k8s.io:ClusterRole:system:shop")

    assert chosen == ["rbac.authorization.k8s.io:ClusterRole system:shop"]


def test_an_exclamation_mark_leaves_out() -> None:
    assert selected("!*:Service:*", "!*:ClusterRole:*") == [
        "apps:Deployment default/x",
        "apps:Deployment default/y",
    ]


def test_an_exclusion_takes_precedence_over_a_selection() -> None:
    assert selected("apps:Deployment:*", "!apps:Deployment:x") == ["apps:Deployment default/y"]


def test_waves_still_count_among_what_is_chosen() -> None:
    plan = select_objects(a_shop(), [":Service:default/x", "apps:Deployment:y"])

    assert results_by_name(plan) == {"shop/sync/0": [["x"]], "shop/sync/2": [["y"]]}
    assert links_of(plan) == {("shop/sync/0", "shop/sync/2", "wave")}
    assert [step.is_last for step in plan.steps] == [False, True]


def test_hooks_are_not_run_even_if_everything_is_chosen() -> None:
    assert "shop/presync/0" not in results_by_name(select_objects(a_shop(), ["*:*:*"]))


def test_a_selection_is_another_plan_for_its_unit_too() -> None:
    whole, part = a_shop(), select_objects(a_shop(), [":Service:x"])

    assert part.digest != whole.digest
    assert [unit.digest for unit in part.units] != [unit.digest for unit in whole.units]


@pytest.mark.parametrize("selector", [":Service:absent", ":Service:third/x", ":Pod:migrate"])
def test_a_name_that_fits_nothing_is_refused(selector: str) -> None:
    with pytest.raises(PlanError) as raised:
        select_objects(a_shop(), ["apps:Deployment:x", selector])

    assert raised.value.code == "plan.selection"
    assert f"`{selector}`" in raised.value.problem


@pytest.mark.parametrize("selector", ["", "x", "Service:x", ":Service:", "::x", ":Service:other/"])
def test_an_invalid_selector_is_rejected(selector: str) -> None:
    with pytest.raises(UsageError) as raised:
        select_objects(a_shop(), [selector])

    assert raised.value.code == "usage.selection"
