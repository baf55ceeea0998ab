"""Progress of units for their status, computed from the state of their steps and objects."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tidegate.engine.cluster.procedures import ApiCall, Procedure
from tidegate.engine.context import RolloutContext
from tidegate.engine.messages import CompareResult
from tidegate.engine.state.rollout import ItemRun, ItemState, StepRun, UnitRun
from tidegate.model.k8s.objects import ClusterRef, LiveObject, versionless_key
from tidegate.model.k8s.verdict import Verdict
from tidegate.model.plans.plan import AWAIT_ACTIONS, ItemAction, PlanItem, Step, step_items
from tidegate.model.rollouts.event import StepState
from tidegate.model.rollouts.progress import ObjectProgress, ObjectResult, UnitPhase, UnitProgress
from tidegate.model.times import Ms
from tidegate.model.units.unit import UnitId
from tidegate.world import messages
from tidegate.world.requests import Get

UNREPORTED_ACTIONS = AWAIT_ACTIONS | {ItemAction.CREATE, ItemAction.SKIP}
"""Actions on objects that are not part of the unit, or do not exist."""


class UnitTracker(msgspec.Struct):
    """State of one unit for its status, in addition to the state of its steps."""

    resource_ref: ClusterRef
    started_at: Ms
    is_operated: bool = False
    """Whether something was done to the unit, not only compared."""
    result: str = ""
    reason: str = ""
    message: str = ""
    failed_by_gate: bool = False
    """Whether the first failure was a gate that did not open."""
    failed_by_test: bool = False
    """Whether the first failure was a test."""
    gating_steps: set[str] = msgspec.field(default_factory=set)
    """Steps whose gates have been reached."""
    is_writing: bool = False
    """Whether a status write is in progress."""
    has_update: bool = False
    """Whether the status has changed since the write in progress."""
    is_missing: bool = False
    """Whether a status had to be written before the unit resource existed."""
    has_child_update: bool = False
    """Whether the status of a child changed and is not included yet."""
    is_following_children: bool = False
    """Whether that update is being written."""
    written_at: Ms = Ms(0)
    """Time of the last write."""
    is_final_written: bool = False
    """Whether the final status is written."""
    verdicts: dict[ClusterRef, Verdict] = msgspec.field(default_factory=dict)
    """Verdicts of objects that have changed since their last evaluation."""
    extra_objects: tuple[ObjectProgress, ...] = ()
    """Live objects of the unit that Git no longer has and that are not pruned."""


def build_progress(context: RolloutContext, unit: UnitRun, tracker: UnitTracker) -> UnitProgress:
    """Return the progress of a unit until now."""
    phase = UnitPhase.RUNNING if tracker.is_operated else UnitPhase.WAITING
    return UnitProgress(
        unit=unit.unit.id,
        phase=UnitPhase.FINISHED if tracker.result else phase,
        now=context.world.now(),
        started_at=tracker.started_at,
        digest=unit.unit.digest,
        has_operation=tracker.is_operated,
        result=tracker.result,
        reason=tracker.reason,
        message=tracker.message,
        is_gate_failure=tracker.failed_by_gate,
        is_test_failure=tracker.failed_by_test,
        is_valid=unit.unit.id not in context.settings.excluded,
        retries=max((unit.attempts, *(step.attempts for step in unit.steps))),
        waits_for=blocking_units(unit),
        objects=(*_object_progress(context, unit, tracker), *tracker.extra_objects),
        release=unit.unit.policy.release,
        release_records=context.histories.record_bodies(unit.unit.id),
        has_same_revision=unit.unit.policy.drift is not None,
        remediation_succeeded=unit.is_remediated if unit.has_run_on_failure else None,
    )


def blocking_units(unit: UnitRun) -> tuple[UnitId, ...]:
    """Return the units that block steps of this one, except its parent.

    If some of them will never pass, only those are returned.
    """
    others = (
        step_before
        for step in unit.steps
        for step_before in step.before
        if step_before.unit is not unit
    )
    unpassed = [step_before for step_before in others if step_before.state is not StepState.PASSED]
    never_passing = [step_before for step_before in unpassed if step_before.is_final]
    names = dict.fromkeys(step_before.unit.unit.id for step_before in never_passing or unpassed)
    return tuple(name for name in names if name != unit.unit.parent)


def blocked_message(unit: UnitRun) -> str:
    """Describe which other unit prevents this one from passing; empty if none does."""
    skipped = (step for step in unit.steps if step.state is StepState.SKIPPED)
    before = (
        step_before
        for step in skipped
        for step_before in step.before
        if step_before.unit is not unit
    )
    never_passing = [
        step_before
        for step_before in before
        if step_before.is_final and step_before.state is not StepState.PASSED
    ]
    first = min(
        never_passing,
        key=lambda step_before: step_before.state is not StepState.FAILED,
        default=None,
    )
    return f"`{first.unit.unit.id}` did not pass" if first else ""


def evaluate_changed(
    context: RolloutContext, unit: UnitRun
) -> Procedure[dict[ClusterRef, Verdict]]:
    """Return verdicts of the objects that changed since their last evaluation; may run scripts."""
    verdicts: dict[ClusterRef, Verdict] = {}
    for run in (run for step in unit.steps for run in step.items):
        live = context.live_cache.objects.get(run.object_ref)
        if (
            live is None
            or run.item.action in UNREPORTED_ACTIONS
            or run.object_ref not in context.owners
        ):
            continue
        if run.health is None or run.health.version != live.resource_version:
            verdicts[run.object_ref] = (
                yield from context.evaluate_health(run.object_ref, live)
            ).verdict
    if unit.unit.policy.apply_out_of_sync_only:
        for step, item in _desired_items(context, unit):
            object_ref = ClusterRef(step.cluster, item.ref)
            live = context.live_cache.objects.get(object_ref)
            if live is not None and object_ref not in verdicts and object_ref in context.owners:
                verdicts[object_ref] = (
                    yield from context.evaluate_health(object_ref, live)
                ).verdict
    return verdicts


def find_unpruned(context: RolloutContext, unit: UnitRun) -> Procedure[tuple[ObjectProgress, ...]]:
    """Return the live objects that Git no longer has, of a unit that does not prune."""
    if unit.unit.policy.prune:
        return ()
    record = context.leases[unit.unit.id].record
    planned_identities = {
        versionless_key(run.item.ref) for step in unit.steps for run in step.items
    }
    refs = [
        ref
        for ref, entry in record.entries.items()
        if not entry.hook and entry.digest and versionless_key(ref) not in planned_identities
    ]
    outcomes = (yield tuple(ApiCall(record.cluster, Get(ref)) for ref in refs)) if refs else ()
    return tuple(
        ObjectProgress(ref=ref, is_desired=False, is_live=True, body=outcome.live.body)
        for ref, outcome in zip(refs, outcomes, strict=True)
        if isinstance(outcome, messages.Success) and outcome.live is not None
    )


def _object_progress(
    context: RolloutContext, unit: UnitRun, tracker: UnitTracker
) -> Iterator[ObjectProgress]:
    for step in (step_run for step_run in unit.steps if not context.is_remediation(step_run.step)):
        for run in step.items:
            if run.item.action in UNREPORTED_ACTIONS:
                continue
            last_verdict = run.health.verdict if run.health else None
            yield _progress_for_item(
                context, step, run, tracker.verdicts.get(run.object_ref, last_verdict)
            )
    yield from _in_sync_progress(context, unit, tracker)


def _in_sync_progress(
    context: RolloutContext, unit: UnitRun, tracker: UnitTracker
) -> Iterator[ObjectProgress]:
    """Yield the in-sync objects that a unit with `ApplyOutOfSyncOnly` has left out."""
    if not unit.unit.policy.apply_out_of_sync_only:
        return
    planned_refs = {run.object_ref for step in unit.steps for run in step.items}
    for step, item in _desired_items(context, unit):
        object_ref = ClusterRef(step.cluster, item.ref)
        live = context.live_cache.objects.get(object_ref)
        if live is None or object_ref in planned_refs:
            continue
        verdict = tracker.verdicts.get(object_ref)
        yield ObjectProgress(
            ref=item.ref,
            phase=step.phase,
            wave=step.wave,
            in_sync=True,
            is_live=True,
            health=verdict.health if verdict and verdict.is_checked else None,
            body=live.body,
        )


def _desired_items(context: RolloutContext, unit: UnitRun) -> Iterator[tuple[Step, PlanItem]]:
    """Yield the desired items of a unit, except hooks and items of other units."""
    plan = context.unit_plans.get(unit.unit.id)
    for step in plan.steps if plan else ():
        for item in step_items(step):
            if item.hook is None and item.action not in UNREPORTED_ACTIONS:
                yield step, item


def _progress_for_item(
    context: RolloutContext, step: StepRun, run: ItemRun, verdict: Verdict | None
) -> ObjectProgress:
    item, live = run.item, context.live_cache.objects.get(run.object_ref)
    is_desired, result = item.action is not ItemAction.DELETE, _object_result(run)
    failure_message = step.failure.message if result is ObjectResult.FAILED and step.failure else ""
    return ObjectProgress(
        ref=item.ref,
        phase=step.step.phase,
        wave=step.step.wave,
        is_hook=item.hook is not None,
        is_desired=is_desired,
        in_sync=is_desired and _is_synced(context, run, live),
        requires_confirmation=item.requires_confirmation and not step.unit.unit.policy.confirmed,
        is_live=live is not None,
        is_awaited=run.state is ItemState.GATING and step.state is StepState.GATING,
        result=result,
        health=verdict.health if live and verdict and verdict.is_checked else None,
        message=run.wait_message or failure_message,
        body=item.body if live is None else live.body,
        drift=run.drift,
    )


def _is_synced(context: RolloutContext, run: ItemRun, live: LiveObject | None) -> bool:
    """Return whether an object is in sync with Git; if it was not compared, by the last write."""
    if run.written is not None:
        return live is not None
    if run.state is ItemState.PASSED:
        return True
    entry = context.leases[run.step.unit.unit.id].record.entries.get(run.item.ref)
    return live is not None and entry is not None and entry.digest == run.item.digest


def _object_result(run: ItemRun) -> ObjectResult:
    """Return what was done to an object of a step."""
    gate_failed = run.step.state is StepState.FAILED and run.state is ItemState.GATING
    if run.state is ItemState.FAILED or gate_failed:
        return ObjectResult.FAILED
    if run.item.action is ItemAction.DELETE:
        if run.state is not ItemState.PASSED or run.compare_result is CompareResult.ABSENT:
            return ObjectResult.NONE
        is_unconfirmed = run.item.requires_confirmation and not run.step.unit.unit.policy.confirmed
        return ObjectResult.PRUNE_SKIPPED if is_unconfirmed else ObjectResult.PRUNED
    if run.written is None:
        return ObjectResult.UNCHANGED if run.state is ItemState.PASSED else ObjectResult.NONE
    if not run.written.changed:
        return ObjectResult.UNCHANGED
    return (
        ObjectResult.CREATED
        if run.compare_result is CompareResult.ABSENT
        else ObjectResult.CONFIGURED
    )
