"""Repositories of units on a real API server, with and without the kinds of their dialects.

What came when is read from the server's audit log.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from plane import ControlPlane
from tests.e2e.output import lines_with, numbers_in
from tests.support.cluster_client import ClusterClient, require_live
from tests.support.dialect_kinds import serve
from tests.support.repositories import (
    OBJECTS,
    OF_CHILDREN,
    ORDER,
    Repository,
    application,
    argo_settings,
    deployment,
    git_repository,
    job,
    kustomization,
    namespace,
    setting,
    three_levels,
)
from tests.support.unit_families import Fleet
from tests.support.worlds import real_world
from tidegate.cli.commands.delete import NOTHING_MESSAGE
from tidegate.model.k8s.objects import Json
from tidegate.world.dispatcher import Dispatcher

pytestmark = [pytest.mark.kube, pytest.mark.timeout(400)]


_numbers = itertools.count(1)


@pytest.fixture(scope="module", params=["unserved", "served"])
def cluster(request: pytest.FixtureRequest) -> Iterator[tuple[ControlPlane, bool]]:
    served = request.param == "served"
    with ControlPlane.start() as running:
        if served:
            asyncio.run(serve(running))
        yield running, served


@pytest.fixture
async def fleet(cluster: tuple[ControlPlane, bool], tmp_path: Path) -> Fleet:
    """An empty repository; the namespaces of its units are there, as the dialects ask for."""
    plane, served = cluster
    suffix = f"-{next(_numbers)}"
    async with real_world(kubeconfig=plane.kubeconfig("admin")) as world:
        for name in ("argocd", "flux-system"):
            body: dict[str, Json] = namespace(f"{name}{suffix}")
            require_live(await ClusterClient(Dispatcher(world)).create(body))
    return Fleet(plane, Repository(tmp_path / "platform", suffix), served)


def shop(fleet: Fleet, **more: bool) -> None:
    three_levels(fleet.repository.root, suffix=fleet.repository.suffix, **more)


async def test_three_levels_of_units_sync_in_order_and_a_second_run_writes_nothing(
    fleet: Fleet,
) -> None:
    shop(fleet)

    first = await fleet.run("sync", "--yes")

    assert first.code == 0, first.stdout + first.stderr
    at = fleet.firsts()
    assert set(at) == OBJECTS
    assert [pair for pair in ORDER if at[pair[0]] >= at[pair[1]]] == []
    units = {name for _, name in fleet.writes() if name.startswith("applications/")}
    assert len(units) == (4 if fleet.served else 0)
    before = fleet.writes()
    again = await fleet.run("sync", "--yes")
    assert (again.code, fleet.writes()) == (0, before), again.stdout + again.stderr
    status = await fleet.run("status")
    assert numbers_in(status.lines[-1])[1:] == [0, 0], status.stdout


async def test_a_change_after_unchanged_children_is_applied_at_once(fleet: Fleet) -> None:
    shop(fleet)
    first = await fleet.run("sync", "--yes")
    before = len(fleet.writes())
    fleet.repository.put("clusters/main/end.yaml", setting("end", "shop", wave=2, to="2"))
    fleet.repository.put("red/all.yaml", deployment("red-web", to="2"), setting("red-late", wave=1))

    second = await fleet.run("sync", "--yes")

    assert (first.code, second.code) == (0, 0), second.stdout + second.stderr
    assert fleet.writes()[before:] == [
        ("patch", "deployments/red-web"),
        ("patch", "configmaps/end"),
    ]


@pytest.mark.timeout(600)  # the next process waits until the killed one is considered dead
async def test_a_rollout_killed_ten_times_has_the_same_result(fleet: Fleet) -> None:
    shop(fleet)
    if fleet.served:
        fleet.repository.put("argocd/cm.yaml", argo_settings(OF_CHILDREN))
    for _ in range(10 if fleet.served else 3):
        await fleet.killed("sync", after="object.written", times=1)

    ran = await fleet.run("sync", "--yes")

    assert ran.code == 0, ran.stdout + ran.stderr
    at = fleet.firsts()
    assert set(at) == OBJECTS
    assert [pair for pair in ORDER if at[pair[0]] >= at[pair[1]]] == []
    hooks = [change for change in fleet.writes() if change == ("create", "jobs/base-prepare")]
    assert len(hooks) <= 1, "what is known to have run does not run again"
    status = await fleet.run("status")
    assert numbers_in(status.lines[-1])[1:] == [0, 0], status.stdout


async def test_a_failed_child_blocks_later_steps_until_it_is_fixed(
    fleet: Fleet,
) -> None:
    shop(fleet)
    bad = job("red-job")
    bad["spec"]["template"]["metadata"] = {"annotations": {"test.tidegate.dev/outcome": "fail"}}  # type: ignore[index,call-overload]
    fleet.repository.put("red/all.yaml", bad, setting("red-late", wave=1))

    failed = await fleet.run("sync", "--yes")

    assert failed.code == 4, failed.stdout + failed.stderr
    after = {"configmaps/red-late", "configmaps/blue-early", "deployments/blue-web"}
    after |= {"configmaps/end"}
    assert set(fleet.firsts()) == OBJECTS - after - {"deployments/red-web"} | {"jobs/red-job"}
    before = len(fleet.writes())
    fleet.repository.put("red/all.yaml", deployment("red-web"), setting("red-late", wave=1))
    fixed = await fleet.run("sync", "--yes")
    assert fixed.code == 0, fixed.stdout + fixed.stderr
    done = {name for _, name in fleet.writes()[before:]} - {"applications/blue"}
    assert done == after | {"deployments/red-web", "jobs/red-job"}


@pytest.mark.parametrize("finalizer", [False, True])
async def test_a_repository_is_deleted_in_reverse_across_its_children(
    fleet: Fleet, *, finalizer: bool
) -> None:
    shop(fleet, finalizer=finalizer)
    created = await fleet.run("sync", "--yes")
    before = len(fleet.writes())

    gone = await fleet.run("delete", "--yes")

    assert (created.code, gone.code) == (0, 0), gone.stdout + gone.stderr
    names = [name for verb, name in fleet.writes()[before:] if verb == "delete"]
    at = {name: place for place, name in enumerate(names)}
    assert {item for item in OBJECTS if not item.startswith("jobs/")} <= set(at)
    kept = [pair for pair in ORDER if not any(item.startswith("jobs/") for item in pair)]
    assert [pair for pair in kept if at[pair[0]] <= at[pair[1]]] == []
    again = await fleet.run("delete", "--yes")
    assert NOTHING_MESSAGE in again.lines, again.stdout + again.stderr


async def test_objects_of_a_child_removed_from_git_are_deleted(fleet: Fleet) -> None:
    shop(fleet, finalizer=True)
    first = await fleet.run("sync", "--yes")
    before = len(fleet.writes())
    fleet.repository.drop("teams/red.yaml")
    planned = await fleet.run("plan", "-o", "json")

    second = await fleet.run("sync", "--yes")

    assert (first.code, second.code) == (0, 0), second.stdout + second.stderr
    operations = [item["operation"] for item in json.loads(planned.stdout)["objects"]]
    assert operations.count("prune") == (3 if fleet.served else 2), planned.stdout
    assert lines_with(second.stderr, "note[units.orphan]", "ConfigMap ", "/red-late")
    gone = [name for verb, name in fleet.writes()[before:] if verb == "delete"]
    resources = ["applications/red"] if fleet.served else []
    assert gone == [*resources, "configmaps/red-late", "deployments/red-web"]
    known = len(fleet.writes())
    again = await fleet.run("sync", "--yes")
    assert "units.orphan" not in again.stderr
    assert (again.code, len(fleet.writes())) == (0, known), again.stdout + again.stderr


async def test_objects_of_a_removed_child_without_a_finalizer_are_kept_and_reported(
    fleet: Fleet,
) -> None:
    shop(fleet)
    await fleet.run("sync", "--yes")
    before = len(fleet.writes())
    fleet.repository.drop("teams/red.yaml")

    ran = await fleet.run("sync", "--yes")

    assert ran.code == 0, ran.stdout + ran.stderr
    assert lines_with(ran.stderr, "warning[units.orphan]", "ConfigMap ", "/red-late")
    resources = [("delete", "applications/red")] if fleet.served else []
    assert fleet.writes()[before:] == resources


async def test_flux_units_wait_for_their_dependencies(fleet: Fleet) -> None:
    repository = fleet.repository
    repository.put("clusters/main/source.yaml", git_repository())
    repository.put("clusters/main/all.yaml", kustomization("all", "./apps", into=""))
    repository.put("apps/data.yaml", kustomization("data", "./data", after=("ground",)))
    repository.put("apps/web.yaml", kustomization("web", "./web", after=("data",)))
    repository.put("apps/ground.yaml", kustomization("ground", "./ground", into=""))
    repository.put("ground/all.yaml", namespace("shop"))
    repository.put("data/all.yaml", deployment("data"))
    repository.put("web/all.yaml", setting("web"))

    ran = await fleet.run("sync", "--yes")

    assert ran.code == 0, ran.stdout + ran.stderr
    assert list(fleet.firsts()) == ["namespaces/shop", "deployments/data", "configmaps/web"]
    before = fleet.writes()
    again = await fleet.run("sync", "--yes")
    assert (again.code, fleet.writes()) == (0, before), again.stdout + again.stderr


async def test_a_failed_flux_unit_blocks_its_dependents(fleet: Fleet) -> None:
    repository = fleet.repository
    bad = job("data")
    bad["spec"]["template"]["metadata"] = {"annotations": {"test.tidegate.dev/outcome": "fail"}}  # type: ignore[index,call-overload]
    repository.put("all/source.yaml", git_repository())
    repository.put("all/ground.yaml", kustomization("ground", "./ground", into=""))
    repository.put("all/data.yaml", kustomization("data", "./data", after=("ground",)))
    repository.put("all/web.yaml", kustomization("web", "./web", after=("data",)))
    repository.put("all/other.yaml", kustomization("other", "./other", after=("ground",)))
    repository.put("ground/all.yaml", namespace("shop"))
    repository.put("data/all.yaml", bad)
    repository.put("web/all.yaml", setting("web"))
    repository.put("other/all.yaml", setting("other"))

    ran = await fleet.run("sync", "--yes")

    assert ran.code == 4, ran.stdout + ran.stderr
    assert set(fleet.firsts()) == {"namespaces/shop", "jobs/data", "configmaps/other"}


async def test_a_cluster_without_a_context_is_rejected(fleet: Fleet) -> None:
    fleet.repository.put("root.yaml", application("root", "web", cluster="east"))
    fleet.repository.put("web/all.yaml", setting("web"))

    ran = await fleet.run("sync", "--yes")

    assert ran.code == 3
    assert lines_with(ran.stderr, "error[plan.cluster]", "`east`")
    assert "--cluster NAME=CONTEXT" in ran.stderr
    assert fleet.writes() == []
