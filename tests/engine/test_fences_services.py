"""Gates and what objects promise: the kinds of a definition, the answers of a webhook."""

from __future__ import annotations

from tests.engine.hooks import HookServer, a_webhook, an_answering_service
from tests.support.cluster_client import require_body, require_live
from tests.support.objects import CRD, a_definition
from tests.support.rollout_objects import FOLLOWING, a_gate
from tests.support.rollout_stage import Stage
from tidegate.model.k8s.json_fields import get_mappings, get_text, get_value
from tidegate.model.k8s.objects import Json, Kind, LiveObject, Ref
from tidegate.model.rollouts.event import EventType, StepState
from tidegate.world.messages import Success


async def test_a_definition_that_is_established_and_not_served_holds_its_gate(
    stage: Stage,
) -> None:
    group = f"{stage.namespace}.example.org"
    kind = Kind(group, "v1", "Gate")
    stage.world.hidden.add(kind)

    rolling = stage.start(a_definition(group), a_gate(group))
    definition = await stage.client.settled(Ref(CRD, "", f"gates.{group}"), _is_established)
    await rolling.waits("NotServed", message=f"`{kind}`")

    assert definition is not None
    assert not rolling.is_open
    stage.world.hidden.clear()
    await rolling.waits("NoNewerStatus")
    await stage.says(a_gate(group), {"open": True})
    assert (await rolling.ends()).result == "passed"


async def test_a_webhook_that_does_not_answer_holds_its_gate(
    stage: Stage, answering: HookServer
) -> None:
    hook = a_webhook(stage.namespace, answering.client)

    rolling = stage.start(hook, FOLLOWING)
    await rolling.waits("WebhookUnreachable", message="failed calling webhook")

    assert not rolling.is_open
    await answering.start()
    run = await rolling.ends()
    await stage.client.delete(await stage.ref(hook))
    assert run.result == "passed"
    assert [event.ref for event in run.events_of(EventType.OBJECT_WRITTEN)][-1] == await stage.ref(
        FOLLOWING
    )


async def test_a_webhook_is_probed_with_a_live_object_if_the_plan_has_none(
    stage: Stage, answering: HookServer
) -> None:
    group = f"{stage.namespace}.example.org"
    await stage.roll_out(a_definition(group))
    require_live(await stage.client.create(stage.here(a_gate(group))))
    hook = a_webhook(stage.namespace, answering.client, asks=(group, "gates"))

    rolling = stage.start(hook, FOLLOWING)
    await rolling.waits("WebhookUnreachable", message="failed calling webhook")

    assert not rolling.is_open
    await answering.start()
    run = await rolling.ends()
    await stage.client.delete(await stage.ref(hook))
    assert run.result == "passed"


async def test_a_webhook_with_conditions_must_have_ready_endpoints(stage: Stage) -> None:
    """Only the server can say which objects a condition takes."""
    service = await an_answering_service(stage.client)
    conditions: list[Json] = [{"name": "some", "expression": "object.metadata.name != 'later'"}]
    hook = a_webhook(stage.namespace, service.client, matchConditions=conditions)

    rolling = stage.start(hook, FOLLOWING)
    await rolling.waits("NoEndpoints")

    assert not rolling.is_open
    await service.start()
    run = await rolling.ends()
    await stage.client.delete(await stage.ref(hook))
    assert run.result == "passed"


async def test_a_webhook_that_nothing_can_be_tried_with_must_have_ready_endpoints(
    stage: Stage,
) -> None:
    service = await an_answering_service(stage.client)
    asks = ("autoscaling", "horizontalpodautoscalers")
    hook = a_webhook(stage.namespace, service.client, asks=asks)

    rolling = stage.start(hook)
    await rolling.waits("NoEndpoints")

    assert not rolling.is_open
    await service.start()
    run = await rolling.ends()
    await stage.client.delete(await stage.ref(hook))
    assert run.result == "passed"


async def test_a_webhook_that_fails_open_blocks_nothing(
    stage: Stage, answering: HookServer
) -> None:
    hook = a_webhook(stage.namespace, answering.client, failurePolicy="Ignore")

    run = await stage.roll_out(hook, FOLLOWING)

    await stage.client.delete(await stage.ref(hook))
    assert set(run.states.values()) == {StepState.PASSED}


def _is_established(live: LiveObject | None) -> bool:
    if live is None:
        return False
    conditions = get_mappings(require_body(Success(live)), "status", "conditions")
    named = [condition for condition in conditions if get_text(condition, "type") == "Established"]
    return any(get_value(item, "status") == "True" for item in named)
