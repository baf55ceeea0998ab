"""The position of units that another unit contains, by the order of their objects."""

from __future__ import annotations

from cProfile import Profile

import pytest
from msgspec import structs

from tests.support.builders import make_unit_id
from tests.support.nested_units import before, child_unit, joined, plan_of, setting
from tests.support.ordered_manifests import a_thing
from tests.support.plan_key import KEY
from tidegate.model.k8s.objects import Kind, Ref
from tidegate.model.plans.manifest import Phase
from tidegate.model.plans.plan import HookPolicy, Plan, PlannedUnit, step_items
from tidegate.model.units.policy import GateScope, Order, Policy
from tidegate.model.units.semantics import ARGOCD, FLUX
from tidegate.plan.changes.narrow import without_hooks, without_in_sync
from tidegate.plan.changes.prune import PruneCandidate, prune_units
from tidegate.plan.changes.selection import select_objects
from tidegate.plan.serialize import from_json, to_json

BY_ARGO = Policy(semantics=ARGOCD)
BY_FLUX = Policy(semantics=FLUX, order=Order.STAGES, gates=GateScope.NONE)


def a_root(policy: Policy = Policy(), *, served: bool = False) -> Plan:  # noqa: B008 - frozen
    """Wave 0 has an object and a child, wave 1 a child alone, wave 2 an object."""
    unit_resource = (
        setting("start"),
        child_unit("data", served=served),
        child_unit("web", 1, served=served),
        setting("end", 2),
    )
    return plan_of(
        joined("root", *unit_resource, policy=policy),
        joined("data", setting("d0"), setting("d1", 1), parent="root", policy=policy),
        joined("web", parent="root", policy=policy),
    )


@pytest.mark.parametrize("served", [False, True])
def test_a_child_starts_with_its_wave_and_later_waves_wait_for_it(
    served: bool,  # noqa: FBT001 - a case
) -> None:
    plan = a_root(served=served)

    unit_resource = {"data", "web"} if served else set()
    assert before(plan, "d0") == set()
    assert {"start", "d0", "d1"} <= before(plan, "web")
    assert before(plan, "end") == {"start", "d0", "d1", "web"} | unit_resource


def test_with_argo_cd_semantics_no_step_waits_for_children() -> None:
    assert before(a_root(BY_ARGO), "end") == {"start"}


@pytest.mark.parametrize(
    ("gates", "listed", "waits"),
    [(GateScope.NONE, (), False), (GateScope.ALL, (), True), (GateScope.LISTED, ("web",), True)],
)
def test_with_flux_semantics_dependents_of_a_parent_wait_for_its_gating_children(
    gates: GateScope, listed: tuple[str, ...], *, waits: bool
) -> None:
    kind = Kind("argoproj.io", "v1alpha1", "Application")
    refs = tuple(Ref(kind, "argocd", item) for item in listed)
    policy = structs.replace(BY_FLUX, gates=gates, gating_refs=refs)
    plan = plan_of(
        joined("root", child_unit("web"), policy=policy),
        joined("web", parent="root", policy=BY_FLUX),
        joined("after", after=("root",), policy=BY_FLUX),
    )

    assert ("web" in before(plan, "after")) is waits


def test_a_child_unit_follows_namespaces_and_crds_of_its_wave() -> None:
    unit_resource = (a_thing("Namespace", "shop"), setting("beside"), child_unit("web"))
    plan = plan_of(joined("root", *unit_resource), joined("web", parent="root"))

    assert before(plan, "web") == {"shop"}
    assert before(plan, "beside") == {"shop"}


def test_hooks_of_a_parent_run_before_and_after_its_children() -> None:
    hooks = [
        structs.replace(setting(name, phase=phase), hook_policies=(HookPolicy.BEFORE_CREATION,))
        for name, phase in (("pre", Phase.PRE_SYNC), ("post", Phase.POST_SYNC))
    ]
    rescue = setting("rescue", phase=Phase.SYNC_FAIL)
    plan = plan_of(joined("root", *hooks, rescue, child_unit("web")), joined("web", parent="root"))

    assert before(plan, "web") == {"pre"}
    assert before(plan, "post") == {"pre", "web"}
    assert before(plan, "rescue") == set()
    idle = without_hooks(plan, {make_unit_id("root")})
    assert (before(idle, "web"), {"pre", "post"} & _all(idle)) == (set(), set())


def test_a_unit_that_is_a_hook_of_two_phases_starts_in_the_first() -> None:
    twice = (child_unit("web", phase=Phase.PRE_SYNC), child_unit("web", phase=Phase.POST_SYNC))
    plan = plan_of(joined("root", *twice, setting("own")), joined("web", parent="root"))

    assert before(plan, "own") == {"web"}


def test_children_of_a_wave_can_depend_on_each_other() -> None:
    plan = plan_of(
        joined("root", child_unit("a"), child_unit("b"), child_unit("c"), setting("end", 1)),
        joined("a", parent="root", after=("b",)),
        joined("b", parent="root", after=("c",)),
        joined("c", parent="root"),
    )

    assert before(plan, "a") == {"b", "c"}
    assert before(plan, "end") == {"a", "b", "c"}


def test_a_child_that_depends_on_its_parent_is_not_waited_for_by_it() -> None:
    plan = plan_of(
        joined("root", setting("own"), child_unit("a"), child_unit("b"), child_unit("c")),
        joined("a", parent="root", after=("root",)),
        joined("b", child_unit("b1"), parent="root"),
        joined("b1", parent="b", after=("a",)),
        joined("c", parent="root"),
    )

    assert before(plan, "a") == {"own", "c"}
    assert before(plan, "b1") == {"own", "c", "a"}


def test_removing_empty_steps_keeps_the_order_of_children() -> None:
    plan = a_root(structs.replace(Policy(), apply_out_of_sync_only=True))
    settled = {(make_unit_id("root"), Ref(Kind("", "v1", "ConfigMap"), "default", "start"))}
    settled |= {(make_unit_id("data"), Ref(Kind("", "v1", "ConfigMap"), "default", "d0"))}

    left = without_in_sync(plan, settled)

    assert before(left, "d1") == set()
    assert before(left, "end") == {"d1", "web"}


def test_selected_objects_keep_their_order_across_units() -> None:
    plan = select_objects(a_root(), (":ConfigMap:d1", ":ConfigMap:end"))

    assert _all(plan) == {"d1", "end"}
    assert before(plan, "end") == {"d1"}


@pytest.mark.parametrize("served", [False, True])
@pytest.mark.parametrize("wave", [-1, 0, 1, 2, 3])
def test_pruned_objects_of_a_parent_do_not_change_the_waves_of_children(
    wave: int,
    served: bool,  # noqa: FBT001 - a case
) -> None:
    plan = a_root(served=served)
    (root, *_) = plan.units

    pruned = _pruned(plan, root, wave)

    if wave == -1:
        assert "old" in before(pruned, "d0")
    assert ("d1" in before(pruned, "old")) is (wave > 0)
    assert ("web" in before(pruned, "old")) is (wave > 1)
    assert {"start", "d0", "d1", "web"} <= before(pruned, "end")
    assert ("old" in before(pruned, "web")) is (wave < 1)
    assert len({step.id for step in pruned.steps}) == len(pruned.steps)


def test_a_parent_waits_for_pruning_of_its_child() -> None:
    plan = a_root()
    (_, data, _) = plan.units

    assert "old" in before(_pruned(plan, data, 5), "end")
    assert before(_pruned(plan, data, -5), "old") == set()


def test_with_flux_semantics_a_parent_prunes_before_it_awaits_its_children() -> None:
    policy = structs.replace(BY_FLUX, gates=GateScope.ALL)
    plan = plan_of(
        joined("root", child_unit("web"), policy=policy),
        joined("web", parent="root", policy=policy),
        joined("after", after=("root",), policy=policy),
    )

    pruned = _pruned(plan, plan.units[0], 0)

    assert before(pruned, "old") == set()
    assert before(pruned, "after") == {"old", "web"}


def test_a_plan_with_joints_is_the_same_when_it_is_read_again() -> None:
    plan = a_root(served=True)

    assert from_json(to_json(plan, KEY), name="plan.json", bodies={}, key=KEY) == plan


@pytest.mark.parametrize("waves", [1, 2])
def test_edges_grow_with_children_and_not_with_their_pairs(waves: int) -> None:
    def edges(count: int) -> int:
        names = [f"c{number}" for number in range(count)]
        own_items = [child_unit(name, number % waves) for number, name in enumerate(names)]
        children = [joined(name, parent="root") for name in names]
        return len(plan_of(joined("root", *own_items, setting("end", 9)), *children).edges)

    assert edges(100) - edges(50) == 2 * 50


def test_ten_times_as_many_children_cost_ten_times_as_much() -> None:
    def calls(count: int) -> int:
        profile = Profile()
        names = [f"c{number}" for number in range(count)]
        own_items = [child_unit(name, number % 2) for number, name in enumerate(names)]
        children = [joined(name, parent="root") for name in names]
        profile.enable()
        plan = plan_of(joined("root", *own_items, setting("end", 9)), *children)
        _pruned(plan, plan.units[0], 5)
        profile.disable()
        return sum(getstat.callcount for getstat in profile.getstats())

    assert calls(300) < 11 * calls(30)


def _pruned(plan: Plan, unit: PlannedUnit, wave: int) -> Plan:
    old = Ref(Kind("", "v1", "ConfigMap"), "default", "old")
    return prune_units(plan, [(unit, [PruneCandidate(old, wave)])])


def _all(plan: Plan) -> set[str]:
    return {item.ref.name for step in plan.steps for item in step_items(step)}
