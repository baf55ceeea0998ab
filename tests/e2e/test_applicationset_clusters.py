"""Clusters that become known to Argo CD, and are forgotten, while a real cluster is rolled out."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from plane import ControlPlane
from tests.e2e.test_applicationsets import SET, Fleet, until
from tests.support.cluster_client import ClusterClient, require_live
from tests.support.dialect_kinds import serve
from tests.support.repositories import Repository, application, deployment, namespace
from tests.support.worlds import real_world
from tidegate.model.k8s.objects import Json, JsonObject, Kind, Ref
from tidegate.world.dispatcher import Dispatcher

pytestmark = [pytest.mark.kube, pytest.mark.timeout(300)]


class Registry(Fleet):
    """A cluster that is known to its Argo CD by several names."""

    async def register(self, name: str) -> None:
        """Make a cluster known to Argo CD, by hand; it is this one."""
        labels: Json = {"argocd.argoproj.io/secret-type": "cluster", "home": self.shop}
        body: JsonObject = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": f"argocd{self.suffix}", "labels": labels},
            "stringData": {"name": name, "server": f"https://{name}.example", "config": "{}"},
        }
        async with real_world(kubeconfig=self.plane.kubeconfig("admin")) as world:
            require_live(await ClusterClient(Dispatcher(world)).create(body))

    async def forget(self, name: str) -> None:
        async with real_world(kubeconfig=self.plane.kubeconfig("admin")) as world:
            ref = Ref(Kind("", "v1", "Secret"), f"argocd{self.suffix}", name)
            await ClusterClient(Dispatcher(world)).delete(ref)


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with ControlPlane.start() as running:
        asyncio.run(serve(running))
        yield running


@pytest.fixture
async def fleet(cluster: ControlPlane, tmp_path: Path) -> Registry:
    made = Registry(cluster, tmp_path, served=True)
    async with real_world(kubeconfig=cluster.kubeconfig("admin")) as world:
        body: dict[str, Json] = namespace(f"argocd{made.suffix}")
        require_live(await ClusterClient(Dispatcher(world)).create(body))
    return made


def write_two_sets(made: Repository) -> None:
    """One whose unit waits for leave, and one for the clusters that are known."""
    put = made.put
    held, plain = application("held", "held"), application("{{name}}", "late/{{name}}")
    step: Json = {"matchExpressions": [], "maxUpdate": 0}
    strategy: Json = {"type": "RollingSync", "rollingSync": {"steps": [step]}}
    listed: Json = [{"list": {"elements": [{"name": "held"}]}}]
    selector: Json = {"matchLabels": {"home": "shop"}}
    registered: Json = [{"clusters": {"selector": selector}}]
    specs: dict[str, JsonObject] = {
        "listed": {"generators": listed, "strategy": strategy},
        "registered": {"generators": registered},
    }
    for (name, unit_resource), item in zip(specs.items(), (held, plain), strict=True):
        template: Json = {"metadata": {"name": "{{name}}"}, "spec": item["spec"]}
        put(
            f"sets/{name}.yaml",
            {
                "apiVersion": SET.api_version,
                "kind": SET.name,
                "metadata": {"name": name, "namespace": "argocd"},
                "spec": {"template": template, **unit_resource},
            },
        )
    put("bootstrap/root.yaml", application("root", "sets", into="argocd"))
    put("sets/shop.yaml", namespace("shop", wave=-1))
    put("held/all.yaml", deployment("held"))
    for name in ("east", "west"):
        put(f"late/{name}/all.yaml", deployment(name))


async def test_clusters_registered_during_a_rollout_get_applications(fleet: Registry) -> None:
    put = fleet.sets.repository.put
    write_two_sets(fleet.sets.repository)
    await fleet.register("west")

    async with fleet.syncing() as process:
        await until(process, "step.waiting", "held")
        await fleet.register("east")
        await until(process, "unit.finished", "east")
        await fleet.approve("held")
        assert await process.wait() == 0
    came = await fleet.is_there("east")
    put("held/all.yaml", deployment("held", to="2"))
    async with fleet.syncing() as process:
        await until(process, "step.waiting", "held")
        await fleet.forget("east")
        await until(process, "object.pruned", "east")
        await fleet.approve("held")
        assert await process.wait() == 0

    assert came
    assert (await fleet.is_there("east"), await fleet.is_there("west")) == (False, True)
    assert await fleet.application("east") is None
