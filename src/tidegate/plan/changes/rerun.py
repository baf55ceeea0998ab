"""A plan that runs a Job or hook again, and everything that depends on it, in all units.

An existing Job or hook is deleted first. The plan does not contain the steps before it.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tidegate.model.k8s.objects import Ref
from tidegate.model.plans.plan import (
    Edge,
    EdgeReason,
    HookPolicy,
    ItemAction,
    Plan,
    PlanFragment,
    PlanItem,
    PlannedUnit,
    Step,
    digest_step,
    step_items,
)
from tidegate.model.units.unit import UnitId
from tidegate.plan.build.build import digest_units
from tidegate.plan.build.chains import mark_last, narrow_plan

JOB_KIND = ("batch", "Job")
CLEANUP_STAGE = "cleanup"


def is_task(item: PlanItem) -> bool:
    """Return whether an item runs to completion: a Job or a hook."""
    kind = item.ref.kind
    return item.action is ItemAction.APPLY and (
        item.hook is not None or (kind.group, kind.name) == JOB_KIND
    )


def find_tasks(plan: Plan) -> list[tuple[Step, PlanItem]]:
    """Return all Jobs and hooks of a plan in order."""
    return [(step, item) for step in plan.steps for item in step_items(step) if is_task(item)]


def affected_units(plan: Plan, step: Step) -> list[PlannedUnit]:
    """Return the unit of a step, and the units with steps that wait for it."""
    later_ids = _later_ids(plan, step) | {step.id}
    affected_ids = {plan_step.unit for plan_step in plan.steps if plan_step.id in later_ids}
    return [unit for unit in plan.units if unit.id in affected_ids]


def rerun(plan: Plan, step: Step, ref: Ref, deployed_digests: Mapping[UnitId, str]) -> Plan:
    """Return the plan that runs one object of a step again.

    `deployed_digests`: the digest of the last rollout of each affected unit. If it was complete,
    the
    unit keeps its digest; else it counts as partially deployed after this plan.
    """
    later_ids = _later_ids(plan, step)

    def narrow_step(plan_step: Step) -> Step | None:
        if plan_step.id == step.id:
            return _rerun_step(plan_step, only=ref)
        return _rerun_step(plan_step) if plan_step.id in later_ids else None

    narrowed = narrow_plan(plan, narrow_step)
    units = [
        _partial_unit(unit, narrowed, deployed_digests[unit.id])
        for unit in affected_units(plan, step)
    ]
    steps, edges = _with_cleanup(narrowed)
    return Plan.from_fragment(PlanFragment(units=tuple(units), steps=steps, edges=edges))


def _partial_unit(unit: PlannedUnit, narrowed: Plan, deployed_digest: str) -> PlannedUnit:
    (partial,) = digest_units((unit,), narrowed.steps)
    policy = msgspec.structs.replace(unit.policy, prune=False, runs_hooks=True)
    digest = unit.digest if deployed_digest == unit.digest else partial.digest
    planned: PlannedUnit = msgspec.structs.replace(
        unit, policy=policy, digest=digest, group="", parent=None
    )
    return planned


def _with_cleanup(plan: Plan) -> tuple[tuple[Step, ...], tuple[Edge, ...]]:
    """Return steps and edges, with a step that deletes the existing Jobs before each step with
    Jobs.
    """
    steps: list[Step] = []
    cleanup_steps: dict[str, Step] = {}
    for step in plan.steps:
        jobs = tuple(item for item in step_items(step) if is_task(item) and item.hook is None)
        if jobs:
            batches = (tuple(PlanItem(ref=job.ref, action=ItemAction.DELETE) for job in jobs),)
            cleanup = msgspec.structs.replace(
                step,
                id=f"{step.id}/{CLEANUP_STAGE}",
                stage=CLEANUP_STAGE,
                batches=batches,
                digest=digest_step(batches),
                is_last=False,
            )
            cleanup_steps[step.id] = cleanup
            steps.append(cleanup)
        steps.append(step)
    step_ids = {plan_step.id for plan_step in steps}
    edges = [
        msgspec.structs.replace(
            edge, after=cleanup_steps[edge.after].id if edge.after in cleanup_steps else edge.after
        )
        for edge in plan.edges
        if edge.before in step_ids and edge.after in step_ids
    ]
    edges += [Edge(cleanup.id, name, EdgeReason.STAGE) for name, cleanup in cleanup_steps.items()]
    by_unit: dict[UnitId, list[Step]] = {}
    for step in steps:
        by_unit.setdefault(step.unit, []).append(step)
    marked = {
        plan_step.id: plan_step
        for unit_steps in by_unit.values()
        for plan_step in mark_last(unit_steps)
    }
    return tuple(marked[plan_step.id] for plan_step in steps), tuple(edges)


def _later_ids(plan: Plan, step: Step) -> set[str]:
    """Return the steps that wait for a step, and the failure steps of all affected units."""
    successors: dict[str, list[str]] = {}
    for edge in plan.edges:
        successors.setdefault(edge.before, []).append(edge.after)
    later_ids, pending = set[str](), [step.id]
    while pending:
        for name in successors.get(pending.pop(), ()):
            if name not in later_ids:
                later_ids.add(name)
                pending.append(name)
    affected = {
        plan_step.unit
        for plan_step in plan.steps
        if plan_step.id in later_ids or plan_step.id == step.id
    }
    return later_ids | {
        plan_step.id
        for plan_step in plan.steps
        if plan_step.unit in affected and plan_step.only_on_failure
    }


def _rerun_step(step: Step, only: Ref | None = None) -> Step | None:
    """Return the step with its Jobs and hooks changed so that they run again."""
    batches = tuple(
        tuple(_rerun_item(item) for item in batch if only is None or item.ref == only)
        for batch in step.batches
    )
    remaining = tuple(batch for batch in batches if batch)
    if not remaining and step.batches:
        return None
    return msgspec.structs.replace(
        step, batches=remaining, digest=digest_step(remaining, step.expansion)
    )


def _rerun_item(item: PlanItem) -> PlanItem:
    """Return a hook that is deleted before its creation, or a Job that is created even if it
    expired.
    """
    if not is_task(item):
        return item
    if item.hook is None:
        return msgspec.structs.replace(item, expires=False)
    policies = dict.fromkeys((HookPolicy.BEFORE_CREATION, *item.hook))
    return msgspec.structs.replace(item, hook=tuple(policies))
