"""Who holds a unit, where a server can tell: versions, uids, and what is gone."""

from __future__ import annotations

import base64

import msgspec

from tests.support.cluster_client import require_live
from tests.support.rollout_objects import FOLLOWING, WEB
from tests.support.rollout_stage import Stage
from tests.support.rollout_statuses import ready
from tidegate.engine.records.heartbeat import LEASE_DURATION, lease_ref
from tidegate.engine.records.storage import TIDEGATE_NAMESPACE, resource_name
from tidegate.model.k8s.kinds import SECRET
from tidegate.model.k8s.objects import Json, JsonObject, Ref
from tidegate.model.rollouts.event import EventType
from tidegate.model.times import Ms
from tidegate.world.messages import Conflict, NotFound, Success


def lease_of(stage: Stage, number: int = 1) -> Ref:
    return lease_ref(f"{stage.namespace}-rollout-{number}")


def record_of(stage: Stage) -> Ref:
    return Ref(SECRET, TIDEGATE_NAMESPACE, resource_name(stage.namespace))


async def head_of(stage: Stage) -> dict[str, Json]:
    document = msgspec.json.decode(require_live(await stage.client.get(record_of(stage))).body)
    head: dict[str, Json] = msgspec.json.decode(base64.b64decode(document["data"]["journal.json"]))
    return head


async def test_a_finished_unit_has_no_lease_and_no_heartbeat(stage: Stage) -> None:
    rolling = stage.start(WEB, FOLLOWING)
    await rolling.waits("NotObserved")
    held, beats = (await head_of(stage))["holder"], await stage.client.get(lease_of(stage))
    await stage.says(WEB, ready(1))

    run = await rolling.ends()

    assert run.result == "passed"
    assert held == f"{stage.namespace}-rollout-1"
    assert isinstance(beats, Success)
    assert (await head_of(stage))["holder"] == ""
    assert isinstance(await stage.client.get(lease_of(stage)), NotFound)


async def test_a_heartbeat_is_deleted_only_as_it_was_seen(stage: Stage) -> None:
    rolling = stage.start(WEB, FOLLOWING)
    await rolling.waits("NotObserved")
    seen = require_live(await stage.client.get(lease_of(stage)))
    note: JsonObject = {"metadata": {"annotations": {"example.org/seen": "1"}}}
    require_live(await stage.client.patch(seen.ref, note))

    outdated = await stage.client.delete(
        seen.ref, uid=seen.uid, resource_version=seen.resource_version
    )

    await rolling.stops()
    assert isinstance(outdated, Conflict)


async def test_a_concurrent_write_to_the_record_is_not_overwritten(
    stage: Stage,
) -> None:
    rolling = stage.start(WEB, FOLLOWING)
    await rolling.waits("NotObserved")
    head = await head_of(stage)
    assert isinstance(head["turn"], int)
    turn = head["turn"] + 1
    taken = msgspec.json.encode({**head, "holder": "another", "turn": turn})
    text = base64.b64encode(taken).decode()
    require_live(await stage.client.patch(record_of(stage), {"data": {"journal.json": text}}))

    await stage.says(WEB, ready(1))
    run = await rolling.ends()

    last = await head_of(stage)
    assert run.result == "passed"
    assert (last["holder"], last["turn"]) == ("another", turn)


async def test_the_next_rollout_of_a_plan_waits_for_the_first(stage: Stage) -> None:
    first = stage.start(WEB, FOLLOWING)
    await first.waits("NotObserved")
    second = stage.start(WEB, FOLLOWING)
    await second.emits(EventType.UNIT_WAITING)
    await stage.says(WEB, ready(1))

    ends = [(await item.ends()).result for item in (first, second)]

    assert ends == ["passed", "passed"]
    assert second.run.events_of(EventType.UNIT_ACQUIRED)
    assert not second.run.events_of(EventType.OBJECT_WRITTEN)


async def test_a_unit_whose_lease_was_deleted_stays_with_its_live_holder(stage: Stage) -> None:
    first = stage.start(WEB, FOLLOWING)
    await first.waits("NotObserved")
    require_live(await stage.client.get(lease_of(stage)))
    second = stage.start(WEB, FOLLOWING)
    await second.emits(EventType.UNIT_WAITING)

    await stage.client.delete(lease_of(stage))
    await stage.client.rest(Ms(stage.client.world.now() + LEASE_DURATION))
    holder = (await head_of(stage))["holder"]
    await stage.says(WEB, ready(1))

    assert holder == f"{stage.namespace}-rollout-1"
    assert [(await item.ends()).result for item in (first, second)] == ["passed", "passed"]
    assert not second.run.events_of(EventType.OBJECT_WRITTEN)
