"""An object of another field manager is adopted: the same test for every world."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from tests.support.cluster_client import ClusterClient, require_body
from tests.support.objects import a_deployment, labelled
from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import Json, JsonObject, Ref
from tidegate.model.plans.change import Difference
from tidegate.plan.diff.adoption import adopted_managers, adoption_patch
from tidegate.plan.diff.compare import compare
from tidegate.plan.diff.last_applied import LAST_APPLIED
from tidegate.world.messages import Outcome, Success
from tidegate.world.requests import PatchType

OURS = "tidegate"


class TakeoverCase(NamedTuple):
    """What was foreseen, and the object after it was taken over and applied."""

    managers: tuple[str, ...]
    foreseen: Difference
    live: JsonObject
    after: Difference


async def take_over(client: ClusterClient, *, from_manager: str) -> TakeoverCase:
    """Another client has created a Deployment with more fields than Git; we adopt and apply it."""
    desired_deployment = a_deployment(replicas=0, paused=True)
    old = labelled(a_deployment(replicas=0, paused=True, minReadySeconds=7), team="shop")
    applied = msgspec.json.encode(old).decode()
    old["metadata"] = {**get_mapping(old, "metadata"), "annotations": {LAST_APPLIED: applied}}
    ref = await client.ref(desired_deployment)
    require_body(await client.create(old, manager=from_manager))
    require_body(
        await client.patch(ref, {"metadata": {"labels": {"tier": "front"}}}, manager="operator")
    )
    live = require_body(await client.get(ref))

    managers = adopted_managers(live, OURS)
    foreseen = compare(desired_deployment, live, manager=OURS)
    await client.eventually(
        lambda: _adopt(client, ref), lambda outcome: isinstance(outcome, Success)
    )
    after = require_body(await client.apply(desired_deployment, force=True, manager=OURS))
    return TakeoverCase(managers, foreseen, after, compare(desired_deployment, after, manager=OURS))


async def _adopt(client: ClusterClient, ref: Ref) -> Outcome:
    """A conflict where a controller wrote in between."""
    patch = adoption_patch(require_body(await client.get(ref)), OURS)
    assert patch is not None
    operations: list[Json] = msgspec.json.decode(patch)
    return await client.patch(ref, operations, patch_type=PatchType.JSON, manager=OURS)
