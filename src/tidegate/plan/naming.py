"""Names of hooks that have only the beginning of one, by Argo CD's scheme.

They are completed when a rollout begins; one that is taken up again keeps its names.
"""

from __future__ import annotations

import msgspec

from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Json
from tidegate.model.plan import Item, Plan, Step, digest_bytes
from tidegate.model.reading import mapping

SHORT = 7


def name_generated(plan: Plan, *, revision: str, begun: Ms) -> Plan:
    """The plan with every name complete; its digest still covers what Git says."""
    if not any(item.generates for step in plan.steps for batch in step.batches for item in batch):
        return plan
    short = revision[:SHORT] if len(revision) > SHORT else revision
    steps = tuple(_named(step, f"{short}-{step.phase}-{begun // SECOND}") for step in plan.steps)
    return msgspec.structs.replace(plan, steps=steps)


def _named(step: Step, suffix: str) -> Step:
    batches = tuple(
        tuple(_complete(item, suffix.lower()) if item.generates else item for item in batch)
        for batch in step.batches
    )
    return msgspec.structs.replace(step, batches=batches)


def _complete(item: Item, suffix: str) -> Item:
    body: dict[str, Json] = msgspec.json.decode(item.body)
    name = item.ref.name + suffix
    metadata = {
        key: part for key, part in mapping(body, "metadata").items() if key != "generateName"
    }
    text = msgspec.json.encode({**body, "metadata": {**metadata, "name": name}})
    ref = msgspec.structs.replace(item.ref, name=name)
    return msgspec.structs.replace(
        item, ref=ref, body=text, digest=digest_bytes(text), generates=False
    )
