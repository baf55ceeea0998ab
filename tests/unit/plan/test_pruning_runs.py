"""Pruning inside a sync, run on a simulated cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.ordered_manifests import SHOP, a_thing, add_prunes, plan_of, ref_of
from tests.support.rollout_runs import make_settings, roll_out, with_policy
from tidegate.clusters.sandboxes import SimulationConfig, build_sandbox
from tidegate.model.rollouts.event import EventType
from tidegate.model.units.semantics import ARGOCD, TIDEGATE, Semantics
from tidegate.plan.changes.prune import PruneCandidate

NO_DELETIONS = "faults: [{effect: error, when: {verb: delete, name: old}}]\n"


@pytest.mark.parametrize("rules", [ARGOCD, TIDEGATE], ids=lambda rules: rules.name)
async def test_a_wave_that_cannot_prune_applies_nothing(rules: Semantics, tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(NO_DELETIONS)
    world = build_sandbox(SimulationConfig(scenario=scenario))
    old = plan_of(a_thing("ConfigMap", "old"))
    await roll_out(world, with_policy(old, semantics=rules), make_settings(0))
    plan = plan_of(a_thing("ConfigMap", "new"), a_thing("ServiceAccount", "new"))
    pruning = add_prunes(plan, SHOP, [PruneCandidate(ref_of("ConfigMap", "old"))])

    run = await roll_out(world, with_policy(pruning, semantics=rules), make_settings(1))

    assert run.result == "failed"
    assert run.events_of(EventType.OBJECT_WRITTEN) == []
