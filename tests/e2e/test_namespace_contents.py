"""What prune and delete leave alone because it is not theirs, on a real API server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from plane import ControlPlane
from tests.e2e.namespace_stage import NamespaceStage, open_namespace
from tests.e2e.output import lines_with
from tests.support.builders import make_object
from tests.support.cluster_client import ClusterClient, require_live
from tests.support.worlds import real_world
from tidegate.model.k8s.objects import Kind, Ref
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.messages import NotFound
from tidegate.world.resilient import ResilientWorld

pytestmark = [pytest.mark.kube, pytest.mark.timeout(400)]
INSIDE = """\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, namespace: {place}}}
spec:
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      containers: [{{name: main, image: "busybox:1"}}]
"""


@pytest.fixture
async def stage(plane: ControlPlane, tmp_path: Path) -> AsyncIterator[NamespaceStage]:
    """A unit that has created a namespace and a Deployment in it."""
    files = tmp_path / "files"
    files.mkdir()
    async with open_namespace(plane, tmp_path, files=files) as stage:
        place = place_of(stage)
        namespace = f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {place}}}\n"
        (stage.shop / "place.yaml").write_text(namespace)
        (stage.shop / "web.yaml").write_text(INSIDE.format(place=place))
        (stage.shop / "rest.yaml").write_text(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: rest}\n"
        )
        ran = await stage.run("sync", "--yes")
        assert ran.code == 0, ran.stdout + ran.stderr
        yield stage


@pytest.fixture
async def client(plane: ControlPlane) -> AsyncIterator[ClusterClient]:
    async with real_world(kubeconfig=plane.kubeconfig("admin")) as world:
        yield ClusterClient(Dispatcher(ResilientWorld(world)))


def place_of(stage: NamespaceStage) -> str:
    return f"{stage.namespace}-place"


async def test_a_namespace_with_contents_is_deleted_only_with_the_flag(
    stage: NamespaceStage, client: ClusterClient
) -> None:
    place = place_of(stage)
    require_live(
        await client.apply(make_object("v1 ConfigMap", "theirs", namespace=place), manager="x")
    )
    for name in ("place", "web"):
        (stage.shop / f"{name}.yaml").unlink()
    before = len(stage.writes())

    pruned = await stage.run("sync", "--yes", "--prune")
    deleted = await stage.run("delete", "--yes")
    untouched = len(stage.writes())
    agreed = await stage.run("sync", "--yes", "--prune", "--yes-delete-contents")

    for ran in (pruned, deleted):
        assert ran.code == 3, ran.stdout + ran.stderr
        assert lines_with(ran.stderr, "error[preflight.contents]", f"ConfigMap {place}/theirs")
    assert untouched == before
    assert agreed.code == 0, agreed.stdout + agreed.stderr
    gone = await client.get(Ref(Kind("", "v1", "Namespace"), "", place))
    assert isinstance(gone, NotFound)


async def test_contents_created_by_controllers_need_no_flag(
    stage: NamespaceStage,
) -> None:
    ran = await stage.run("delete", "--yes")

    assert ran.code == 0, ran.stdout + ran.stderr


async def test_an_empty_directory_prunes_nothing_without_the_flag(stage: NamespaceStage) -> None:
    for path in stage.shop.iterdir():
        path.unlink()
    before = len(stage.writes())

    ran = await stage.run("sync", "--yes", "--prune")

    assert (ran.code, len(stage.writes())) == (3, before)
    assert "error[plan.empty]" in ran.stderr
    assert "`--allow-empty`" in ran.stderr
