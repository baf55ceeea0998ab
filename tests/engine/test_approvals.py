"""Approvals on every world: of a rollout under way, before it, and after it was stopped."""

from __future__ import annotations

import pytest
from msgspec import structs

from tests.support.builders import make_config_map, make_unit
from tests.support.cluster_client import require_items
from tests.support.rollout_runs import with_policy
from tests.support.rollout_stage import PATIENT, RunningRollout, Stage
from tidegate.actions.approve import approve_units
from tidegate.engine.records.markers import APPROVAL_LABEL
from tidegate.errors import PlanError
from tidegate.health.readiness_timeout import readiness_timeout
from tidegate.model.k8s.kinds import CONFIG_MAP
from tidegate.model.plans.plan import Barrier, ConcurrencyLimit, Plan
from tidegate.model.rollouts.event import EventType
from tidegate.plan.build.build import build_plan
from tidegate.world.requests import Selection


def held(stage: Stage, *, to: str = "1") -> Plan:
    """A unit that waits for leave."""
    body = stage.here(make_config_map("held", to=to))
    made = make_unit(body, name=f"{stage.namespace}-held")
    made = structs.replace(made, unit=structs.replace(made.unit, concurrency_group="canary"))
    plan = build_plan(
        [made],
        concurrency_limits=(ConcurrencyLimit("canary", 0),),
        readiness_timeout=readiness_timeout,
    )
    return with_policy(plan, semantics=PATIENT)


async def waiting(rolling: RunningRollout) -> None:
    assert (await rolling.emits(EventType.STEP_WAITING)).reason == "Approval"


async def approve(stage: Stage, name: str = "") -> None:
    await approve_units([name or f"{stage.namespace}-held"], stage.dispatcher, [""])


async def approvals(stage: Stage) -> list[str]:
    result = await stage.client.page(
        Selection(CONFIG_MAP, "tidegate-system", label_selector=f"{APPROVAL_LABEL}=unit")
    )
    return [item.ref.name for item in require_items(result) if stage.namespace in item.ref.name]


async def test_a_running_rollout_receives_an_approval(stage: Stage) -> None:
    rolling = stage.start_plan(held(stage))
    await waiting(rolling)
    before = rolling.run.events_of(EventType.OBJECT_WRITTEN)

    await approve(stage)
    run = await rolling.ends()

    assert before == []
    assert run.result == "passed"
    assert await approvals(stage) == []


async def test_a_later_rollout_uses_the_approval(stage: Stage) -> None:
    first = stage.start_plan(held(stage))
    await waiting(first)
    await first.stops()

    await approve(stage)
    kept = await approvals(stage)
    run = await stage.start_plan(held(stage)).ends()

    assert len(kept) == 1
    assert run.result == "passed"
    assert await approvals(stage) == []


async def test_an_approval_is_of_one_text_and_the_next_waits_again(stage: Stage) -> None:
    first = stage.start_plan(held(stage))
    await waiting(first)
    await first.stops()
    await approve(stage)

    second = stage.start_plan(held(stage, to="2"))
    await waiting(second)
    await second.stops()

    assert not second.run.events_of(EventType.OBJECT_WRITTEN)


async def test_an_approval_opens_the_barrier_of_a_unit(stage: Stage) -> None:
    plan = stage.plan(make_config_map("first"), make_config_map("second"))
    barred = structs.replace(plan.steps[1], barrier=Barrier("Approval", "somebody must look"))
    plan = structs.replace(plan, steps=(plan.steps[0], barred))
    rolling = stage.start_plan(with_policy(plan, semantics=PATIENT))
    await waiting(rolling)

    await approve(stage, stage.namespace)

    assert (await rolling.ends()).result == "passed"


async def test_a_unit_without_a_rollout_cannot_be_approved(stage: Stage) -> None:
    with pytest.raises(PlanError) as raised:
        await approve(stage, "nobody")

    assert raised.value.code == "plan.named"
    assert "`nobody`" in raised.value.problem


async def test_a_finished_unit_waits_for_no_approval(stage: Stage) -> None:
    await stage.roll_out(make_config_map("web"))

    with pytest.raises(PlanError) as raised:
        await approve(stage, stage.namespace)

    assert raised.value.code == "plan.approval"
