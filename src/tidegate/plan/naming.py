"""Names of hooks that have only the beginning of one, by Argo CD's scheme.

They are completed when a rollout begins; one that is taken up again keeps its names.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Json, Ref
from tidegate.model.plan import HookPolicy, Item, Plan, Step, digest_step, items_of
from tidegate.model.reading import mapping
from tidegate.model.unit import UnitId
from tidegate.plan.items import digest_text

SHORT = 7


def name_generated(plan: Plan, *, begun: Mapping[UnitId, Ms], revision: str = "") -> Plan:
    """The plan with every name complete; its digest still covers what Git says.

    `begun`: when the rollout of each unit began. Where nobody names the revision, the digest of a
    unit does.
    """
    if not any(item.generates for step in plan.steps for item in items_of(step)):
        return plan
    revisions = {unit.id: _short(revision or unit.digest) for unit in plan.units}
    seconds = {unit.id: begun[unit.id] // SECOND for unit in plan.units}
    steps = (
        _named(one, f"{revisions[one.unit]}-{one.phase}-{seconds[one.unit]}") for one in plan.steps
    )
    return msgspec.structs.replace(plan, steps=tuple(steps))


def _short(revision: str) -> str:
    return revision[:SHORT] if len(revision) > SHORT else revision


def _named(step: Step, suffix: str) -> Step:
    if not any(item.generates for item in items_of(step)):
        return step
    seen: dict[Ref, int] = {}
    batches = tuple(
        tuple(_complete(item, suffix.lower(), step.event, seen) for item in batch)
        for batch in step.batches
    )
    digest = digest_step(batches, step.expands)
    return msgspec.structs.replace(step, batches=batches, digest=digest)


def _complete(item: Item, suffix: str, event: str, seen: dict[Ref, int]) -> Item:
    """The item under its whole name; of several with the same beginning, later ones are counted.

    What has that name already is an earlier try, which makes room.
    """
    if not item.generates:
        return item
    number = seen[item.ref] = seen.get(item.ref, 0) + 1
    name = item.ref.name + suffix + (f"-{number}" if number > 1 else "")
    body: dict[str, Json] = msgspec.json.decode(item.body)
    metadata = {
        key: part for key, part in mapping(body, "metadata").items() if key != "generateName"
    }
    text = msgspec.json.encode({**body, "metadata": {**metadata, "name": name}})
    return msgspec.structs.replace(
        item,
        ref=msgspec.structs.replace(item.ref, name=name),
        body=text,
        digest=digest_text(text, item.hook, event),
        generates=False,
        hook=tuple(dict.fromkeys((*(item.hook or ()), HookPolicy.BEFORE_CREATION))),
    )
