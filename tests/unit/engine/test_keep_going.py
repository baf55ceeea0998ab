"""A unit with a fault: nothing is written, or it is left out and the others are rolled out."""

from __future__ import annotations

from msgspec.structs import replace

from tests.support.builders import make_config_map, make_object, make_plan_from, make_unit
from tests.support.rollout_runs import Run, make_settings, roll_out
from tidegate.clusters.sandboxes import SimulationConfig, build_sandbox
from tidegate.model.plans.plan import Plan
from tidegate.model.rollouts.event import EventType, StepState

UNKNOWN = make_object("nobody.example/v1 Gadget", "odd")


def a_faulty_plan() -> Plan:
    """`bad` has an object of a kind that is not served; `late` waits for it, `well` does not."""
    return make_plan_from(
        make_unit(make_config_map("early"), UNKNOWN, name="bad"),
        make_unit(make_config_map("late"), name="late", after=("bad",)),
        make_unit(make_config_map("well"), name="well"),
    )


async def run(plan: Plan, *, keeps_going: bool) -> Run:
    settings = replace(make_settings(), skip_faulty_units=keeps_going)
    return await roll_out(build_sandbox(SimulationConfig()), plan, settings)


def written(result: Run) -> list[str]:
    return [
        event.ref.name
        for event in result.events_of(EventType.OBJECT_WRITTEN)
        if event.ref is not None
    ]


async def test_one_error_prevents_all_writes() -> None:
    result = await run(a_faulty_plan(), keeps_going=False)

    refused = [event.ref.name for event in result.events_of(EventType.OBJECT_REFUSED) if event.ref]
    assert result.result == "invalid"
    assert refused == ["odd"]
    assert written(result) == []


async def test_skip_broken_skips_the_invalid_unit_and_its_dependents() -> None:
    result = await run(a_faulty_plan(), keeps_going=True)

    ended = {str(event.unit): event.reason for event in result.events_of(EventType.UNIT_FINISHED)}
    assert result.result == "failed"
    assert ended == {"bad": "failed", "late": "skipped", "well": "passed"}
    assert written(result) == ["well"]
    assert result.states["late/sync/0"] is StepState.SKIPPED


async def test_skip_broken_without_errors_rolls_out_everything() -> None:
    plan = make_plan_from(
        make_unit(make_config_map("one"), name="one"), make_unit(make_config_map("two"), name="two")
    )

    result = await run(plan, keeps_going=True)

    assert result.result == "passed"
    assert sorted(written(result)) == ["one", "two"]
