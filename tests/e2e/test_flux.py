"""Three layers of Flux on a real API server: SOPS, checks, waits; in order by the audit log."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from plane import ControlPlane
from tests.e2e.test_families import Fleet
from tests.fakes.repositories import (
    Repository,
    deployment,
    git_repository,
    kustomization,
    namespace,
    setting,
)
from tests.unit.render.sops_program import AgeKey, encrypt
from tidegate.model.objects import Json
from tidegate.testing import Desk, live_of, real_world
from tidegate.world.exchange import Exchange

pytestmark = [pytest.mark.kube, pytest.mark.timeout(240)]

_numbers = itertools.count(900)
CANARY = "kea-winters-in-the-alps"
SECRET = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: password\nstringData:\n  word: {word}\n"
DECRYPTION: Json = {"provider": "sops", "secretRef": {"name": "sops-age"}}


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with ControlPlane.start() as running:
        yield running


@pytest.fixture
async def fleet(plane: ControlPlane, tmp_path: Path) -> Fleet:
    """Ground, then data with an encrypted Secret whose key lies in the cluster, then the web."""
    made = Repository(tmp_path / "platform", f"-{next(_numbers)}")
    key, home = AgeKey.generate(), f"flux-system{made.suffix}"
    async with real_world(kubeconfig=plane.kubeconfig("admin")) as world:
        desk = Desk(Exchange(world))
        live_of(await desk.create(namespace(home)))
        keys: dict[str, Json] = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "sops-age", "namespace": home},
            "stringData": {"age.agekey": key.identity},
        }
        live_of(await desk.create(keys))
    made.put("clusters/main/source.yaml", git_repository())
    made.put("clusters/main/ground.yaml", kustomization("ground", "./ground", into=""))
    check: Json = {"kind": "Deployment", "name": "db", "namespace": "shop"}
    data = kustomization(
        *("data", "./data"),
        after=("ground",),
        wait=False,
        healthChecks=[check],
        decryption=DECRYPTION,
    )
    made.put("clusters/main/data.yaml", data)
    made.put("clusters/main/web.yaml", kustomization("web", "./web", after=("data",)))
    made.put("ground/all.yaml", namespace("shop"))
    made.put("data/db.yaml", deployment("db"))
    made.put("web/all.yaml", setting("web"))
    file = made.root / "data/password.yaml"
    sealed = encrypt(file, SECRET.format(word=CANARY), key, "--encrypted-regex", "^stringData$")
    await asyncio.to_thread(file.write_bytes, sealed)
    return Fleet(plane, made, served=False)


async def test_three_layers_come_in_order_with_a_key_of_the_cluster(fleet: Fleet) -> None:
    ran = await fleet.run("sync", "--yes")

    assert ran.code == 0, ran.stdout + ran.stderr
    assert CANARY not in ran.stdout + ran.stderr
    at = fleet.firsts()
    order = ["namespaces/shop", "secrets/password", "deployments/db", "configmaps/web"]
    assert [name for name in at if name in order] == order
    async with real_world(kubeconfig=fleet.plane.kubeconfig("admin")) as world:
        desk = Desk(Exchange(world), namespace=f"shop{fleet.repository.suffix}")
        live = live_of(await desk.get(await desk.ref(a_secret(desk.namespace))))
        assert b"a2VhLXdpbnRlcnMtaW4tdGhlLWFscHM=" in live.body
    before = fleet.writes()
    again = await fleet.run("sync", "--yes")
    assert (again.code, fleet.writes()) == (0, before)


async def test_a_layer_that_fails_holds_what_is_behind_it_with_the_reason(fleet: Fleet) -> None:
    broken = deployment("db", outcome="crash")
    spec = broken["spec"]
    assert isinstance(spec, dict)
    spec["progressDeadlineSeconds"] = 2
    fleet.repository.put("data/db.yaml", broken)

    ran = await fleet.run("sync", "--yes")

    assert ran.code == 4, ran.stdout + ran.stderr
    assert "Deployment" in ran.stdout + ran.stderr
    assert "configmaps/web" not in fleet.firsts()


async def test_killed_ten_times_it_comes_to_the_same_end(fleet: Fleet) -> None:
    for told in ("rollout.begun", "step.checking", "object.written") * 3 + ("rollout.begun",):
        await fleet.killed("sync", after=told, times=1)

    ran = await fleet.run("sync", "--yes")

    assert ran.code == 0, ran.stdout + ran.stderr
    assert "configmaps/web" in fleet.firsts()


def a_secret(namespace_: str) -> dict[str, Json]:
    metadata: Json = {"name": "password", "namespace": namespace_}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}


async def test_layers_go_in_the_reverse_of_their_dependencies(fleet: Fleet) -> None:
    brought = await fleet.run("sync", "--yes")
    before = len(fleet.writes())

    gone = await fleet.run("delete", "--yes")

    assert (brought.code, gone.code) == (0, 0), gone.stdout + gone.stderr
    names = [name for verb, name in fleet.writes()[before:] if verb == "delete"]
    order = ["configmaps/web", "deployments/db", "secrets/password", "namespaces/shop"]
    assert [name for name in names if name in order] == order
