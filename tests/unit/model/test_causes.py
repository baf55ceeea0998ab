"""Objects that evidence is collected for, when a step failed."""

from __future__ import annotations

import pytest

from tidegate.model.k8s.objects import ClusterRef, Kind, Ref
from tidegate.model.rollouts.causes import failing_objects
from tidegate.model.rollouts.event import Event, EventType
from tidegate.model.rollouts.rollout_progress import RolloutProgress
from tidegate.model.times import Ms

WEB = Ref(Kind("apps", "v1", "Deployment"), "shop", "web")
STEP = "shop/sync/0"


def progress_after(event: Event) -> RolloutProgress:
    progress = RolloutProgress(Ms(0))
    progress.add_event(Event(Ms(0), EventType.OBJECT_WRITTEN, STEP, WEB))
    progress.add_event(event)
    return progress


@pytest.mark.parametrize("event_type", [EventType.STEP_FAILED, EventType.RETRY_SCHEDULED])
@pytest.mark.parametrize("message", ["too slow", "Deployment shop/other: too slow"])
def test_the_failing_object_is_known_for_any_message(event_type: EventType, message: str) -> None:
    event = Event(Ms(1), event_type, STEP, message=message, failed_object=WEB)

    assert failing_objects(progress_after(event)) == [ClusterRef("", WEB)]


def test_a_message_that_names_an_object_does_not_make_it_the_failing_one() -> None:
    event = Event(Ms(1), EventType.STEP_FAILED, STEP, message=f"{WEB} is not the cause")

    assert failing_objects(progress_after(event)) == []


def test_an_object_of_another_step_is_not_the_failing_one() -> None:
    other = Ref(WEB.kind, "shop", "other")
    event = Event(Ms(1), EventType.STEP_FAILED, STEP, message="refused", failed_object=other)

    assert failing_objects(progress_after(event)) == []
