"""A unit's end, run on a simulated cluster."""

from __future__ import annotations

import msgspec

from tests.support.ordered_manifests import a_hook, a_thing, a_unit_of, no_budget, plan_of
from tests.support.rollout_runs import Run, make_settings, roll_out
from tidegate.clusters.sandboxes import SimulationConfig, build_sandbox
from tidegate.model.k8s.objects import Json
from tidegate.model.plans.manifest import Manifest, Manifests, Phase
from tidegate.model.plans.plan import HookPolicy, Plan
from tidegate.model.rollouts.event import EventType, StepState
from tidegate.plan.changes.delete_unit import build_deletion
from tidegate.plan.changes.prune import PruneCandidate

HELD: Json = ["test.dev/held"]


def a_map(name: str, wave: int, **metadata: Json) -> Manifest:
    named: Json = {"name": name, "namespace": "default", **metadata}
    return a_thing("ConfigMap", name, wave=wave, metadata=named)


def end_of(unit: Manifests) -> Plan:
    candidates = [PruneCandidate(manifest.ref, manifest.wave) for manifest in unit.manifests]
    return build_deletion(unit, candidates, readiness_timeout=no_budget)


async def made_and_ended(unit: Manifests) -> Run:
    world = build_sandbox(SimulationConfig())
    made = await roll_out(world, plan_of(unit), make_settings(0))
    assert made.result == "passed"
    return await roll_out(world, end_of(unit), make_settings(1))


def reported_names(run: Run, result: EventType) -> list[str]:
    return [event.ref.name for event in run.events_of(result) if event.ref is not None]


async def test_a_unit_is_deleted_in_reverse_between_its_hooks() -> None:
    keeps = a_hook("ConfigMap", "tell", Phase.SYNC)
    goes = a_hook("ConfigMap", "bill", Phase.SYNC, policies=(HookPolicy.SUCCEEDED,))
    unit = msgspec.structs.replace(
        a_unit_of(a_map("low", 0), a_map("high", 2), a_map("middle", 1)),
        before_deletion=(a_hook("ConfigMap", "save", Phase.SYNC),),
        after_deletion=(keeps, goes),
    )

    run = await made_and_ended(unit)

    assert run.result == "passed"
    assert reported_names(run, EventType.OBJECT_PRUNED) == ["high", "middle", "low", "save"]
    assert reported_names(run, EventType.OBJECT_WRITTEN) == ["save", "bill", "tell"]
    assert reported_names(run, EventType.HOOK_DELETED) == ["bill"]


async def test_a_blocked_wave_blocks_lower_waves() -> None:
    unit = a_unit_of(a_map("low", 0), a_map("high", 1, finalizers=HELD))

    run = await made_and_ended(unit)

    assert run.states == {
        "shop/delete/1": StepState.FAILED,
        "shop/delete/0": StepState.SKIPPED,
    }
