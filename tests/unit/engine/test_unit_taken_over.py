"""Another rollout takes one unit of a hundred: the others end as if nothing had happened."""

from __future__ import annotations

import pytest

from tests.support.builders import (
    annotate,
    make_config_map,
    make_deployment,
    make_unit,
    make_unit_id,
)
from tests.support.killable_processes import Absence, Happening
from tests.support.rollout_cases import IN_A_HURRY, no_budget
from tests.support.rollout_stages import NOTHING, Actor, ProcessOptions, Stage
from tidegate.model.plans.manifest import Manifests
from tidegate.model.rollouts.event import Event, EventType
from tidegate.model.times import SECOND, Ms
from tidegate.plan.build.build import build_plan
from tidegate.sandbox.world import START

MANY = 100
TAKEN = make_unit_id("unit-42")
SLOW = 12 * SECOND


def a_member(number: int, image: str = "app:1") -> Manifests:
    """A unit whose first Deployment takes a while, and whose second comes then."""
    first = annotate(make_deployment(f"u{number}-a", image=image), after=str(SLOW))
    second = make_deployment(f"u{number}-b", image=image)
    return make_unit(first, second, name=f"unit-{number}", policy=IN_A_HURRY)


def a_quick_member(number: int, image: str = "app:1") -> Manifests:
    return make_unit(make_config_map(f"u{number}", image=image), name=f"unit-{number}")


PLAN = build_plan([a_member(number) for number in range(MANY)], readiness_timeout=no_budget)
NEWER = build_plan([a_member(42, "app:2")], readiness_timeout=no_budget)


def events_of_others(actor: Actor) -> dict[str, list[tuple[EventType, str, str]]]:
    """The events of each of the others, in order."""
    result: dict[str, list[tuple[EventType, str, str]]] = {}
    for event in actor.run.events:
        if event.unit is not None and event.unit != TAKEN:
            result.setdefault(str(event.unit), []).append(_words(event))
    return result


def _words(event: Event) -> tuple[EventType, str, str]:
    return event.type, event.reason, event.ref.name if event.ref else ""


def others(stage: Stage) -> dict[str, object]:
    return {ref: body for ref, body in stage.objects().items() if "u42-" not in ref}


def ended(actor: Actor) -> dict[str, str]:
    return {str(item.unit): item.reason for item in actor.run.events_of(EventType.UNIT_FINISHED)}


@pytest.fixture(scope="module")
def undisturbed() -> tuple[Stage, Actor]:
    stage = Stage(NOTHING)
    return stage, stage.roll_out(PLAN)


def test_a_unit_requested_by_another_rollout_does_not_stop_the_rest(
    undisturbed: tuple[Stage, Actor],
) -> None:
    stage = Stage(NOTHING)
    first = stage.actor(PLAN)

    second = stage.actor(NEWER, ProcessOptions(holder="two", begins=2_000))
    stage.play(first, second)

    calm, alone = undisturbed
    assert (alone.run.result, second.run.result) == ("passed", "passed")
    assert events_of_others(first) == events_of_others(alone)
    assert others(stage) == others(calm)
    assert ended(first)[str(TAKEN)] == "stopped"
    assert len([item for item in ended(first).values() if item == "passed"]) == MANY - 1


def test_a_unit_that_was_taken_over_while_its_process_was_away_leaves_the_rest_alone(
    undisturbed: tuple[Stage, Actor],
) -> None:
    stage = Stage(NOTHING)
    first = stage.actor(PLAN)
    second = stage.actor(NEWER, ProcessOptions(holder="two", begins=2_000))
    away: list[Happening] = [
        (Ms(START + 1_500), first.life.world.cut),
        (Ms(START + 40_000), first.life.world.fix),
    ]

    stage.play(first, second, happenings=away)

    calm, _ = undisturbed
    assert second.run.result == "passed"
    assert ended(first).pop(str(TAKEN)) == "stopped"
    assert len([item for item in ended(first).values() if item == "passed"]) == MANY - 1
    assert others(stage) == others(calm)


def test_a_unit_that_was_taken_over_before_the_first_write_leaves_the_rest_alone() -> None:
    trio = build_plan([a_quick_member(number) for number in range(3)], readiness_timeout=no_budget)
    newer = build_plan([a_quick_member(1, "app:2")], readiness_timeout=no_budget)
    results = set()
    for away in range(0, 120, 4):
        stage = Stage(NOTHING)
        first, second = (
            stage.actor(trio),
            stage.actor(newer, ProcessOptions(holder="two", begins=500)),
        )
        stage.play(first, second, happenings=Absence(away, 40, "frozen").happenings(first.life))
        results.add(ended(first).pop("unit-1"))
        assert ended(first) | {"unit-1": ""} == {
            "unit-0": "passed",
            "unit-1": "",
            "unit-2": "passed",
        }
    assert results == {"passed", "stopped"}
