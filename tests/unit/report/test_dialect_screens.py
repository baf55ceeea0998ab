"""Applications and units of Flux as people see them, on a narrow and on a wide terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tidegate.flows.recording import read_run
from tidegate.flows.verifying import verify_record
from tidegate.model.moment import Ms
from tidegate.model.objects import Kind, Ref
from tidegate.model.unit import UnitId
from tidegate.model.verdict import Health, Verdict
from tidegate.report.applications import (
    ApplicationRow,
    Body,
    ResourceRow,
    application_lines,
    history_lines,
    list_lines,
    resource_lines,
)
from tidegate.report.jobs import JobRow, job_lines
from tidegate.report.lineage import TreeNode, trace_lines, tree_lines
from tidegate.report.proof import proof_lines
from tidegate.report.reconciled import ReconciledRow, reconciled_lines
from tidegate.report.rollout.rows import cells
from tidegate.report.told import ContainerLog, EventRow, event_lines, log_lines

SCREENS = Path(__file__).parents[2] / "data" / "screens"
COMMIT = "4f2a9c1be07d5512a9a1b02c3d4e5f6071829304"
WELL = Verdict(Health.HEALTHY, "Available", "")
WAITS = Verdict(Health.PROGRESSING, "ReplicasNotAvailable", "Waiting for rollout to finish: 0 of 2")


def resource(kind: str, name: str, wave: int, verdict: Verdict = WELL, **how: bool) -> ResourceRow:
    group, _, short = kind.rpartition("/")
    ref = Ref(Kind(group, "v1", short), "fineract-dev", name)
    return ResourceRow(ref, wave, how.get("synced", True), how.get("leaves", False), verdict)


def app(name: str, wave: int, verdict: Verdict, *resources: ResourceRow) -> ApplicationRow:
    own: Body = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": name, "namespace": "argocd"},
        "spec": {
            "project": "default",
            "source": {
                "repoURL": "https://git.example.com/fineract/platform.git",
                "path": f"apps/{name}/overlays/dev",
                "targetRevision": "main",
            },
            "destination": {
                "server": "https://kubernetes.default.svc",
                "namespace": "fineract-dev",
            },
            "syncPolicy": {"automated": {"prune": True}},
        },
    }
    live: Body = {
        "status": {
            "sync": {"revision": COMMIT},
            "conditions": [{"type": "OrphanedResourceWarning", "message": "1 object is nobody's"}],
            "history": [
                {
                    "id": 0,
                    "revision": COMMIT,
                    "deployedAt": "2026-11-17T10:00:00Z",
                    "source": {"targetRevision": "main"},
                }
            ],
        }
    }
    synced = all(one.is_synced for one in resources)
    return ApplicationRow(f"argocd/{name}", wave, own, live, synced, verdict, resources)


KEYCLOAK = app(
    *("keycloak", 0, WAITS),
    resource("ConfigMap", "keycloak-settings", -1),
    resource("apps/Deployment", "keycloak", 0, WAITS, synced=False),
    resource("networking.k8s.io/Ingress", "keycloak-old", 0, leaves=True, synced=False),
)
APPS = (app("database-init", -1, WELL, resource("ConfigMap", "databases", 0)), KEYCLOAK)


def reconciled(kind: str, name: str, place: str, ready: str, message: str) -> ReconciledRow:
    own: Body = {"kind": kind, "metadata": {"name": name, "namespace": place}}
    condition: Body = {"type": "Ready", "status": ready, "message": message}
    status: Body = {"lastAppliedRevision": f"main@sha1:{COMMIT}", "conditions": [condition]}
    return ReconciledRow(own, {**own, "status": status})


LAYERS = (
    reconciled(
        *("Kustomization", "infrastructure", "flux-system", "True"),
        f"Applied revision: main@sha1:{COMMIT}",
    ),
    reconciled(
        *("Kustomization", "databases", "flux-system", "False"),
        "dependency 'flux-system/infrastructure' is not ready: its HelmRelease waits for a chart",
    ),
)

DEV = UnitId("Application", "", "argocd", "fineract-dev-database-init")
JOBS = (
    JobRow(
        unit=DEV,
        step="PreSync wave 6",
        ref=Ref(Kind("batch", "v1", "Job"), "fineract-dev", "fineract-schema-migration"),
        is_hook=True,
        status="Healthy",
        finished=Ms(1_794_909_600_000),
    ),
    JobRow(
        unit=DEV,
        step="wave 0",
        ref=Ref(Kind("batch", "v1", "Job"), "fineract-dev", "reindex"),
        is_hook=False,
        status="Progressing",
    ),
)
NOW = Ms(1_794_913_200_000)
EVENTS = (
    EventRow(
        at=Ms(NOW - 7_200_000),
        type="Normal",
        reason="ReconciliationSucceeded",
        namespace="flux-system",
        object="Kustomization/infrastructure",
        message=f"Applied revision: main@sha1:{COMMIT}",
    ),
    EventRow(
        at=Ms(NOW - 45_000),
        type="Warning",
        reason="BackOff",
        namespace="database",
        object="Pod/postgresql-0",
        message='Back-off pulling image "postgres:99": not found',
        times=7,
    ),
)
LOGS = (
    ContainerLog(
        owner=Ref(Kind("batch", "v1", "Job"), "shop", "migrate"),
        pod=Ref(Kind("", "v1", "Pod"), "shop", "migrate-x7x2p"),
        container="migrate",
        state="Error",
        lines=("waiting for changelog lock", "Could not acquire change log lock"),
    ),
)
TREE = TreeNode(
    "Kustomization/flux-system/flux-system",
    "",
    (
        TreeNode("GitRepository/flux-system/flux-system"),
        TreeNode(
            "Kustomization/flux-system/databases",
            "",
            (
                TreeNode("StatefulSet/database/postgresql", "wave 0"),
                TreeNode("Job/database/prepare", "PreSync"),
            ),
        ),
    ),
)
TRACE = (
    (("Object", "Deployment/web"), ("Namespace", "shop"), ("File", "apps/web/all.yaml:1:1")),
    (("Kustomization", "apps"), ("Namespace", "flux-system"), ("Path", "./apps/web")),
    (("GitRepository", "platform"), ("URL", "https://git.example.com/shop/platform.git")),
)
RUN = verify_record(read_run(Path(__file__).parents[3] / "examples" / "runs" / "first.jsonl"))

Lines = Callable[[int], Iterator[str]]
VIEWS: dict[str, Lines] = {
    "app-list": lambda room: list_lines(APPS, room),
    "app-get": lambda room: application_lines(KEYCLOAK, room),
    "app-resources": lambda room: resource_lines(KEYCLOAK.resources, room),
    "app-history": lambda _: history_lines(KEYCLOAK),
    "get-kustomizations": lambda room: reconciled_lines(LAYERS, everywhere=False, room=room),
    "get-all-namespaces": lambda room: reconciled_lines(LAYERS, everywhere=True, room=room),
    "jobs-list": lambda room: job_lines(JOBS, room),
    "events": lambda room: event_lines(EVENTS, NOW, everywhere=False, room=room),
    "events-everywhere": lambda room: event_lines(EVENTS, NOW, everywhere=True, room=room),
    "verify": lambda room: proof_lines(RUN, room),
    "logs": lambda _: log_lines(LOGS),
    "tree": lambda _: tree_lines(TREE),
    "trace": lambda _: trace_lines(TRACE),
}


@pytest.mark.parametrize("room", [80, 160])
@pytest.mark.parametrize("view", VIEWS)
def test_a_screen_is_as_recorded_and_no_wider_than_the_terminal(
    view: str, room: int, pytestconfig: pytest.Config
) -> None:
    lines = [*VIEWS[view](room)]
    golden = SCREENS / f"{view}-{room}.txt"
    shown = "".join(f"{line}\n" for line in lines)
    if pytestconfig.getoption("--golden"):
        golden.write_text(shown)

    assert shown == golden.read_text()
    assert max(map(cells, lines)) <= room


def test_the_columns_are_those_of_the_dialects() -> None:
    wide = next(iter(list_lines(APPS)))
    flux = next(iter(reconciled_lines(LAYERS, everywhere=True)))

    assert wide.split() == [
        *("NAME", "CLUSTER", "NAMESPACE", "PROJECT", "WAVE", "STATUS", "HEALTH", "SYNCPOLICY"),
        *("CONDITIONS", "REPO", "PATH", "TARGET"),
    ]
    assert flux.split() == ["NAMESPACE", "NAME", "REVISION", "SUSPENDED", "READY", "MESSAGE"]
