"""The plan that deletes a unit: hooks before, objects in reverse order, hooks after.

With Argo CD semantics, waves are deleted from the highest to the lowest: the objects of a wave at
once, and the next wave when they are gone. With Flux semantics, all objects are deleted in one
step,
in the reverse order of kinds. Objects that opt out of deletion are kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

import msgspec

from tidegate.model.k8s.helm_order import uninstall_rank
from tidegate.model.k8s.objects import Propagation
from tidegate.model.plans.manifest import Manifest, Manifests
from tidegate.model.plans.plan import (
    HookPolicy,
    Plan,
    PlanFragment,
    PlanItem,
    PlannedUnit,
    Step,
    digest_bytes,
    digest_step,
    step_items,
)
from tidegate.model.units.policy import Order, Permission
from tidegate.plan.build.build import plan_unit
from tidegate.plan.build.chains import link_chain, step_id
from tidegate.plan.build.items import ReadinessTimeout, make_item
from tidegate.plan.build.releases import sort_by_weight
from tidegate.plan.changes.prune import Batch, PruneCandidate, delete_item, is_crd, reversed_batches

PRE_DELETE = "predelete"
DELETE = "delete"
POST_DELETE = "postdelete"
UNIT_RESOURCE = "own"


def build_deletion(
    unit_manifests: Manifests,
    live_objects: Iterable[PruneCandidate],
    *,
    readiness_timeout: ReadinessTimeout,
) -> Plan:
    """Return the plan that deletes a unit.

    `live_objects` are all objects of the unit, with hooks of earlier syncs. Objects that require a
    confirmation are in the plan and marked.
    """
    unit = plan_unit(unit_manifests.unit)
    pre_delete = _hook_steps(unit, PRE_DELETE, unit_manifests.before_deletion, readiness_timeout)
    post_delete = _hook_steps(unit, POST_DELETE, unit_manifests.after_deletion, readiness_timeout)
    candidates = {
        candidate.ref: candidate
        for candidate in (*_pre_delete_candidates(unit_manifests, pre_delete), *live_objects)
    }
    deleted = [
        _with_propagation(candidates[ref], unit.policy.deletion_propagation)
        for ref in sorted(candidates)
        if candidates[ref].options.delete is not Permission.NO
    ]
    if unit.policy.order is Order.STAGES:
        deletions = _stage_steps(unit, deleted)
    elif unit.policy.release is not None:
        deletions = _release_steps(
            unit, [candidate for candidate in deleted if not is_crd(candidate.ref.kind)]
        )
    else:
        deletions = _wave_steps(
            unit, [candidate for candidate in deleted if not is_crd(candidate.ref.kind)]
        )
    steps = (*pre_delete, *deletions, *post_delete)
    policy = msgspec.structs.replace(unit.policy, prune=False)  # kept objects are still in Git
    planned_unit = msgspec.structs.replace(
        unit, digest=_hooks_digest((*pre_delete, *post_delete)), policy=policy
    )
    return Plan.from_fragment(
        PlanFragment(units=(planned_unit,), steps=steps, edges=tuple(link_chain(steps)))
    )


def with_unit_resource(plan: Plan, unit_resources: Iterable[PruneCandidate]) -> Plan:
    """Return the deletion plan with a last step that deletes unit resources without waiting for
    them.
    """
    unit = plan.units[0]
    items = tuple(
        delete_item(candidate, requires_confirmation=False, is_gating=False)
        for candidate in unit_resources
    )
    if not items:
        return plan
    steps = (*plan.steps, _phase_step(unit, UNIT_RESOURCE, (items,)))
    fragment = PlanFragment(units=plan.units, steps=steps, edges=tuple(link_chain(steps)))
    return Plan.from_fragment(fragment)


def _hooks_digest(hooks: Iterable[Step]) -> str:
    """Return a digest of the hooks, without the objects that are left.

    A resumed deletion has the same digest, so that its hooks do not run again.
    """
    parts = (f"{step.id} {step.digest}".encode() for step in hooks)
    return digest_bytes(DELETE.encode(), *parts)


def _pre_delete_candidates(
    unit_manifests: Manifests, pre_delete: tuple[Step, ...]
) -> list[PruneCandidate]:
    """Return the hooks that run before, which are deleted with the other objects.

    A hook with a generated name is deleted at the end, because its name is not known yet. Hooks of
    a release are deleted by their own policies only.
    """
    if unit_manifests.unit.policy.release is not None:
        return []
    waves = {manifest.ref: manifest.wave for manifest in unit_manifests.before_deletion}
    items = (item for step in pre_delete for item in step_items(step) if not item.generates_name)
    return [PruneCandidate(item.ref, waves[item.ref], item.options) for item in items]


def _with_propagation(candidate: PruneCandidate, propagation: Propagation | None) -> PruneCandidate:
    """Return the candidate with the propagation policy of the unit, if it has one."""
    if propagation is None:
        return candidate
    options = msgspec.structs.replace(candidate.options, propagation=propagation)
    return msgspec.structs.replace(candidate, options=options)


def _delete_item(candidate: PruneCandidate, *, is_gating: bool = True) -> PlanItem:
    """Return the item that deletes an object. A confirmation for pruning is required here, too."""
    requires_confirmation = Permission.ASK in {candidate.options.delete, candidate.options.prune}
    return delete_item(candidate, requires_confirmation=requires_confirmation, is_gating=is_gating)


def _hook_steps(
    unit: PlannedUnit,
    phase: str,
    manifests: tuple[Manifest, ...],
    readiness_timeout: ReadinessTimeout,
) -> tuple[Step, ...]:
    """Return a step with all hooks of a phase: their waves do not count, and they get no
    finalizer.
    """
    if unit.policy.release is not None:
        return _release_hook_steps(unit, phase, manifests, readiness_timeout)
    items = (
        make_item(manifest, phase, readiness_timeout, with_finalizer=False)
        for manifest in manifests
    )
    ordered = tuple(sorted(items, key=lambda item: (item.ref, item.digest)))
    if phase == PRE_DELETE:
        ordered = tuple(map(_deleted_at_end, ordered))
    return (_phase_step(unit, phase, (ordered,)),) if ordered else ()


def _release_hook_steps(
    unit: PlannedUnit,
    phase: str,
    manifests: tuple[Manifest, ...],
    readiness_timeout: ReadinessTimeout,
) -> tuple[Step, ...]:
    """Return one step for each hook of a release."""
    ordered = sort_by_weight(manifests)
    items = (
        make_item(manifest, phase, readiness_timeout, with_finalizer=False) for manifest in ordered
    )
    return tuple(
        _phase_step(unit, phase, ((item,),), number) for number, item in enumerate(items, 1)
    )


def _deleted_at_end(item: PlanItem) -> PlanItem:
    """Return a hook with a generated name so that it is deleted after everything else."""
    if not item.generates_name or item.options.delete is Permission.NO:
        return item
    policies = dict.fromkeys((*(item.hook or ()), HookPolicy.SUCCEEDED))
    return msgspec.structs.replace(item, hook=tuple(policies))


def _wave_steps(unit: PlannedUnit, candidates: list[PruneCandidate]) -> tuple[Step, ...]:
    by_wave: dict[int, list[PlanItem]] = {}
    for candidate in candidates:
        by_wave.setdefault(candidate.wave, []).append(_delete_item(candidate))
    waves = sorted(by_wave, reverse=True)
    return tuple(_phase_step(unit, DELETE, (tuple(by_wave[wave]),), wave) for wave in waves)


def _stage_steps(unit: PlannedUnit, candidates: list[PruneCandidate]) -> tuple[Step, ...]:
    batches = reversed_batches(map(_delete_item, candidates))
    return (_phase_step(unit, DELETE, batches),) if batches else ()


def _release_steps(unit: PlannedUnit, candidates: list[PruneCandidate]) -> tuple[Step, ...]:
    """Return a step that deletes objects in Helm's uninstall order, those of one kind at once."""
    release = unit.policy.release
    is_gating = release is None or release.uninstall.waits
    ordered = sorted(
        candidates, key=lambda candidate: (uninstall_rank(candidate.ref.kind.name), candidate.ref)
    )
    items = (_delete_item(candidate, is_gating=is_gating) for candidate in ordered)
    kinds = groupby(items, key=lambda item: item.ref.kind.name)
    batches = tuple(tuple(batch) for _, batch in kinds)
    return (_phase_step(unit, DELETE, batches),) if batches else ()


def _phase_step(
    unit: PlannedUnit, phase: str, batches: tuple[Batch, ...], wave: int | None = None
) -> Step:
    """Return a step whose objects are all awaited, with any semantics."""
    return Step(
        id=step_id(unit, phase) if wave is None else step_id(unit, phase, wave),
        unit=unit.id,
        cluster=unit.cluster,
        digest=digest_step(batches),
        phase=phase,
        wave=wave or 0,
        batches=batches,
    )
