"""Which objects hold what comes after a unit."""

from __future__ import annotations

from tests.support.builders import make_unit_id
from tests.support.ordered_manifests import (
    CRD,
    a_hook,
    a_thing,
    a_unit_of,
    links_of,
    plan_of,
    ref_of,
)
from tidegate.model.k8s.objects import Kind, Ref
from tidegate.model.plans.manifest import Manifest, Manifests, Phase
from tidegate.model.plans.plan import ItemAction, Plan, step_items
from tidegate.model.units.policy import GateScope, Order, Policy
from tidegate.model.units.unit import Dependency, Unit

OTHERS = ref_of("apps/v1 Deployment", "theirs", "elsewhere")


def a_plan(*manifests: Manifest, gates: GateScope, listed: tuple[Ref, ...] = ()) -> Plan:
    policy = Policy(order=Order.STAGES, gates=gates, gating_refs=listed)
    return plan_of(a_unit_of(*manifests, policy=policy))


def gating(plan: Plan) -> dict[str, list[str]]:
    """By step, the objects that hold what comes after it."""
    return {
        step.id: [item.ref.name for item in step_items(step) if item.is_gating]
        for step in plan.steps
    }


def test_all_objects_gate_with_wait() -> None:
    plan = a_plan(a_thing("Pod", "a"), a_thing("Pod", "b"), gates=GateScope.ALL)

    assert gating(plan) == {"shop/rest": ["a", "b"]}


def test_nothing_of_the_last_step_holds_where_nothing_gates() -> None:
    plan = a_plan(a_thing(CRD, "gadgets.dev"), a_thing("Pod", "a"), gates=GateScope.NONE)

    assert gating(plan) == {"shop/definitions": ["gadgets.dev"], "shop/rest": []}


def test_hooks_hold_whatever_else_does() -> None:
    hook = a_hook("Pod", "seed", Phase.SYNC)
    policy = Policy(gates=GateScope.NONE)

    plan = plan_of(a_unit_of(a_thing("Pod", "a"), hook, policy=policy))

    assert gating(plan) == {"shop/sync/0": ["seed"]}


def test_only_listed_objects_gate() -> None:
    things = [a_thing("Pod", name) for name in "abc"]

    plan = a_plan(*things, gates=GateScope.LISTED, listed=(ref_of("Pod", "b"),))

    assert gating(plan) == {"shop/rest": ["b"]}


def test_a_listed_object_is_known_in_another_version_of_its_kind() -> None:
    older = Ref(Kind("apps", "v1beta1", "Deployment"), "default", "web")

    plan = a_plan(
        a_thing("apps/v1 Deployment", "web"),
        a_thing("Pod", "a"),
        gates=GateScope.LISTED,
        listed=(older,),
    )

    assert gating(plan) == {"shop/rest": ["web"]}
    assert {item.action for item in step_items(plan.steps[0])} == {ItemAction.APPLY}


def test_a_listed_external_object_is_awaited_last() -> None:
    plan = a_plan(a_thing("Pod", "a"), gates=GateScope.LISTED, listed=(OTHERS,))

    (step,) = plan.steps
    first, last = step.batches
    assert [item.ref.name for item in first] == ["a"]
    assert [(item.ref, item.action, item.body) for item in last] == [
        (OTHERS, ItemAction.AWAIT, b"")
    ]


def test_a_unit_without_objects_is_done_with_what_it_lists() -> None:
    plan = a_plan(gates=GateScope.LISTED, listed=(OTHERS,))

    assert gating(plan) == {"shop/checks": ["theirs"]}
    assert [step.is_last for step in plan.steps] == [True]


def test_a_unit_without_objects_and_gates_has_no_steps() -> None:
    assert a_plan(gates=GateScope.NONE, listed=(OTHERS,)).steps == ()


def test_changed_gates_change_the_plan() -> None:
    plans = [a_plan(a_thing("Pod", "a"), gates=gates) for gates in GateScope]

    assert len({plan.digest for plan in plans}) == 3
    assert len({step.digest for plan in plans for step in plan.steps}) == 2


def waiting_for(*refs: Ref) -> Manifests:
    dependencies = tuple(Dependency(ref=ref) for ref in refs)
    unit = Unit(id=make_unit_id("shop"), dependencies=dependencies)
    return Manifests(unit=unit, manifests=(a_thing("Pod", "a"),))


def test_an_external_dependency_of_a_unit_is_awaited_first() -> None:
    plan = plan_of(waiting_for(OTHERS, ref_of("Secret", "login")))

    first, second = plan.steps
    assert (first.id, second.id) == ("shop/awaits", "shop/sync/0")
    awaited = [(item.ref.name, item.action) for item in step_items(first)]
    assert awaited == [("theirs", ItemAction.AWAIT), ("login", ItemAction.AWAIT)]
    assert {(before, after) for before, after, _ in links_of(plan)} == {(first.id, second.id)}
