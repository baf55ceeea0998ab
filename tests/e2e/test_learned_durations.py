"""Durations that our kubelet and operators keep on a real server are learned from that server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from plane import ControlPlane
from tests.e2e.conftest import a_site
from tests.support.cluster_client import require_live
from tests.support.tidegate_runs import tidegate
from tests.support.worlds import preload, real_world, run_controllers
from tidegate.clusters.sandboxes import SimulationConfig
from tidegate.documents import read_documents
from tidegate.knowledge.reader import load_builtin_knowledge
from tidegate.model.k8s.objects import Kind, LiveObject, Ref
from tidegate.model.simulation.duration_estimate import DurationEstimate
from tidegate.model.times import MINUTE, SECOND, Ms
from tidegate.sandbox.node.profile import ContainerIdentity, OwnerName, Profile
from tidegate.sandbox.node.profile_file import default_profile, read_profile

pytestmark = [pytest.mark.kube, pytest.mark.timeout(400)]

LONG = Ms(2 * MINUTE)
RUNS = (3, 5, 7, 9, 11)
ISSUED = 5
SET = {"pull": 4, "start": 2, "ready": 6, "init": 3, "run": 7}
PROFILE = f"""
durations: {{pull: 4s, start: 2s, ready: 6s, init: 3s}}
rules: [{", ".join(f"{{when: {{kind: Job, name: task-{run}}}, run: {run}s}}" for run in RUNS)}]
stages: [{{when: {{group: cert-manager.io, kind: Issuer}}, after: {ISSUED}s}}]
"""
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      initContainers: [{name: first, image: "init:1"}]
      containers:
      - name: web
        image: "web:1"
        readinessProbe: {tcpSocket: {port: 80}, periodSeconds: 1}
"""
JOB = """
---
apiVersion: batch/v1
kind: Job
metadata: {{name: task-{run}}}
spec:
  template: {{spec: {{restartPolicy: Never, containers: [{{name: run, image: "task:1"}}]}}}}
"""
ISSUER = """
---
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {{name: own-{number}}}
spec: {{selfSigned: {{}}}}
"""
TEXT = (
    DEPLOYMENT
    + "".join(JOB.format(run=run) for run in RUNS)
    + "".join(ISSUER.format(number=number) for number in range(3))
)
AWAITED = (
    (Kind("apps", "v1", "Deployment"), "web", b'"readyReplicas":3'),
    (Kind("batch", "v1", "Job"), f"task-{RUNS[-1]}", b'"type":"Complete"'),
    (Kind("cert-manager.io", "v1", "Issuer"), "own-2", b'"status":"True"'),
)


@pytest.fixture(scope="module")
def bare_plane() -> Iterator[ControlPlane]:
    """A control plane on which no kubelet runs the pods."""
    with ControlPlane.start(runs_pods=False) as running:
        yield running


def says(mark: bytes) -> Callable[[LiveObject | None], bool]:
    return lambda live: live is not None and mark in live.body


def is_close(learned: Ms, seconds: int) -> bool:
    """Within a tenth or one second."""
    return abs(learned - seconds * SECOND) <= max(SECOND, seconds * SECOND // 10)


def learned_profile(text: str, expecting: DurationEstimate) -> Profile:
    rows = load_builtin_knowledge().rows
    onto = default_profile(expecting)
    return read_profile(text.encode(), "learned", base=onto, operators=rows, estimate=expecting)


async def test_durations_of_a_cluster_are_learned(bare_plane: ControlPlane, tmp_path: Path) -> None:
    (tmp_path / "profile.yaml").write_text(PROFILE)
    (tmp_path / "scenario.yaml").write_text("given: {operators: [cert-manager]}\n")
    simulation = SimulationConfig(
        scenario=tmp_path / "scenario.yaml", profile=tmp_path / "profile.yaml"
    )
    async with (
        a_site(bare_plane, tmp_path) as site,
        real_world(kubeconfig=site.kubeconfig()) as world,
        site.client(site.kubeconfig()) as client,
        asyncio.TaskGroup() as group,
    ):
        await preload(world, simulation)
        until = Ms(world.now() + 3 * MINUTE)
        living = group.create_task(run_controllers(world, simulation, until=until))
        for document in read_documents(TEXT, "all.yaml"):
            require_live(await client.apply(document.body))
        for kind, name, mark in AWAITED:
            await client.settled(Ref(kind, client.namespace, name), says(mark), within=LONG)
        living.cancel()
        words = ("simulate", "learn", "--context", "test", "--kubeconfig", site.kubeconfig())
        ran = await asyncio.to_thread(tidegate, *words)

    assert ran.returncode == 0, ran.stderr
    low, likely, high = (learned_profile(ran.stdout, item) for item in DurationEstimate)
    learned = {part: getattr(likely.durations, part) for part in SET}
    wrong = {part: span for part, span in learned.items() if not is_close(span, SET[part])}
    assert not wrong, ran.stdout
    assert is_close(low.durations.run, RUNS[0]), ran.stdout
    assert is_close(high.durations.run, RUNS[-1]), ran.stdout
    for run in RUNS:
        subject = ContainerIdentity((OwnerName("Job", f"task-{run}"),), "", "run", "task:1")
        assert is_close(likely.container_profile(subject).run, run), ran.stdout
    after = [stage.after for stage in likely.stages if stage.when.kind == "Issuer"]
    assert len(after) == 1
    assert is_close(after[0], ISSUED), ran.stdout
