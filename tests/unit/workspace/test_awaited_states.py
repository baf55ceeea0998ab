"""Dependencies of a unit may have to be ready, present or absent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.manifest_texts import application, config_map
from tests.support.recorded_wording import RecordedWording
from tests.support.rule_pages import write_files
from tests.support.served_cluster import served_cluster
from tidegate.clusters.sandboxes import SimulationConfig
from tidegate.clusters.session import ClusterTargets
from tidegate.model.rollouts.event import EventType, RolloutOutcome
from tidegate.model.times import MINUTE, Ms
from tidegate.model.units.semantics import TIDEGATE
from tidegate.simulation.run import SimulationOptions, SimulationResult, simulate
from tidegate.workspace.rendering.context import user_render_settings
from tidegate.workspace.request import LoadRequest


def depending(manifest: str, head: str, text: str) -> str:
    assert head in manifest
    return manifest.replace(head, f'{head}, annotations: {{tidegate.dev/depends-on: "{text}"}}')


async def play_unit(folder: Path, text: str) -> SimulationResult:
    """A rollout of an Application that depends on this."""
    app = depending(application(), "metadata: {name: shop, namespace: argocd", text)
    return await play(folder, {"app.yaml": app, "shop/settings.yaml": config_map("settings")})


async def play_object(folder: Path, text: str) -> SimulationResult:
    """A rollout of a ConfigMap that depends on this, beside one that does not."""
    later = depending(config_map("late"), "metadata: {name: late", text)
    files = {"app.yaml": application(), "shop/late.yaml": later, "shop/own.yaml": config_map("own")}
    return await play(folder, files)


async def play(folder: Path, files: dict[str, str]) -> SimulationResult:
    (run,) = await simulate(
        LoadRequest(path_or_url=str(write_files(folder, files))),
        [TIDEGATE],
        ClusterTargets(simulation=SimulationConfig()),
        user_render_settings(offline=True, maps=()),
        SimulationOptions(until=Ms(20 * MINUTE), empty_cluster=True),
    )
    return run


@pytest.mark.parametrize(
    ("dependency", "passes"),
    [
        ("v1/Namespace/kube-system", True),
        ("v1/Namespace/kube-system@ready", True),
        ("v1/Namespace/kube-system@present", True),
        ("v1/Namespace/kube-system@absent", False),
        ("v1/ConfigMap/default/old@absent", True),
        ("v1/ConfigMap/default/old@present", False),
    ],
)
async def test_a_unit_starts_when_its_awaited_object_has_the_requested_state(
    dependency: str, *, passes: bool, tmp_path: Path
) -> None:
    run = await play_unit(tmp_path, dependency)

    assert (run.result is RolloutOutcome.PASSED) is passes
    if not passes:
        waits = {event.reason for event in run.events if event.type is EventType.GATE_WAITING}
        assert waits == {"StillExists" if dependency.endswith("@absent") else "Missing"}


@pytest.mark.parametrize(
    ("dependency", "passes"),
    [
        ("Namespace/kube-system", True),
        ("Namespace/kube-system@absent", False),
        ("ConfigMap/old@absent", True),
        ("ConfigMap/own", True),
        ("ConfigMap/own@absent", False),
        ("Secret/kube-system/key@present", False),
        ("example.com/v1/Ship/default/one@present", False),
    ],
)
async def test_only_the_dependent_object_waits_for_the_requested_state(
    dependency: str, *, passes: bool, tmp_path: Path
) -> None:
    run = await play_object(tmp_path, dependency)

    applied = {
        event.ref.name
        for event in run.events
        if event.type is EventType.OBJECT_WRITTEN and event.ref
    }
    assert (run.result is RolloutOutcome.PASSED) is passes
    assert applied - {"shop"} == ({"own", "late"} if passes else {"own"})


async def test_an_awaited_object_does_not_belong_to_the_unit(
    tmp_path: Path, wording: RecordedWording
) -> None:
    later = depending(config_map("late"), "metadata: {name: late", "Secret/kube-system/key@present")
    root = write_files(tmp_path / "unit", {"late.yaml": later})
    async with served_cluster(tmp_path) as cluster:
        shown = await cluster.run("status", root, "-o", "json")
        planned = await cluster.run("plan", root)

    assert [json.loads(line)["name"] for line in shown.stdout.splitlines()] == ["late"]
    wording(planned.stdout.splitlines()[1:])
