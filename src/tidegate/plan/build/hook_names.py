"""Names of hooks with `generateName`, in the scheme of Argo CD.

Like `getSyncTasks` in `sync_context.go` of gitops-engine. Names are completed when a rollout
starts;
a resumed rollout keeps them.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import Json, Ref
from tidegate.model.plans.plan import HookPolicy, Plan, PlanItem, Step, digest_step, step_items
from tidegate.model.times import SECOND, Ms
from tidegate.model.units.unit import UnitId
from tidegate.plan.build.items import digest_body

SHORT_REVISION_LENGTH = 7


def complete_hook_names(plan: Plan, *, started_at: Mapping[UnitId, Ms], revision: str = "") -> Plan:
    """Return the plan with complete names. Its digest still covers the desired state.

    `started_at`: when the rollout of each unit started. Without a revision, the digest of the unit
    is used.
    """
    if not any(item.generates_name for step in plan.steps for item in step_items(step)):
        return plan
    revisions = {unit.id: _short_revision(revision or unit.digest) for unit in plan.units}
    seconds = {unit.id: started_at[unit.id] // SECOND for unit in plan.units}
    steps = (
        _with_names(step, f"{revisions[step.unit]}-{step.phase}-{seconds[step.unit]}")
        for step in plan.steps
    )
    return msgspec.structs.replace(plan, steps=tuple(steps))


def _short_revision(revision: str) -> str:
    return revision[:SHORT_REVISION_LENGTH] if len(revision) > SHORT_REVISION_LENGTH else revision


def _with_names(step: Step, suffix: str) -> Step:
    if not any(item.generates_name for item in step_items(step)):
        return step
    counts: dict[Ref, int] = {}
    batches = tuple(
        tuple(_with_name(item, suffix.lower(), step.hook_event, counts) for item in batch)
        for batch in step.batches
    )
    digest = digest_step(batches, step.expansion)
    return msgspec.structs.replace(step, batches=batches, digest=digest)


def _with_name(item: PlanItem, suffix: str, event: str, counts: dict[Ref, int]) -> PlanItem:
    """Return the item with its complete name; several of one prefix are numbered.

    An object with this name is from an earlier try, and is deleted first.
    """
    if not item.generates_name:
        return item
    number = counts[item.ref] = counts.get(item.ref, 0) + 1
    name = item.ref.name + suffix + (f"-{number}" if number > 1 else "")
    body: dict[str, Json] = msgspec.json.decode(item.body)
    metadata = {
        key: value for key, value in get_mapping(body, "metadata").items() if key != "generateName"
    }
    applied_body = msgspec.json.encode({**body, "metadata": {**metadata, "name": name}})
    return msgspec.structs.replace(
        item,
        ref=msgspec.structs.replace(item.ref, name=name),
        body=applied_body,
        digest=digest_body(applied_body, item.hook, event),
        generates_name=False,
        hook=tuple(dict.fromkeys((*(item.hook or ()), HookPolicy.BEFORE_CREATION))),
    )
