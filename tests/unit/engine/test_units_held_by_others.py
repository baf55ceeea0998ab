"""Units held by another live process: the others do not wait for them, and no wait is endless."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest
from msgspec import structs

from tests.support.builders import (
    annotate,
    make_config_map,
    make_deployment,
    make_object,
    make_unit,
)
from tests.support.rollout_cases import IN_A_HURRY, no_budget
from tests.support.rollout_stages import NOTHING, Actor, ProcessOptions, Stage, blocks, finished
from tidegate.engine.driver import Driver
from tidegate.engine.records.storage import UNIT_LABEL, resource_name
from tidegate.model.k8s.objects import JsonObject
from tidegate.model.plans.manifest import Manifests
from tidegate.model.plans.plan import Edge, EdgeReason, Plan
from tidegate.model.rollouts.event import EventType
from tidegate.model.times import SECOND, Ms
from tidegate.plan.build.build import build_plan
from tidegate.sandbox.faults import CallFault, Delay, FaultSelector, Frequency
from tidegate.sandbox.world import START

SLOW = 12 * SECOND


def member(number: int, image: str = "app:1", *, slow: int = 0, after: int = -1) -> Manifests:
    """A unit with a Deployment that takes a while, and an object after it."""
    first = annotate(make_deployment(f"u{number}-a", image=image), after=str(slow))
    second = make_config_map(f"u{number}-b", image=image)
    waits = (f"unit-{after}",) if after >= 0 else ()
    return make_unit(first, second, name=f"unit-{number}", after=waits, policy=IN_A_HURRY)


def plan_of(members: Iterable[Manifests]) -> Plan:
    return build_plan(members, readiness_timeout=no_budget)


def first_write(stage: Stage, sender: str, name: str) -> int:
    """When an object was first written, in milliseconds since the beginning."""
    ours = (item for item in stage.realm.landed if item.sender == sender)
    return min(our.at for our in ours if our.write.ref.name == name) - START


def ended(actor: Actor) -> dict[str, str]:
    return {str(item.unit): item.reason for item in actor.run.events_of(EventType.UNIT_FINISHED)}


def test_a_unit_that_is_held_delays_only_what_depends_on_it() -> None:
    stage, plan = Stage(NOTHING), plan_of([member(0, slow=SLOW)])
    first = stage.actor(plan, ProcessOptions(holder="z-first"))
    wider = plan_of([member(0, slow=SLOW), member(1), member(2, after=0)])
    second = stage.actor(wider, ProcessOptions(holder="a-second", begins=1_000))

    stage.play(first, second)

    assert first_write(stage, "2", "u1-a") < 1_100
    assert ended(second) == {"unit-0": "passed", "unit-1": "passed", "unit-2": "passed"}
    waits = second.run.events_of(EventType.UNIT_WAITING)
    assert {(str(wait.unit), wait.reason) for wait in waits} == {("unit-0", "LeaseHeld")}
    assert "`z-first`" in waits[0].message
    (taken,) = second.run.events_of(EventType.UNIT_ACQUIRED)
    assert first_write(stage, "2", "u2-a") > taken.at - START


def test_an_error_in_a_locked_unit_prevents_all_writes() -> None:
    stage = Stage(NOTHING)
    first = stage.actor(plan_of([member(0, slow=SLOW)]))
    odd = make_unit(make_object("nobody.example/v1 Gadget", "u0-odd"), name="unit-0")
    second = stage.actor(plan_of([odd, member(1)]), ProcessOptions(holder="two", begins=1_000))

    stage.play(first, second)

    assert (first.run.result, second.run.result) == ("passed", "invalid")
    assert not [item for item in stage.realm.landed if item.sender == "2"]


def with_selector(name: str, label: str) -> JsonObject:
    spec: JsonObject = {
        "selector": {"matchLabels": {"app": label}},
        "template": {
            "metadata": {"labels": {"app": label}},
            "spec": {"containers": [{"name": "app", "image": "app:1"}]},
        },
    }
    return make_object("apps/v1 Deployment", name, spec=spec)


def test_an_error_caused_by_the_holder_fails_only_its_unit() -> None:
    stage = Stage(NOTHING)
    slow = annotate(make_deployment("u0-a"), after="3000")
    theirs = make_unit(slow, with_selector("u0-b", "theirs"), name="unit-0", policy=IN_A_HURRY)
    ours = make_unit(slow, with_selector("u0-b", "ours"), name="unit-0", policy=IN_A_HURRY)
    first = stage.actor(plan_of([theirs]))
    second = stage.actor(
        plan_of([ours, member(1), member(2, after=0)]), ProcessOptions(holder="two", begins=100)
    )

    stage.play(first, second)

    assert first.run.result == "passed"
    assert second.run.result == "failed"
    assert ended(second) == {"unit-0": "failed", "unit-1": "passed", "unit-2": "skipped"}


def test_objects_of_the_previous_holder_are_pruned_after_acquiring_the_unit() -> None:
    stage = Stage(NOTHING)
    slow = annotate(make_deployment("u0-a"), after="3000")
    old = make_config_map("u0-old")
    marked: JsonObject = {
        "name": "u0-old",
        "namespace": "default",
        "annotations": {UNIT_LABEL: "unit-0"},
    }
    more = make_unit(slow, {**old, "metadata": marked}, name="unit-0", policy=IN_A_HURRY)
    less = make_unit(slow, name="unit-0", policy=structs.replace(IN_A_HURRY, prune=True))
    first = stage.actor(plan_of([more]))
    second = stage.actor(plan_of([less, member(1)]), ProcessOptions(holder="two", begins=100))

    stage.play(first, second)

    assert second.run.result == "passed"
    assert [
        item.ref.name for item in second.run.events_of(EventType.OBJECT_PRUNED) if item.ref
    ] == ["u0-old"]
    assert "u0-old" not in " ".join(stage.objects())


def test_a_rollout_that_waits_for_a_unit_can_be_stopped() -> None:
    stage, plan = Stage(NOTHING), plan_of([member(0, slow=SLOW)])
    first = stage.actor(plan)
    stops = {EventType.UNIT_WAITING: lambda driver: driver.stop("enough")}
    second = stage.actor(plan, ProcessOptions(holder="two", begins=1_000, answers=stops))

    stage.play(first, second)

    assert (first.run.result, second.run.result) == ("passed", "stopped")
    assert second.run.events[-1].at - START < 5_000


def test_a_unit_that_returns_in_a_later_plan_is_still_acquired() -> None:
    stage, held = Stage(NOTHING), member(0, slow=8 * SECOND)
    plan, without = plan_of([held, member(1, slow=8 * SECOND)]), plan_of([member(1, "app:2")])
    again = plan_of([held, member(1, "app:3")])
    first = stage.actor(plan_of([held]))

    changes: dict[EventType, Callable[[Driver], object]] = {
        EventType.UNIT_WAITING: lambda driver: driver.supersede(without),
        EventType.ROLLOUT_SUPERSEDED: lambda driver: driver.supersede(again),
    }
    second = stage.actor(plan, ProcessOptions(holder="two", begins=500, answers=changes))

    stage.play(first, second)

    assert second.run.result == "passed"
    assert stage.objects() == finished(again)


def crossed(slow: int) -> Plan:
    """The second step of each of two units comes after the first of the other."""
    plan = plan_of([member(0, slow=slow), member(1, slow=slow)])
    names = [step.id for step in plan.steps]
    (v, v2), (w, w2) = ([name for name in names if f"unit-{n}/" in name] for n in (0, 1))
    edges = (Edge(v, w2, EdgeReason.REFERENCE), Edge(w, v2, EdgeReason.REFERENCE))
    return structs.replace(plan, edges=(*plan.edges, *edges))


def divided() -> Stage:
    """Of two that begin at once, the first comes late to the record of `unit-1`."""
    later_write = FaultSelector(verbs=("create",), name=resource_name("unit-1"))
    slow = CallFault(Delay(duration=Ms(100)), later_write, Frequency(times=1))
    return Stage(replace(NOTHING, faults=(slow,)))


def test_two_rollouts_that_wait_for_each_other_release_their_units() -> None:
    stage, plan = divided(), crossed(500)
    first, second = (stage.actor(plan, ProcessOptions(holder=name)) for name in ("first", "second"))

    stage.play(first, second)

    assert blocks(stage)["u0"][0] != blocks(stage)["u1"][0]
    assert (first.run.result, second.run.result) == ("passed", "passed")
    assert stage.realm.now() - START < 20 * SECOND


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
def test_one_of_two_concurrent_plans_wins_everywhere(
    names: tuple[str, str],
) -> None:
    stage = divided()
    old, new = (
        plan_of([member(number, image, slow=12_000) for number in (0, 1)])
        for image in ("app:1", "app:2")
    )
    first, second = (
        stage.actor(old, ProcessOptions(holder=names[0])),
        stage.actor(new, ProcessOptions(holder=names[1])),
    )

    stage.play(first, second)

    winner, loser = (first, second) if names[0] > names[1] else (second, first)
    assert blocks(stage)["u0"][0] != blocks(stage)["u1"][0]
    assert (winner.run.result, loser.run.result) == ("passed", "stopped")
    assert stage.objects() == finished(winner.plan)
