"""What a cluster is like at a moment, as the beginning of another one."""

from __future__ import annotations

import msgspec

from tests.support.cluster_client import require_items
from tidegate.engine.records.storage import TIDEGATE_NAMESPACE
from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import Json, JsonObject, Kind
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.one_shot import send_requests
from tidegate.world.protocol import World
from tidegate.world.requests import List, Selection

KEPT = frozenset({"name", "namespace", "annotations", "labels"})
GIVEN = frozenset({"default", "kube-root-ca.crt", "kube-system", "kube-public", "kube-node-lease"})
"""What a cluster has by itself."""
KINDS = ("Namespace", "ConfigMap")


async def scenario_of(world: World) -> JsonObject:
    """A scenario with the objects and the records of a cluster."""
    result: list[Json] = []
    for place, kind in (*(("", kind) for kind in KINDS), (TIDEGATE_NAMESPACE, "Secret")):
        (page,) = await send_requests(
            Dispatcher(world), List(Selection(Kind("", "v1", kind), place))
        )
        for live in require_items(page):
            body: JsonObject = msgspec.json.decode(live.body)
            metadata = get_mapping(body, "metadata")
            unit_resource: JsonObject = {key: part for key, part in metadata.items() if key in KEPT}
            if live.ref.name not in GIVEN:
                text = {key: part for key, part in body.items() if key not in {"spec", "status"}}
                result.append({**text, "apiVersion": "v1", "kind": kind, "metadata": unit_resource})
    return {"given": {"objects": result}}
