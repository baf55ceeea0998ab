"""Units that create others, without a repository: parents, children, and their objects."""

from __future__ import annotations

from msgspec import structs

from tests.support.builders import (
    DEFAULT_POLICY,
    make_config_map,
    make_manifest,
    make_object,
    make_unit_id,
)
from tests.support.rollout_cases import no_budget
from tidegate.model.plans.manifest import Manifest, Manifests, Phase
from tidegate.model.plans.plan import ItemAction, Plan, Step, step_items
from tidegate.model.units.policy import Policy
from tidegate.model.units.unit import Dependency, Unit
from tidegate.plan.build.build import build_plan


def child_unit(
    name: str, wave: int = 0, phase: Phase = Phase.SYNC, *, served: bool = False
) -> Manifest:
    """The unit resource; it is skipped if its kind is not served."""
    body = make_object("argoproj.io/v1alpha1 Application", name, namespace="argocd")
    action = ItemAction.APPLY if served else ItemAction.SKIP
    made = make_manifest(body, wave=wave, phase=phase)
    return structs.replace(made, child_units=(make_unit_id(name),), action=action)


def setting(name: str, wave: int = 0, phase: Phase = Phase.SYNC) -> Manifest:
    return make_manifest(make_config_map(name), wave=wave, phase=phase)


def joined(
    name: str,
    *manifests: Manifest,
    parent: str = "",
    after: tuple[str, ...] = (),
    policy: Policy = DEFAULT_POLICY,
) -> Manifests:
    """A unit with these objects; without any it has one of its own name."""
    unit = Unit(
        id=make_unit_id(name),
        policy=policy,
        parent=make_unit_id(parent) if parent else None,
        dependencies=tuple(Dependency(unit=make_unit_id(item)) for item in after),
    )
    return Manifests(unit=unit, manifests=manifests or (setting(name),))


def plan_of(*units: Manifests) -> Plan:
    return build_plan(units, readiness_timeout=no_budget)


def before(plan: Plan, name: str) -> set[str]:
    """The objects whose gates must have opened when the step of this one begins."""
    steps = {step.id: step for step in plan.steps}
    entering: dict[str, list[str]] = {}
    for edge in plan.edges:
        entering.setdefault(edge.after, []).append(edge.before)
    pending = [step.id for step in plan.steps if name in _names(step)]
    seen: set[str] = set()
    while pending:
        fresh = [item for item in entering.get(pending.pop(), ()) if item not in seen]
        seen.update(fresh)
        pending += fresh
    return {name for step in seen for name in _names(steps[step])}


def _names(step: Step) -> list[str]:
    return [item.ref.name for item in step_items(step)]
