"""Projects on a real API server that serves Argo CD's kinds, by its audit log.

What a project refuses is not written, nor anything else of the repository; a window holds its unit
alone. The same wherever the project is: in Git, or in the cluster alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from plane import ControlPlane
from tests.e2e.output import lines_with
from tests.e2e.test_unit_trees import _numbers
from tests.support.cluster_client import ClusterClient, require_live
from tests.support.dialect_kinds import serve
from tests.support.projects import project, two_units
from tests.support.repositories import Repository, namespace, setting
from tests.support.unit_families import Fleet
from tests.support.worlds import real_world
from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.world.dispatcher import Dispatcher

pytestmark = [pytest.mark.kube, pytest.mark.timeout(400)]
SECRET: JsonObject = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}}
NO_SECRETS: Json = [{"group": "", "kind": "Secret"}]
PLACES = pytest.mark.parametrize("place", ["git", "cluster"])


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with ControlPlane.start() as running:
        asyncio.run(serve(running))
        yield running


async def create_all(plane: ControlPlane, *bodies: JsonObject) -> None:
    async with real_world(kubeconfig=plane.kubeconfig("admin")) as world:
        for body in bodies:
            require_live(await ClusterClient(Dispatcher(world)).create(body))


async def a_fleet(plane: ControlPlane, root: Path, place: str, **spec: Json) -> Fleet:
    """`web` of a project, next to `free`; the project is in Git, or only in the cluster."""
    suffix = f"-p{next(_numbers)}"
    fleet = Fleet(plane, Repository(root / "platform", suffix), served=True)
    two_units(fleet.repository.root, suffix, **spec)
    await create_all(plane, namespace(f"argocd{suffix}"))
    if place == "cluster":
        fleet.repository.drop("projects/team.yaml")
        alive = project("team", **spec)
        get_mapping(alive, "metadata")["namespace"] = f"argocd{suffix}"
        await create_all(plane, alive)
    return fleet


def destination_of(fleet: Fleet, place: str) -> str:
    """How the place of the project begins."""
    namespace = f"argocd{fleet.repository.suffix}"
    return "projects/team.yaml:" if place == "git" else f"AppProject {namespace}/team "


@PLACES
async def test_an_object_that_a_project_forbids_prevents_all_writes(
    cluster: ControlPlane, tmp_path: Path, place: str
) -> None:
    fleet = await a_fleet(cluster, tmp_path, place, namespaceResourceBlacklist=NO_SECRETS)
    fleet.repository.put("web/all.yaml", setting("web"), SECRET)

    refused = await fleet.run("sync", "--yes")
    untouched = fleet.writes()
    others = await fleet.run("sync", "--yes", "--skip-broken")

    assert refused.code == 3, refused.stdout + refused.stderr
    assert lines_with(refused.stderr, "error[argo.project]", "`team`", "Secret `key`")
    assert destination_of(fleet, place) in refused.stderr
    assert untouched == []
    assert others.code == 4, others.stdout + others.stderr
    assert {"configmaps/free"} == {*fleet.firsts()} - {"namespaces/shop"}


async def test_an_object_that_a_live_project_forbids_is_not_pruned(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    fleet = await a_fleet(cluster, tmp_path, "git")
    fleet.repository.put("web/all.yaml", setting("web"), setting("old"), SECRET)
    first = await fleet.run("sync", "--yes")
    fleet.repository.put("web/all.yaml", setting("web"))
    strict = project("team", namespaceResourceBlacklist=NO_SECRETS)
    fleet.repository.drop("projects/team.yaml")
    get_mapping(strict, "metadata")["namespace"] = f"argocd{fleet.repository.suffix}"
    await create_all(cluster, strict)

    ran = await fleet.run("sync", "--yes")

    assert (first.code, ran.code) == (0, 0), first.stderr + ran.stderr
    gone = [name for verb, name in fleet.writes() if verb == "delete"]
    assert gone == ["configmaps/old"], "the Secret is not the project's to touch"


@PLACES
async def test_a_closed_window_delays_its_unit_and_reports_when_it_opens(
    cluster: ControlPlane, tmp_path: Path, place: str
) -> None:
    begun = datetime.now(UTC) - timedelta(hours=1)
    opens = begun.replace(second=0, microsecond=0) + timedelta(hours=3)
    window: dict[str, Json] = {
        "kind": "deny",
        "schedule": f"{begun.minute} {begun.hour} * * *",
        "duration": "3h",
        "applications": ["web"],
    }
    fleet = await a_fleet(cluster, tmp_path, place, syncWindows=[window])

    held = await fleet.run("sync", "--yes", "--timeout", "8s")
    reached = {*fleet.firsts()}
    request: Json = [{**window, "manualSync": True}]
    fleet.repository.put("projects/team.yaml", project("team", syncWindows=request))
    free = await fleet.run("sync", "--yes")

    assert held.code == 8, held.stdout + held.stderr
    assert f"{opens:%Y-%m-%d %H:%M:%S} UTC" in held.stderr
    assert destination_of(fleet, place) in held.stderr
    assert reached == {"namespaces/shop", "configmaps/free"}
    assert free.code == 0, free.stdout + free.stderr
    assert {"configmaps/web", "configmaps/web-late"} <= {*fleet.firsts()}
