"""Ownership checks before the first write: adoption, sharing, collateral deletion."""

from __future__ import annotations

from tidegate.engine.cluster.compare import ComparedItem
from tidegate.engine.cluster.contents import collateral_message, find_collateral
from tidegate.engine.cluster.preflight.checks import ObjectFailure
from tidegate.engine.cluster.procedures import Procedure
from tidegate.engine.context import RolloutContext
from tidegate.engine.messages import Failure
from tidegate.errors import Location, PlanError, sanitize
from tidegate.model.k8s.kinds import CRD, NAMESPACE
from tidegate.model.k8s.objects import object_body, versionless_key
from tidegate.model.plans.plan import ItemAction, Plan
from tidegate.model.rollouts.event import OWNED_OBJECT_DELETED

CONTAINER_KINDS = frozenset({NAMESPACE, CRD})


def check_unit_names(context: RolloutContext, plan: Plan) -> None:
    """Raise a PlanError for a unit whose name another source uses: it would prune its objects.

    A unit that is defined by a resource (Application, Kustomization, HelmRelease) may move its
    source.
    """
    for unit in plan.units:
        recorded_source = context.leases[unit.id].record.source
        may_move = unit.id.kind or unit.policy.adopt_name
        if recorded_source in {"", unit.source} or not unit.source or may_move:
            continue
        problem = (
            f"`{unit.id}` was rolled out from `{sanitize(recorded_source)}`, but its source is now"
            f" `{unit.source}`"
        )
        hint = "rename it with `--name`, or confirm the new source with `--force-owner`"
        raise PlanError("plan.name", problem, location=Location(unit.source), hint=hint)


def find_adopted(
    context: RolloutContext, compared_items: list[ComparedItem]
) -> list[ObjectFailure]:
    """Return the objects to be written or deleted that belong to another unit or Helm release."""
    adopted: list[ObjectFailure] = []
    for step, item, compared in filter(context.will_be_modified, compared_items):
        live = context.live_cache.objects.get(compared.object_ref)
        if live is None:
            continue
        unit = context.comparer.units[step.unit]
        owner = context.evaluator.find_other_owner(unit, item, object_body(live))
        if owner:
            reason = OWNED_OBJECT_DELETED if item.action is ItemAction.DELETE else "Adopted"
            message = f"belongs to {owner}, which loses it"
            adopted.append((step, item.ref, Failure(reason, message)))
    return adopted


def find_shared(context: RolloutContext, compared_items: list[ComparedItem]) -> list[ObjectFailure]:
    """Return the objects that two units of the rollout write, where that is an error.

    CRDs may be shared.
    """
    rejecting = {
        name
        for name, unit in context.comparer.units.items()
        if unit.policy.semantics.rejects_shared or unit.policy.fail_on_shared_resource
    }
    return [
        (step, item.ref, Failure("Shared", f"unit `{other}` also writes it", final=True))
        for step, item, compared in compared_items
        if step.unit in rejecting and item.action is ItemAction.APPLY and item.ref.kind != CRD
        for other in sorted(context.writers[compared.object_ref] - {step.unit})
    ]


def find_collateral_failures(
    context: RolloutContext, compared_items: list[ComparedItem]
) -> Procedure[list[ObjectFailure]]:
    """Return the deletions that would also delete objects of other owners without permission."""
    failures: list[ObjectFailure] = []
    deletions = [
        compared_item
        for compared_item in compared_items
        if compared_item[1].action is ItemAction.DELETE and context.will_be_modified(compared_item)
    ]
    deleted_identities = {(step.cluster, *versionless_key(item.ref)) for step, item, _ in deletions}
    for step, item, compared in deletions:
        live = context.live_cache.objects.get(compared.object_ref)
        is_allowed = context.comparer.units[step.unit].policy.delete_contents
        if live is None or is_allowed or item.ref.kind not in CONTAINER_KINDS:
            continue
        served = context.live_cache.served_kinds.get(step.cluster, {}).values()
        find_owner, tracking_id = context.evaluator.find_owner, step.unit.tracking_id
        collateral = yield from find_collateral(
            compared.object_ref, live, served, find_owner, tracking_id
        )
        collateral = [
            ref
            for ref in collateral
            if (step.cluster, *versionless_key(ref)) not in deleted_identities
        ]
        if collateral:
            failures.append(
                (step, item.ref, Failure("Contents", collateral_message(collateral), final=True))
            )
    return failures
