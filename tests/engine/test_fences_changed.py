"""Gates and applied manifests: a verdict about a changed manifest opens no gate."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from tests.support.builders import make_config_map, make_deployment, make_object
from tests.support.cluster_client import require_live
from tests.support.rollout_objects import FOLLOWING, WEB
from tests.support.rollout_runs import Run
from tests.support.rollout_stage import RunningRollout, Stage
from tests.support.rollout_statuses import addressed, ready
from tidegate.engine.state.apply import MAX_REAPPLIES
from tidegate.model.k8s.json_fields import get_int, get_mapping, get_mappings, get_text
from tidegate.model.k8s.objects import JsonObject, LiveObject
from tidegate.model.rollouts.event import Event, EventType, StepState
from tidegate.world.messages import NotFound
from tidegate.world.requests import PatchType

NEWER = make_deployment(image="app:2")
FREE: JsonObject = {
    **WEB,
    "spec": {k: v for k, v in get_mapping(WEB, "spec").items() if k != "replicas"},
}
"""A Deployment of whose replicas Git says nothing."""
BALANCED = make_object(
    "v1 Service",
    "web",
    spec={"type": "LoadBalancer", "ports": [{"port": 80}], "selector": {"a": "b"}},
)
UNDONE: JsonObject = {"spec": {"template": get_mapping(WEB, "spec", "template")}}
"""What `kubectl rollout undo` writes: the template of the revision before."""
EMPTIED: JsonObject = {"spec": {"replicas": 0}}
"""What `kubectl scale --replicas 0` writes."""


def idle(generation: int) -> JsonObject:
    """A Deployment without replicas, which is healthy."""
    counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    return {**ready(generation), **dict.fromkeys(counts, 0)}


async def by_another(
    stage: Stage, body: JsonObject, patch: JsonObject, *, manager: str = "kubectl"
) -> LiveObject:
    ref = await stage.ref(body)
    return require_live(
        await stage.client.patch(ref, patch, patch_type=PatchType.MERGE, manager=manager)
    )


async def hanging(stage: Stage) -> RunningRollout:
    """The second version of a Deployment is written, and does not become ready."""
    first = stage.start(WEB)
    await first.waits("NotObserved")
    await stage.says(WEB, ready(1))
    assert (await first.ends()).result == "passed"
    rolling = stage.start(NEWER, FOLLOWING)
    await rolling.waits("NotObserved")
    return rolling


async def put_back(stage: Stage, theirs: LiveObject) -> LiveObject:
    """The object after another client has changed its spec."""

    def is_later(live: LiveObject | None) -> bool:
        return live is not None and live.generation > theirs.generation

    later = await stage.client.settled(theirs.ref, is_later)
    assert later is not None
    return later


def changes(run: Run) -> list[Event]:
    return [event for event in run.events_of(EventType.GATE_WAITING) if event.reason == "Changed"]


def says(live: LiveObject) -> tuple[str, int]:
    """The image and the replicas of a Deployment."""
    body: JsonObject = msgspec.json.decode(live.body)
    (container,) = get_mappings(body, "spec", "template", "spec", "containers")
    return get_text(container, "image"), get_int(body, "spec", "replicas")


@pytest.mark.parametrize(
    ("patch", "status", "manager", "field"),
    [
        (UNDONE, ready, "kubectl-rollout", "`spec.template"),
        (EMPTIED, idle, "kubectl", "`spec.replicas`"),
    ],
    ids=["undo", "scale"],
)
async def test_an_object_that_another_writer_made_healthy_opens_no_gate(
    stage: Stage, patch: JsonObject, status: Callable[[int], JsonObject], manager: str, field: str
) -> None:
    rolling = await hanging(stage)

    with stage.world.held():
        theirs = await by_another(stage, NEWER, patch, manager=manager)
        await stage.says(NEWER, status(theirs.generation))
    result = await rolling.waits("Changed")
    ours = await put_back(stage, theirs)
    await rolling.observes(ours)

    assert result.ref == theirs.ref
    assert f" {manager}" in result.message
    assert field in result.message
    assert not rolling.is_open
    assert says(ours) == ("app:2", 1)
    assert isinstance(await stage.client.get(await stage.ref(FOLLOWING)), NotFound)
    await stage.says(NEWER, ready(ours.generation))
    assert (await rolling.ends()).result == "passed"


async def test_a_writer_that_changes_it_again_and_again_fails_the_step(stage: Stage) -> None:
    rolling = await hanging(stage)

    for _ in range(MAX_REAPPLIES):
        theirs = await by_another(stage, NEWER, UNDONE)
        await rolling.observes(await put_back(stage, theirs))
    await by_another(stage, NEWER, UNDONE)
    run = await rolling.ends()

    (failure,) = run.events_of(EventType.STEP_FAILED)
    assert run.result == "failed"
    assert failure.reason == "Changed"
    assert "Deployment" in failure.message
    assert "kubectl" in failure.message
    assert not run.events_of(EventType.GATE_OPENED, EventType.RETRY_SCHEDULED)
    assert list(run.states.values()) == [StepState.FAILED, StepState.SKIPPED]


async def test_changes_of_unowned_fields_do_not_close_a_gate(stage: Stage) -> None:
    rolling = stage.start(FREE, FOLLOWING)
    await rolling.waits("NotObserved")

    with stage.world.held():
        scaled = await by_another(
            stage, FREE, {"spec": {"replicas": 3}}, manager="horizontal-pod-autoscaler"
        )
        three = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas"), 3)
        status = {**ready(scaled.generation), **three, "availableReplicas": 3}
        await stage.says(FREE, status)
    run = await rolling.ends()

    assert scaled.generation == 2
    assert run.result == "passed"
    assert changes(run) == []
    assert says(await stage.live(FREE)) == ("app:1", 3)


async def test_a_kind_without_a_generation_is_compared_by_its_version(stage: Stage) -> None:
    rolling = stage.start(BALANCED, FOLLOWING)
    await rolling.waits_for("web")

    with stage.world.held():
        theirs = await by_another(stage, BALANCED, {"spec": {"selector": {"a": "c"}}})
        await stage.says(BALANCED, addressed())
    result = await rolling.waits("Changed")
    run = await rolling.ends()

    body: JsonObject = msgspec.json.decode((await stage.live(BALANCED)).body)
    assert (result.ref, run.result) == (theirs.ref, "passed")
    assert "`spec.selector.a`" in result.message
    assert get_mapping(body, "spec", "selector") == {"a": "b"}


async def test_a_healthy_object_is_restored_while_its_step_is_waiting(
    stage: Stage,
) -> None:
    settings = make_config_map("settings", mode="fast")
    rolling = stage.start((settings, WEB), FOLLOWING)
    await rolling.waits("NotObserved")

    theirs = await by_another(stage, settings, {"data": {"mode": "slow"}})
    result = await rolling.waits("Changed")
    await stage.says(WEB, ready(1))
    run = await rolling.ends()

    body: JsonObject = msgspec.json.decode((await stage.live(settings)).body)
    assert (result.ref, run.result) == (theirs.ref, "passed")
    assert get_mapping(body, "data") == {"mode": "fast"}
