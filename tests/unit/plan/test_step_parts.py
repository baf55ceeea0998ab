"""Objects of one step that wait for each other split the step into parts."""

from __future__ import annotations

import pytest

from tests.support.builders import DEFAULT_POLICY, STAGED_POLICY
from tests.support.ordered_manifests import (
    a_hook,
    a_thing,
    a_unit_of,
    links_of,
    no_budget,
    ref_of,
    results_by_name,
    step_of,
)
from tests.support.recorded_wording import RecordedWording
from tidegate.errors import PlanError
from tidegate.model.k8s.objects import ClusterRef
from tidegate.model.plans.manifest import Manifest, Phase
from tidegate.model.plans.plan import EdgeReason, ExternalDependency, Plan, Precedence, step_items
from tidegate.model.units.depends_on import AwaitedState
from tidegate.plan.build.build import build_plan


def cluster_ref(name: str) -> ClusterRef:
    return ClusterRef("", ref_of("Pod", name))


def comes_after(pairs: str) -> list[Precedence]:
    """`a>b c>d`: b comes after a, and d after c."""
    return [
        Precedence(
            before=cluster_ref(before), after=cluster_ref(after), reason=EdgeReason.REFERENCE
        )
        for before, after in (pair.split(">") for pair in pairs.split())
    ]


def planned(*manifests: Manifest, pairs: str, held: str = "", staged: bool = False) -> Plan:
    """`held`: those that wait for a key that no unit contains."""
    unit = a_unit_of(*manifests, policy=STAGED_POLICY if staged else DEFAULT_POLICY)
    key, state = ref_of("Secret", "key"), AwaitedState.PRESENT
    external = [
        ExternalDependency(ref=key, state=state, dependent=cluster_ref(name)) for name in held
    ]
    return build_plan([unit], comes_after(pairs), external, readiness_timeout=no_budget)


def pods(names: str, wave: int = 0) -> list[Manifest]:
    return [a_thing("Pod", name, wave=wave) for name in names]


def test_objects_with_dependencies_are_moved_to_later_parts() -> None:
    plan = planned(*pods("abcd"), pairs="a>c c>d")

    assert results_by_name(plan) == {
        "shop/sync/0": [["a", "b"]],
        "shop/sync/0.2": [["c"]],
        "shop/sync/0.3": [["d"]],
    }
    assert links_of(plan) == {
        ("shop/sync/0", "shop/sync/0.2", "reference"),
        ("shop/sync/0.2", "shop/sync/0.3", "reference"),
    }


def test_an_object_follows_the_last_of_its_dependencies() -> None:
    plan = planned(*pods("abcd"), pairs="a>b b>d a>d c>d")

    assert [[item.ref.name for item in step_items(step)] for step in plan.steps] == [
        ["a", "c"],
        ["b"],
        ["d"],
    ]


def test_parts_of_a_wave_are_between_the_adjacent_waves() -> None:
    plan = planned(*pods("z", -1), *pods("ab"), *pods("y", 1), pairs="a>b")

    assert [step.id for step in plan.steps] == [
        "shop/sync/-1",
        "shop/sync/0",
        "shop/sync/0.2",
        "shop/sync/1",
    ]
    assert ("shop/sync/0.2", "shop/sync/1", "wave") in links_of(plan)
    assert [(step.part, step.is_last) for step in plan.steps] == [
        (0, False),
        (0, False),
        (2, False),
        (0, True),
    ]


def test_the_last_part_is_the_last_of_its_unit() -> None:
    plan = planned(*pods("ab"), pairs="a>b")

    assert [step.is_last for step in plan.steps] == [False, True]


def test_waves_that_are_in_order_already_are_not_parted() -> None:
    plan = planned(*pods("a"), *pods("b", 1), pairs="a>b")

    assert results_by_name(plan) == {"shop/sync/0": [["a"]], "shop/sync/1": [["b"]]}


def test_stages_are_parted_too() -> None:
    plan = planned(a_thing("Namespace", "n"), *pods("ab"), pairs="b>a", staged=True)

    assert results_by_name(plan) == {
        "shop/definitions": [["n"]],
        "shop/rest": [["b"]],
        "shop/rest.2": [["a"]],
    }
    assert step_of(plan, "shop/rest.2").stage == "rest"


def test_each_part_has_a_digest_of_its_own() -> None:
    whole = planned(*pods("ab"), pairs="")
    parted = planned(*pods("ab"), pairs="a>b")

    assert len({step.digest for step in (*whole.steps, *parted.steps)}) == 3


def test_a_hook_can_follow_an_object_of_its_wave() -> None:
    plan = planned(*pods("a"), a_hook("Pod", "h", Phase.SYNC), pairs="a>h")

    assert results_by_name(plan) == {"shop/sync/0": [["a"]], "shop/sync/0.2": [["h"]]}


def test_objects_that_wait_for_each_other_are_named(wording: RecordedWording) -> None:
    with pytest.raises(PlanError) as raised:
        planned(*pods("abc"), pairs="a>b b>c c>b")

    assert raised.value.code == "plan.cycle"
    wording(raised.value.problem)


def test_an_object_that_waits_for_a_later_wave_is_rejected(wording: RecordedWording) -> None:
    with pytest.raises(PlanError) as raised:
        planned(*pods("a"), *pods("b", 1), pairs="b>a")

    assert raised.value.code == "plan.cycle"
    wording(raised.value.problem)


def test_only_the_dependent_waits_for_an_external_object() -> None:
    plan = planned(*pods("abc"), pairs="", held="b")

    assert results_by_name(plan) == {
        "shop/sync/0": [["a", "c"]],
        "shop/sync/0.2/awaits": [["key"]],
        "shop/sync/0.2": [["b"]],
    }


def test_a_step_whose_objects_all_wait_for_external_objects_is_not_split() -> None:
    plan = planned(*pods("ab"), pairs="", held="ab")

    assert results_by_name(plan) == {"shop/sync/0/awaits": [["key"]], "shop/sync/0": [["a", "b"]]}


def test_an_object_after_one_with_an_external_dependency_is_in_a_later_part() -> None:
    plan = planned(*pods("ab"), pairs="a>b", held="a")

    assert results_by_name(plan) == {
        "shop/sync/0/awaits": [["key"]],
        "shop/sync/0": [["a"]],
        "shop/sync/0.2": [["b"]],
    }
