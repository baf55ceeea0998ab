"""Gates of a unit: which of its objects, and of other objects, later units wait for.

Objects of other owners are items that are awaited and never written. Gates are relaxed only in the
last step of a unit, because the rest of the unit needs the earlier steps. If the last step is a
prerequisite itself, no gate is relaxed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import msgspec

from tidegate.model.k8s.objects import ClusterRef, Ref, versionless_key
from tidegate.model.plans.graph import ObjectKey
from tidegate.model.plans.plan import (
    ExternalDependency,
    ItemAction,
    PlanItem,
    PlannedUnit,
    Step,
    digest_step,
    step_items,
)
from tidegate.model.units.depends_on import AwaitedState
from tidegate.model.units.policy import GateScope
from tidegate.model.units.unit import Unit
from tidegate.plan.build.chains import step_id
from tidegate.plan.build.releases import OBJECTS_STAGE

AWAIT_STAGE = "awaits"
"""The stage that waits for dependencies before the first write of a unit."""
CHECK_STAGE = "checks"
"""The stage that waits for listed objects, if the unit has no objects of its own to gate."""
ACTIONS_BY_STATE = {
    AwaitedState.READY: ItemAction.AWAIT,
    AwaitedState.PRESENT: ItemAction.AWAIT_PRESENT,
    AwaitedState.ABSENT: ItemAction.AWAIT_ABSENT,
}


def set_gates(
    steps: list[Step], unit: PlannedUnit, children: Collection[tuple[str, str, str, str]] = ()
) -> list[Step]:
    """Return the steps, the last one with the gates that the policy requires.

    Unit resources of `children` are not checked: the rollouts of these units decide.
    """
    policy = unit.policy
    if policy.gates is GateScope.ALL:
        return steps
    gating_keys = (
        {versionless_key(ref) for ref in policy.gating_refs}
        if policy.gates is GateScope.LISTED
        else set()
    )
    item_keys = {versionless_key(item.ref) for step in steps for item in step_items(step)}
    external_refs = [
        ref
        for ref in policy.gating_refs
        if versionless_key(ref) in gating_keys - item_keys - {*children}
    ]
    chain = [step for step in steps if not step.only_on_failure]
    if not chain or chain[-1].is_prerequisite:
        awaited = [_await_item(ref) for ref in external_refs]
        return [*steps, await_step(unit, CHECK_STAGE, awaited)] if external_refs else steps
    last = next((step for step in chain if step.stage == OBJECTS_STAGE), chain[-1])
    batches = tuple(
        tuple(_with_gate(item, gating_keys) for item in batch) for batch in last.batches
    )
    if external_refs:
        batches = (*batches, tuple(_await_item(ref) for ref in external_refs))
    digest = digest_step(batches, last.expansion)
    gated = msgspec.structs.replace(last, batches=batches, digest=digest)
    return [gated if step is last else step for step in steps]


def with_await_steps(
    steps: Iterable[Step], unit: PlannedUnit, external_dependencies: Iterable[ExternalDependency]
) -> Iterator[Step]:
    """Yield the steps of a unit, each after a step that awaits its external dependencies.

    Steps that run on failure do not wait.
    """
    awaited_by_object: dict[ClusterRef, list[PlanItem]] = {}
    for dependency in external_dependencies:
        awaited_by_object.setdefault(dependency.dependent, []).append(
            _await_item(dependency.ref, dependency.state)
        )
    for step in steps:
        object_refs = [ClusterRef(step.cluster, item.ref) for item in step_items(step)]
        items = [
            item for object_ref in object_refs for item in awaited_by_object.get(object_ref, ())
        ]
        if items and not step.only_on_failure:
            waiting_step = await_step(unit, AWAIT_STAGE, dict.fromkeys(items))
            name = f"{step.id}/{AWAIT_STAGE}"
            yield msgspec.structs.replace(waiting_step, id=name, phase=step.phase, wave=step.wave)
        yield step


def await_step(unit: PlannedUnit, stage: str, items: Iterable[PlanItem]) -> Step:
    """Return a step that waits and writes nothing."""
    batches = (tuple(items),)
    digest, name = digest_step(batches), step_id(unit, stage)
    return Step(
        id=name, unit=unit.id, cluster=unit.cluster, stage=stage, batches=batches, digest=digest
    )


def _with_gate(item: PlanItem, gating_keys: set[tuple[str, str, str, str]]) -> PlanItem:
    is_gating = item.hook is not None or (
        item.is_gating and versionless_key(item.ref) in gating_keys
    )
    return (
        item if item.is_gating == is_gating else msgspec.structs.replace(item, is_gating=is_gating)
    )


def _await_item(ref: Ref, state: AwaitedState = AwaitedState.READY) -> PlanItem:
    return PlanItem(ref=ref, action=ACTIONS_BY_STATE[state])


def dependency_items(unit: Unit, provided: Collection[ObjectKey]) -> list[PlanItem]:
    """Return items for dependencies of a unit that the plan does not provide, or that must be
    absent.
    """
    cluster = unit.destination.cluster
    return [
        _await_item(dependency.ref, dependency.state)
        for dependency in unit.dependencies
        if dependency.ref is not None
        and (
            dependency.state is AwaitedState.ABSENT
            or (cluster, *versionless_key(dependency.ref)) not in provided
        )
    ]
