"""Gates and whom a verdict speaks of: the generation that was applied, and the very object."""

from __future__ import annotations

from tests.support.builders import make_config_map, make_deployment
from tests.support.cluster_client import require_live
from tests.support.objects import a_definition
from tests.support.rollout_objects import FOLLOWING, WEB, a_gate, an_ingress
from tests.support.rollout_stage import HASTY, PATIENT, Stage
from tests.support.rollout_statuses import addressed, ready
from tidegate.model.k8s.objects import JsonObject, LiveObject
from tidegate.model.rollouts.event import EventType


async def test_health_at_an_old_generation_does_not_open_a_gate(stage: Stage) -> None:
    await _pass_with(stage, WEB, ready(1))

    rolling = stage.start(make_deployment(image="app:2"), FOLLOWING)
    await rolling.waits("NotObserved")
    # Its controller has not seen the change, and reports Healthy again.
    stale = await stage.says(WEB, {**ready(1), "collisionCount": 1})
    await rolling.observes(stale)

    assert stale.generation == 2
    assert not rolling.is_open
    await stage.says(WEB, ready(2))
    assert (await rolling.ends()).result == "passed"


async def test_a_kind_without_a_generation_needs_a_newer_status(stage: Stage) -> None:
    await _pass_with(stage, an_ingress("old"), addressed("192.0.2.1"))

    rolling = stage.start(an_ingress("new"), FOLLOWING)
    await rolling.waits("NoNewerStatus")

    assert not rolling.is_open
    await stage.says(an_ingress("new"), addressed("192.0.2.2"))
    run = await rolling.ends()
    assert run.result == "passed"
    assert not run.events_of(EventType.GATE_UNPROVEN)


async def test_a_custom_resource_needs_a_newer_status(stage: Stage) -> None:
    group = f"{stage.namespace}.example.org"
    await _pass_with(stage, a_gate(group), {"open": True}, definition=a_definition(group))

    rolling = stage.start(a_gate(group, color="blue"))
    await rolling.waits("NoNewerStatus")

    assert not rolling.is_open
    await stage.says(a_gate(group), {"open": True, "color": "blue"})
    run = await rolling.ends()
    assert run.result == "passed"
    assert not run.events_of(EventType.GATE_UNPROVEN)


async def test_an_old_status_is_accepted_after_the_settle_time(stage: Stage) -> None:
    await _pass_with(stage, an_ingress("old"), addressed())

    run = await stage.roll_out(an_ingress("new"), semantics=HASTY)

    assert run.result == "passed"
    (unproven,) = run.events_of(EventType.GATE_UNPROVEN)
    assert unproven.ref == await stage.ref(an_ingress("new"))
    assert unproven.reason == "NoNewerStatus"


async def test_a_custom_resource_without_a_status_is_accepted_after_the_settle_time(
    stage: Stage,
) -> None:
    group = f"{stage.namespace}.example.org"
    gate = a_gate(group)

    run = await stage.roll_out(a_definition(group), gate, semantics=HASTY)

    assert run.result == "passed"
    assert [event.ref for event in run.events_of(EventType.GATE_UNPROVEN)] == [
        await stage.ref(gate)
    ]


async def test_the_health_of_an_impostor_does_not_open_a_gate(stage: Stage) -> None:
    rolling = stage.start(make_deployment(image="app:2"), FOLLOWING)
    await rolling.waits("NotObserved")
    ours = await stage.live(WEB)

    with stage.world.held():
        impostor = await _replace(stage, stage.here(make_deployment(image="app:1")))
        await stage.says(WEB, ready(1))
    await rolling.observes(impostor)
    restored = await stage.client.settled(ours.ref, lambda live: bool(live and live.generation > 1))

    assert restored is not None
    assert restored.uid == impostor.uid != ours.uid
    await rolling.observes(restored)
    assert not rolling.is_open
    await stage.says(WEB, ready(2))
    assert (await rolling.ends()).result == "passed"


async def test_an_object_deleted_by_another_client_is_restored(stage: Stage) -> None:
    rolling = stage.start(WEB)
    await rolling.waits("NotObserved")
    first = await stage.live(WEB)

    await stage.client.delete(first.ref)
    again = await stage.client.settled(
        first.ref, lambda live: live is not None and live.uid != first.uid
    )

    assert again is not None
    assert not rolling.is_open
    await stage.says(WEB, ready(1))
    assert (await rolling.ends()).result == "passed"


async def test_a_deleted_healthy_object_is_restored_while_others_are_awaited(
    stage: Stage,
) -> None:
    settings = make_config_map("settings")
    rolling = stage.start((settings, WEB), FOLLOWING)
    await rolling.waits("NotObserved")
    first = await stage.live(settings)

    await stage.client.delete(first.ref)
    again = await stage.client.settled(
        first.ref, lambda live: live is not None and live.uid != first.uid
    )
    await stage.says(WEB, ready(1))

    assert again is not None
    assert (await rolling.ends()).result == "passed"


async def _pass_with(
    stage: Stage, body: JsonObject, status: JsonObject, *, definition: JsonObject | None = None
) -> None:
    """A first rollout of an object that becomes healthy."""
    before = (definition,) if definition else ()
    rolling = stage.start(*before, body, semantics=PATIENT)
    reason = "NotObserved" if body["kind"] == "Deployment" else "NoNewerStatus"
    await rolling.waits(reason)
    await stage.says(body, status)
    assert (await rolling.ends()).result == "passed"


async def _replace(stage: Stage, body: JsonObject) -> LiveObject:
    """Another client deletes an object and creates it again."""
    await stage.client.delete(await stage.ref(body))
    return require_live(await stage.client.create(body, manager="other-client"))
