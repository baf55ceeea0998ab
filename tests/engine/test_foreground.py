"""Deletion in the foreground: what an object owns goes before it, on every world."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec
import pytest

from tests.support.builders import make_deployment, make_job
from tests.support.cluster_client import ClusterClient, require_live
from tests.support.objects import a_stateful_set
from tests.support.rollout_stage import Stage
from tidegate.model.k8s.json_fields import get_text
from tidegate.model.k8s.objects import JsonObject, Kind, Propagation
from tidegate.world.messages import Message, Response, WatchEvent, WatchEventType
from tidegate.world.requests import RequestId, Selection

POD = Kind("", "v1", "Pod")
REPLICA_SET = Kind("apps", "v1", "ReplicaSet")


async def going(client: ClusterClient, body: JsonObject, *owned: Kind) -> list[str]:
    """The kinds of an object and of the objects that it owns, in the order of their deletion.

    Watches start before the objects exist, because a pod may end quickly. Each kind has its own
    stream, so the last deletion need not be the last event.
    """
    kind = Kind.of(get_text(body, "apiVersion"), get_text(body, "kind"))
    for fromkey in dict.fromkeys((kind, *owned)):
        watch = client.watch(Selection(fromkey, client.namespace))
        await client.until(partial(_is_answer, watch))
    owner = require_live(await client.apply(body)).ref
    await client.until(_has_seen(owned.count(POD), _is_running_pod))
    await client.delete(owner, propagation=Propagation.FOREGROUND)
    messages = await client.until(_has_seen(1 + len(owned), _is_gone))
    gone = [
        message.live
        for message in messages
        if isinstance(message, WatchEvent) and _is_gone(message)
    ]
    return [
        live.ref.kind.name for live in sorted(gone, key=lambda live: int(live.resource_version))
    ]


def _has_seen(count: int, holds: Callable[[WatchEvent], bool]) -> Callable[[Message], bool]:
    """Collects events until so many objects have had one."""
    known: set[str] = set()

    def is_complete(message: Message) -> bool:
        if isinstance(message, WatchEvent) and holds(message):
            known.add(message.live.uid)
        return len(known) == count

    return is_complete


def _is_answer(request_id: RequestId, message: Message) -> bool:
    return isinstance(message, Response) and message.request_id == request_id


def _is_running_pod(result: WatchEvent) -> bool:
    body: JsonObject = msgspec.json.decode(result.live.body)
    return result.live.ref.kind == POD and get_text(body, "status", "phase") == "Running"


def _is_gone(result: WatchEvent) -> bool:
    return result.type is WatchEventType.DELETED


async def test_foreground_deletion_removes_pods_then_the_replica_set_then_the_deployment(
    living_stage: Stage,
) -> None:
    web = living_stage.here(make_deployment(replicas=2))

    gone = await going(living_stage.client, web, REPLICA_SET, POD, POD)

    assert gone == ["Pod", "Pod", "ReplicaSet", "Deployment"]


@pytest.mark.parametrize(
    "body", [a_stateful_set("db"), make_job("migrate")], ids=lambda body: str(body["kind"])
)
async def test_foreground_deletion_removes_pods_before_their_owner(
    living_stage: Stage, body: JsonObject
) -> None:
    gone = await going(living_stage.client, living_stage.here(body), POD)

    assert gone == ["Pod", body["kind"]]
