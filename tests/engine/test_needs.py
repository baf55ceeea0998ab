"""What objects need to be written at all: their kind is served, their namespace is there."""

from __future__ import annotations

from tests.support.builders import make_config_map, make_object
from tests.support.objects import a_definition
from tests.support.rollout_objects import a_gate
from tests.support.rollout_runs import Run
from tests.support.rollout_stage import HASTY, Stage
from tests.support.write_records import Record
from tidegate.model.rollouts.event import Event, EventType

FIRST = make_config_map("first")


def the_refusal(run: Run) -> Event:
    """A rollout that wrote nothing reports its error, and its end."""
    (refused,) = run.events_of(EventType.OBJECT_REFUSED)
    assert [event.type for event in run.events] == [
        EventType.OBJECT_REFUSED,
        EventType.ROLLOUT_FINISHED,
    ]
    assert run.result == "invalid"
    return refused


async def test_an_unknown_kind_prevents_all_writes(living_stage: Stage, record: Record) -> None:
    gate = a_gate(f"{living_stage.namespace}.example.org")
    await record.mark()

    run = await living_stage.roll_out(FIRST, gate)

    refused = the_refusal(run)
    assert refused.ref is not None
    assert (refused.ref.name, refused.reason) == ("north", "NotServed")
    assert await record.written() == []


async def test_a_version_that_its_definition_does_not_serve_means_zero_writes(
    living_stage: Stage, record: Record
) -> None:
    group = f"{living_stage.namespace}.example.org"
    await record.mark()

    run = await living_stage.roll_out(
        a_definition(group), {**a_gate(group), "apiVersion": f"{group}/v7"}
    )

    assert the_refusal(run).reason == "NotServed"
    assert await record.written() == []


async def test_a_missing_namespace_that_no_unit_creates_means_zero_writes(
    living_stage: Stage, record: Record
) -> None:
    lost = make_object("v1 ConfigMap", "lost", namespace=f"{living_stage.namespace}-not")
    await record.mark()

    run = await living_stage.roll_out(FIRST, lost)

    refused = the_refusal(run)
    assert refused.reason == "NoNamespace"
    assert f"`{living_stage.namespace}-not`" in refused.message
    assert await record.written() == []


async def test_objects_in_the_wave_of_their_definition_are_written_when_their_kind_is_served(
    living_stage: Stage,
) -> None:
    group = f"{living_stage.namespace}.example.org"
    south = make_object(f"{group}/v1 Gate", "south", spec={"color": "red"})

    run = await living_stage.roll_out((a_definition(group), a_gate(group), south), semantics=HASTY)

    assert run.result == "passed"
    assert not run.events_of(EventType.RETRY_SCHEDULED)
    written = [event.ref.name for event in run.events_of(EventType.OBJECT_WRITTEN) if event.ref]
    assert written[0] == f"gates.{group}"
    assert sorted(written[1:]) == ["north", "south"]
