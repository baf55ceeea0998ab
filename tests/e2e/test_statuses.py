"""What kubectl shows of units after a rollout, on a real API server that serves their kinds.

The lines are those that people type by the documents of such repositories.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import sys
from asyncio.subprocess import DEVNULL
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jq  # type: ignore[import-not-found]
import pytest

from plane import ControlPlane
from plane.audit import read_audit
from tests.e2e.output import events_of, plain_lines
from tests.support.cluster_client import ClusterClient, require_live
from tests.support.kubectl import kubectl
from tests.support.live_statuses import commit
from tests.support.repositories import (
    Repository,
    application,
    deployment,
    git_repository,
    kustomization,
    namespace,
    setting,
)
from tests.support.rollout_audit import WRITES
from tests.support.unit_families import Fleet
from tests.support.worlds import real_world
from tidegate.model.k8s.json_fields import get_mappings, get_text, get_value
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.world.dispatcher import Dispatcher

pytestmark = [pytest.mark.kube, pytest.mark.timeout(400)]


COLUMNS = (
    r"custom-columns=NAME:.metadata.name,WAVE:.metadata.annotations.argocd\.argoproj\.io/sync-wave"
)


IN_ORDER = """.[] |
  select(.metadata.labels.project=="fineract-dev") |
  "\\(.metadata.annotations["argocd.argoproj.io/sync-wave"] // "0")\\t\\(.metadata.name)\\t\\(.status.sync.status)"
"""  # noqa: E501 - copied from the page


WAVES = {"database-init": -1, "keycloak": 0, "oauth2-proxy": 1, "fineract": 2}


HOMES = ("argocd", "flux-system")


KINDS = {"argo": "applications", "flux": "kustomizations"}


LAYERS = ("apps", "databases", "infrastructure")


_numbers = itertools.count(1)


@pytest.fixture
async def fleet(served_plane: ControlPlane, tmp_path: Path) -> Fleet:
    """A committed repository in namespaces of its own."""
    suffix = f"-{next(_numbers)}"
    async with real_world(kubeconfig=served_plane.kubeconfig("admin")) as world:
        for name in HOMES:
            require_live(
                await ClusterClient(Dispatcher(world)).create(namespace(f"{name}{suffix}"))
            )
    return Fleet(served_plane, Repository(tmp_path / "platform", suffix), served=True)


def dev_applications(made: Repository) -> None:
    """A directory of Applications with waves, as the documents have it."""
    for name, wave in WAVES.items():
        app = application(name, f"apps/{name}", wave=wave, into="shop")
        app["metadata"]["labels"] = {"project": "fineract-dev"}  # type: ignore[index,call-overload]
        made.put(f"applications/dev/{name}.yaml", app)
    made.put("apps/database-init/all.yaml", namespace("shop", wave=-1), setting("database"))
    made.put("apps/keycloak/all.yaml", deployment("keycloak"))
    made.put("apps/oauth2-proxy/all.yaml", deployment("oauth2-proxy"))
    made.put("apps/fineract/all.yaml", deployment("fineract"), setting("late", wave=1))


def layers(made: Repository) -> None:
    """Infrastructure, databases, apps, and the cluster's own Kustomization."""
    main = "clusters/main"
    made.put(
        f"{main}/flux-system/sync.yaml",
        git_repository(),
        kustomization("flux-system", f"./{main}", into=""),
    )
    made.put(
        f"{main}/infrastructure.yaml", kustomization("infrastructure", "./infrastructure", into="")
    )
    made.put(
        f"{main}/databases.yaml",
        kustomization("databases", "./databases", after=("infrastructure",)),
    )
    made.put(f"{main}/apps.yaml", kustomization("apps", "./apps", after=("databases",)))
    made.put("infrastructure/all.yaml", namespace("shop"))
    made.put("databases/all.yaml", deployment("postgresql"))
    made.put("apps/all.yaml", deployment("authentik"), setting("web"))


def shown(fleet: Fleet, *words: str) -> str:
    return kubectl(fleet.plane.kubeconfig("admin"), *words)


def bodies(fleet: Fleet, kinds: str, namespace: str) -> list[JsonObject]:
    document = json.loads(
        shown(fleet, "get", kinds, "-n", f"{namespace}{fleet.repository.suffix}", "-o", "json")
    )
    return get_mappings(document, "items")


def phases(fleet: Fleet) -> dict[str, str]:
    """By Application, where its last operation is."""
    return {
        get_text(body, "metadata", "name"): get_text(body, "status", "operationState", "phase")
        for body in bodies(fleet, "applications", "argocd")
    }


def message_of(fleet: Fleet, name: str) -> str:
    by_name = {
        get_text(body, "metadata", "name"): body for body in bodies(fleet, "applications", "argocd")
    }
    return get_text(by_name.get(name), "status", "operationState", "message")


def status_writes(fleet: Fleet) -> list[str]:
    """The unit resources whose statuses were written, and the other writes."""
    suffix = fleet.repository.suffix
    return [
        f"{item.object_ref.resource}/{item.object_ref.name}"
        for item in read_audit(fleet.plane.audit_log)
        if item.user.username == "tidegate"
        and item.verb in WRITES
        and item.object_ref.namespace.endswith(suffix)
        and (
            "fieldManager=argocd-application-controller" in item.request_uri
            or "fieldManager=gotk-" in item.request_uri
        )
    ]


async def test_applications_are_shown_with_wave_and_sync_status(fleet: Fleet) -> None:
    dev_applications(fleet.repository)
    revision = commit(fleet.repository.root)

    ran = await fleet.run("sync", "--yes")

    assert ran.code == 0, ran.stdout + ran.stderr
    assert plain_lines(ran.stderr) == []
    namespace = f"argocd{fleet.repository.suffix}"
    table = shown(fleet, "get", "applications", "-n", namespace, "-o", COLUMNS)
    rows = [line.split() for line in table.splitlines()]
    assert rows[0] == ["NAME", "WAVE"]
    waves = {name: str(wave) if wave else "<none>" for name, wave in WAVES.items()}
    assert dict(rows[1:]) == waves
    result = bodies(fleet, "applications", "argocd")
    output = "".join(f"{line}\n" for line in jq.compile(IN_ORDER).input_value(result).all())
    ordered = sorted(output.splitlines(), key=lambda line: int(line.partition("\t")[0]))
    assert ordered == [f"{wave}\t{name}\tSynced" for name, wave in WAVES.items()]
    wide = shown(fleet, "get", "applications", "-n", namespace, "-o", "wide").splitlines()
    assert wide[0].split() == ["NAME", "SYNC", "STATUS", "HEALTH", "STATUS", "REVISION", "PROJECT"]
    assert {tuple(line.split()[1:]) for line in wide[1:]} == {
        ("Synced", "Healthy", revision, "default")
    }


async def test_kustomizations_are_shown_ready_with_the_applied_revision(
    fleet: Fleet,
) -> None:
    layers(fleet.repository)
    revision = commit(fleet.repository.root)

    ran = await fleet.run("sync", "--yes")

    assert ran.code == 0, ran.stdout + ran.stderr
    assert plain_lines(ran.stderr) == []
    namespace = f"flux-system{fleet.repository.suffix}"
    head, *rows = shown(fleet, "get", "kustomizations", "-n", namespace).splitlines()
    assert head.split() == ["NAME", "AGE", "READY", "STATUS"]
    seen = {row.split()[0]: re.split(r"\s{2,}", row)[2:] for row in rows}
    expected = ["True", f"Applied revision: main@sha1:{revision}"]
    assert seen == dict.fromkeys((*LAYERS, namespace), expected)
    described = shown(fleet, "describe", "kustomization", "databases", "-n", namespace)
    assert "Health check passed in" in described
    assert "Reconciliation finished in" in described


@pytest.mark.parametrize("dialect", ["argo", "flux"])
async def test_a_second_run_with_nothing_changed_writes_no_status(
    fleet: Fleet, dialect: str
) -> None:
    (dev_applications if dialect == "argo" else layers)(fleet.repository)
    commit(fleet.repository.root)

    first = await fleet.run("sync", "--yes")

    assert first.code == 0, first.stdout + first.stderr
    result = status_writes(fleet)
    statuses = [item for item in result if not item.startswith("events/")]
    names = WAVES if dialect == "argo" else (*LAYERS, f"flux-system{fleet.repository.suffix}")
    kinds = "applications" if dialect == "argo" else "kustomizations"
    assert set(statuses) == {f"{kinds}/{name}" for name in names}
    again = await fleet.run("sync", "--yes", "-o", "json")
    assert events_of(again.stdout, "object.written") == []
    assert status_writes(fleet) == result


async def test_a_killed_rollout_leaves_a_unit_in_progress_and_the_next_one_finishes_it(
    fleet: Fleet,
) -> None:
    dev_applications(fleet.repository)
    slow = deployment("fineract", outcome="never")
    fleet.repository.put("apps/fineract/all.yaml", slow)
    commit(fleet.repository.root)

    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tidegate", "sync", *map(str, fleet.words), "--yes"),
        env={"PATH": os.environ["PATH"], "HOME": str(fleet.repository.root.parent)},
        stdout=DEVNULL,
        stderr=DEVNULL,
    )
    seen = ""
    while seen != "waiting for healthy state of apps/Deployment/fineract":
        assert process.returncode is None
        seen = await asyncio.to_thread(message_of, fleet, "fineract")
    process.kill()
    await process.wait()

    assert phases(fleet)["fineract"] == "Running"
    fleet.repository.put("apps/fineract/all.yaml", deployment("fineract"))
    ran = await fleet.run("sync", "--yes")
    assert ran.code == 0, ran.stdout + ran.stderr
    assert set(phases(fleet).values()) == {"Succeeded"}
    result = bodies(fleet, "applications", "argocd")
    assert {get_text(item, "status", "health", "status") for item in result} == {"Healthy"}


@contextmanager
def a_controller(fleet: Fleet, dialect: str) -> Iterator[str]:
    """Create the pod of a controller of a dialect, and return its namespace."""
    is_argo = dialect == "argo"
    labels: Json = (
        {"app.kubernetes.io/name": "argocd-application-controller"}
        if is_argo
        else {"app": "kustomize-controller"}
    )
    namespace = f"{HOMES[not is_argo]}{fleet.repository.suffix}"
    containers: Json = [{"name": "manager", "image": "example.org/manager:1"}]
    template: Json = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    body: JsonObject = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "controller", "namespace": namespace},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }
    shown_by = fleet.plane.kubeconfig("admin")
    kubectl(shown_by, "apply", "-f", "-", text=json.dumps(body))
    kubectl(
        shown_by, "rollout", "status", "deployment/controller", "-n", namespace, "--timeout=60s"
    )
    try:
        yield HOMES[not is_argo]
    finally:
        kubectl(shown_by, "delete", "deployment", "controller", "-n", namespace, "--now")
        kubectl(shown_by, "wait", "pod", "--for=delete", "--all", "-n", namespace, "--timeout=60s")


@pytest.mark.parametrize(("dialect", "kinds"), KINDS.items(), ids=KINDS)
async def test_an_active_controller_is_rejected_paused_and_resumed(
    fleet: Fleet, dialect: str, kinds: str
) -> None:
    (dev_applications if dialect == "argo" else layers)(fleet.repository)

    with a_controller(fleet, dialect) as namespace:
        refused = await fleet.run("sync", "--yes")
        assert refused.code == 5, refused.stdout + refused.stderr
        assert "error[cluster.controller-active]" in refused.stderr
        assert fleet.writes() == []
        taken = await fleet.run("sync", "--yes", "--take-over")
        assert taken.code == 0, taken.stdout + taken.stderr
        assert all(map(is_held, bodies(fleet, kinds, namespace)))
        await fleet.killed("sync", after="rollout.started", times=1)
        back = await fleet.run("sync", "--yes", "--hand-back")
        assert back.code == 0, back.stdout + back.stderr
        assert not any(map(is_held, bodies(fleet, kinds, namespace)))


@pytest.mark.parametrize(("dialect", "kinds"), KINDS.items(), ids=KINDS)
async def test_units_of_an_active_controller_are_deleted_only_when_it_is_paused(
    fleet: Fleet, dialect: str, kinds: str
) -> None:
    (dev_applications if dialect == "argo" else layers)(fleet.repository)
    synced = await fleet.run("sync", "--yes")
    assert synced.code == 0, synced.stdout + synced.stderr

    with a_controller(fleet, dialect) as namespace:
        before = bodies(fleet, kinds, namespace)
        refused = await fleet.run("delete", "--yes")
        assert refused.code == 5, refused.stdout + refused.stderr
        assert "error[cluster.controller-active]" in refused.stderr
        assert bodies(fleet, kinds, namespace) == before
        gone = await fleet.run("delete", "--yes", "--take-over")
        assert gone.code == 0, gone.stdout + gone.stderr
        assert all(map(is_held, bodies(fleet, kinds, namespace)))


def is_held(resource: JsonObject) -> bool:
    skips = get_text(resource, "metadata", "annotations", "argocd.argoproj.io/skip-reconcile")
    note = get_text(resource, "metadata", "annotations", "tidegate.dev/paused")
    return bool(note) and (skips == "true" or get_value(resource, "spec", "suspend") is True)
