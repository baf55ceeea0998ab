"""What the graph calls a circle hangs or fails in the sandbox, and what it calls free passes.

Random units: Secrets, ConfigMaps and Services that come in any wave, workloads and Jobs that name
them, some of them hooks.
"""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from tests.property.fleets_to_order import (
    URL,
    UnitWriter,
    write_application,
    write_fleet,
    write_kustomization,
)
from tidegate.clusters.sandboxes import SimulationConfig
from tidegate.clusters.session import ClusterTargets
from tidegate.graph.cycles import find_cycles
from tidegate.model.rollouts.event import RolloutOutcome
from tidegate.model.times import MINUTE, Ms
from tidegate.model.units.semantics import ARGOCD, TIDEGATE, Semantics
from tidegate.planning.graph import make_graph
from tidegate.simulation.run import SimulationOptions, simulate
from tidegate.workspace.rendering.context import user_render_settings
from tidegate.workspace.request import LoadRequest
from tidegate.workspace.workspace import open_workspace

WAVES = (0, 1, 2, 3)
HOOKS = ("PreSync", "Sync", "PostSync")
SEEDS = range(20)
PLAYING = SimulationOptions(until=Ms(30 * MINUTE), empty_cluster=True)
TARGET = ClusterTargets(simulation=SimulationConfig())


def head(kind: str, name: str, wave: int, hook: str = "") -> str:
    api = {"Deployment": "apps/v1", "Job": "batch/v1"}.get(kind, "v1")
    notes = f'argocd.argoproj.io/sync-wave: "{wave}"'
    notes += f", argocd.argoproj.io/hook: {hook}" if hook else ""
    metadata = f"{{name: {name}, namespace: default, annotations: {{{notes}}}}}"
    return f"apiVersion: {api}\nkind: {kind}\nmetadata: {metadata}\n"


def pods(labels: str, container: str, *, ends: bool = False) -> str:
    restart = "      restartPolicy: Never\n" if ends else ""
    return (
        f"  template:\n    metadata: {{labels: {{{labels}}}}}\n    spec:\n{restart}"
        f"      containers:\n      - {{name: app, image: app{container}}}\n"
    )


def a_repository(seed: int) -> str:
    dice = random.Random(seed)
    texts, named = [], list[str]()
    for number in range(dice.randint(1, 2)):
        texts.append(head("Secret", f"s{number}", dice.choice(WAVES)) + "stringData: {a: b}\n")
        named.append(f", envFrom: [{{secretRef: {{name: s{number}}}}}]")
        texts.append(head("ConfigMap", f"c{number}", dice.choice(WAVES)) + "data: {a: b}\n")
        named.append(f", envFrom: [{{configMapRef: {{name: c{number}}}}}]")
    for number in range(dice.randint(0, 2)):
        name = f"d{number}"
        service = f"spec: {{selector: {{app: {name}}}, ports: [{{port: 80}}]}}\n"
        texts.append(head("Service", name, dice.choice(WAVES)) + service)
        unit_resource = dice.choice(["", *named])
        spec = f"spec:\n  selector: {{matchLabels: {{app: {name}}}}}\n"
        texts.append(
            head("Deployment", name, dice.choice(WAVES))
            + spec
            + pods(f"app: {name}", unit_resource)
        )
        named.append(f", env: [{{name: DB_HOST, value: {name}}}]")
        named.append(f", command: [sh, -c, 'until nc -z {name} 80; do sleep 1; done']")
    for number in range(dice.randint(2, 5)):
        hook = dice.choice(["", "", *HOOKS])
        spec = "spec:\n  backoffLimit: 1\n"
        job = head("Job", f"j{number}", dice.choice(WAVES), hook) + spec
        texts.append(job + pods("a: b", dice.choice(named), ends=True))
    return "---\n".join(texts)


async def compare(folder: Path, rules: Semantics | None) -> tuple[bool, bool]:
    """Whether the graph has no cycle, and whether the rollout in the sandbox passes."""
    pointed = LoadRequest(
        path_or_url=str(folder), render_flags={"namespace": "default", "name": "app"}
    )
    setting = user_render_settings(offline=True, maps=(f"{URL}={folder}",))
    async with open_workspace(pointed, TARGET, setting) as (session, result):
        graphed = await make_graph(result.deployable_trees, session, rules)
    (run,) = await simulate(pointed, [rules], TARGET, setting, PLAYING)
    return not find_cycles(graphed.graph), run.result is RolloutOutcome.PASSED


@pytest.mark.parametrize("rules", [TIDEGATE, ARGOCD], ids=lambda item: item.name)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_cycle_never_passes_and_a_plan_without_cycles_does(
    seed: int, rules: Semantics, tmp_path: Path
) -> None:
    (tmp_path / "all.yaml").write_text(a_repository(seed))

    is_free, passes = asyncio.run(compare(tmp_path, rules))
    assert is_free is passes


@pytest.mark.parametrize("rules", [None, TIDEGATE], ids=["own", "tidegate"])
@pytest.mark.parametrize("writer", [write_kustomization, write_application])
@pytest.mark.parametrize("seed", range(8))
def test_the_same_holds_for_several_units(
    seed: int, writer: UnitWriter, rules: Semantics | None, tmp_path: Path
) -> None:
    write_fleet(tmp_path, seed, writer)

    is_free, passes = asyncio.run(compare(tmp_path, rules))
    assert is_free is passes
