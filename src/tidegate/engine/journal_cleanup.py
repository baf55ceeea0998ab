"""Removal of journal entries that are no longer needed.

Entries of objects are removed when the objects are gone. A hook entry counts as long as its
rollout lasts, even if the hook is gone; if the rollout failed, its hooks run again with the
next one.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.engine.context import RolloutContext
from tidegate.engine.state.rollout import UnitRun
from tidegate.model.k8s.objects import ClusterRef, Ref
from tidegate.model.plans.plan import ItemAction, Step, step_items
from tidegate.model.rollouts.event import StepState
from tidegate.model.units.unit import UnitId

FAILED = StepState.FAILED


def remove_missing_objects(
    context: RolloutContext, prune_candidates: dict[UnitId, list[ClusterRef]]
) -> list[UnitId]:
    """Remove entries of objects that are neither desired nor live.

    Return the units that had some.
    """
    cleaned_units: dict[UnitId, None] = {}
    for unit, object_refs in prune_candidates.items():
        unsynced = context.live_cache.find_unsynced(object_refs)
        for object_ref in object_refs:
            is_gone = object_ref not in context.live_cache.objects and object_ref not in unsynced
            if is_gone and object_ref.ref in context.leases[unit].record.entries:
                context.leases[unit].record.remove_entry(object_ref.ref)
                cleaned_units[unit] = None
    return list(cleaned_units)


def remove_deleted_items(context: RolloutContext, step: Step) -> None:
    """Remove entries of objects that a step was to delete and that no longer exist."""
    for item in step_items(step):
        if (
            item.action is ItemAction.DELETE
            and ClusterRef(step.cluster, item.ref) not in context.live_cache.objects
        ):
            remove_object(context, step, item.ref)


def remove_object(context: RolloutContext, step: Step, ref: Ref) -> None:
    """Remove the entry of an object, unless it is a hook."""
    record = context.leases[step.unit].record
    entry = record.entries.get(ref)
    if entry is not None and not entry.hook:
        record.remove_entry(ref)


def remove_hook_entries(context: RolloutContext, steps: Iterable[Step]) -> None:
    """Remove the hook entries of steps, so that the hooks run again."""
    for step in steps:
        for item in step_items(step):
            if item.hook is not None:
                context.leases[step.unit].record.remove_entry(item.ref)


def remove_failed_hooks(context: RolloutContext, unit: UnitRun) -> None:
    """Remove the hook entries of failed steps, so that the next rollout runs their hooks again."""
    retries_all = unit.semantics.retry.restarts_unit
    rerun_steps = (
        step_run
        for step_run in unit.steps
        if retries_all or step_run.state is FAILED or step_run.step.only_on_failure
    )
    remove_hook_entries(context, (step_run.step for step_run in rerun_steps))
