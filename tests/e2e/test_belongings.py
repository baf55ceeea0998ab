"""What prune and delete leave alone because it is not theirs, on a real API server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from plane import ControlPlane
from tests.e2e.harbour import Harbour, open_harbour
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
async def harbour(plane: ControlPlane, tmp_path: Path) -> AsyncIterator[Harbour]:
    """A unit has brought a namespace, and a Deployment in it."""
    files = tmp_path / "files"
    files.mkdir()
    async with open_harbour(plane, tmp_path, files=files) as harbour:
        place = place_of(harbour)
        namespace = f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {place}}}\n"
        (harbour.shop / "place.yaml").write_text(namespace)
        (harbour.shop / "web.yaml").write_text(INSIDE.format(place=place))
        (harbour.shop / "rest.yaml").write_text(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: rest}\n"
        )
        ran = await harbour.run("sync", "--yes")
        assert ran.code == 0, ran.stdout + ran.stderr
        yield harbour


@pytest.fixture
async def client(plane: ControlPlane) -> AsyncIterator[ClusterClient]:
    async with real_world(kubeconfig=plane.kubeconfig("admin")) as world:
        yield ClusterClient(Dispatcher(ResilientWorld(world)))


def place_of(harbour: Harbour) -> str:
    return f"{harbour.namespace}-place"


async def test_a_namespace_is_deleted_with_its_contents_only_with_consent(
    harbour: Harbour, client: ClusterClient
) -> None:
    place = place_of(harbour)
    require_live(
        await client.apply(make_object("v1 ConfigMap", "theirs", namespace=place), manager="x")
    )
    for name in ("place", "web"):
        (harbour.shop / f"{name}.yaml").unlink()
    before = len(harbour.writes())

    pruned = await harbour.run("sync", "--yes", "--prune")
    deleted = await harbour.run("delete", "--yes")
    untouched = len(harbour.writes())
    agreed = await harbour.run("sync", "--yes", "--prune", "--yes-delete-contents")

    for ran in (pruned, deleted):
        assert ran.code == 3, ran.stdout + ran.stderr
        assert lines_with(ran.stderr, "error[preflight.contents]", f"ConfigMap {place}/theirs")
    assert untouched == before
    assert agreed.code == 0, agreed.stdout + agreed.stderr
    gone = await client.get(Ref(Kind("", "v1", "Namespace"), "", place))
    assert isinstance(gone, NotFound)


async def test_what_controllers_made_in_a_namespace_is_deleted_without_consent(
    harbour: Harbour,
) -> None:
    ran = await harbour.run("delete", "--yes")

    assert ran.code == 0, ran.stdout + ran.stderr


async def test_an_empty_directory_prunes_nothing_without_consent(harbour: Harbour) -> None:
    for path in harbour.shop.iterdir():
        path.unlink()
    before = len(harbour.writes())

    ran = await harbour.run("sync", "--yes", "--prune")

    assert (ran.code, len(harbour.writes())) == (3, before)
    assert "error[plan.empty]" in ran.stderr
    assert "`--allow-empty`" in ran.stderr
