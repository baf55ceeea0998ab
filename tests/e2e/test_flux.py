"""Three layers of Flux on a real API server that serves its kinds: SOPS, checks, waits.

The order is read from the audit log; the conditions that Flux's own controller wrote for the same
layers were recorded (`make test-peers`).
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from plane import ControlPlane
from tests.e2e.output import numbers_in
from tests.e2e.test_statuses import bodies
from tests.support.canary_search import is_in, left_in, left_in_memory
from tests.support.cluster_client import ClusterClient, require_live
from tests.support.controller_transcript import TRANSCRIPT, status_fields
from tests.support.dialect_kinds import serve
from tests.support.flux_layers import CANARY, ORDER, encrypt_secret, sops_age, three_layers
from tests.support.kubectl import kubectl
from tests.support.live_statuses import commit
from tests.support.repositories import Repository, deployment, namespace
from tests.support.sops_program import AgeKey
from tests.support.unit_families import Fleet
from tests.support.worlds import real_world
from tidegate.model.k8s.json_fields import get_mappings, get_text
from tidegate.world.dispatcher import Dispatcher

pytestmark = [pytest.mark.kube, pytest.mark.timeout(400)]

_numbers = itertools.count(900)


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with ControlPlane.start() as running:
        asyncio.run(serve(running))
        yield running


@pytest.fixture
def key() -> AgeKey:
    return AgeKey.generate()


@pytest.fixture
async def fleet(cluster: ControlPlane, key: AgeKey, tmp_path: Path) -> Fleet:
    made = Repository(tmp_path / "platform", f"-{next(_numbers)}")
    flux_namespace = f"flux-system{made.suffix}"
    async with real_world(kubeconfig=cluster.kubeconfig("admin")) as world:
        client = ClusterClient(Dispatcher(world))
        for body in (namespace(flux_namespace), sops_age(flux_namespace, key)):
            require_live(await client.create(body))
    await asyncio.to_thread(three_layers, made, key)
    await asyncio.to_thread(commit, made.root)
    return Fleet(cluster, made, served=True)


def with_canary(*folders: Path) -> list[Path]:
    """The files below these directories with this text; files of other tests may disappear."""
    result: list[Path] = []
    for path in (path for folder in folders for path in folder.rglob("*")):
        with suppress(OSError):
            result += [path] if is_in(CANARY, path.read_bytes()) else []
    return result


def in_order(fleet: Fleet) -> list[str]:
    return [name for name in fleet.firsts() if name in ORDER]


async def test_three_layers_sync_in_order_with_the_conditions_of_flux(fleet: Fleet) -> None:
    ran = await fleet.run("sync", "--yes")

    assert ran.code == 0, ran.stdout + ran.stderr
    assert in_order(fleet) == [*ORDER]
    suffix = fleet.repository.suffix
    by_name = {
        get_text(body, "metadata", "name").removesuffix(suffix): status_fields(body)
        for body in bodies(fleet, "kustomizations", "flux-system")
    }
    assert json.loads(json.dumps(by_name).replace(suffix, "")) == json.loads(TRANSCRIPT.read_text())
    before = fleet.writes()
    again = await fleet.run("sync", "--yes")
    assert (again.code, fleet.writes()) == (0, before)


async def test_decrypted_values_are_left_nowhere(fleet: Fleet, key: AgeKey, tmp_path: Path) -> None:
    runs = [await fleet.run("sync", "--yes", "-o", "json")]
    await asyncio.to_thread(encrypt_secret, fleet.repository, key, f"{CANARY}-of-old")
    verbs = (("plan",), ("plan", "-o", "json"), ("sync", "--yes"))
    runs += [await fleet.run(*args) for args in verbs]
    fleet.repository.put("data/db.yaml", deployment("db", outcome="never"))
    await fleet.killed("sync", after="object.written", times=1)
    runs += [await fleet.run("status"), await fleet.run("status", "--journal")]

    admin, namespace = fleet.plane.kubeconfig("admin"), f"shop{fleet.repository.suffix}"
    live = kubectl(admin, "get", "secret", "password", "-n", namespace, "-o", "json")
    assert is_in(CANARY, live.encode()), "it came to the cluster"
    assert [run.code for run in runs[:1]] == [0], runs[0].stderr
    assert [run for run in runs if is_in(CANARY, (run.stdout + run.stderr).encode())] == []
    async with real_world(kubeconfig=admin) as world:
        left = await left_in(ClusterClient(Dispatcher(world)))
    result = kubectl(admin, "get", "kustomizations,gitrepositories", "-A", "-o", "json").encode()
    assert [item for item in (*left, result) if is_in(CANARY, item)] == []
    assert await asyncio.to_thread(with_canary, tmp_path) == []
    assert await asyncio.to_thread(with_canary, *left_in_memory()) == []


async def test_a_failed_layer_blocks_later_layers_with_its_reason(fleet: Fleet) -> None:
    broken = deployment("db", outcome="crash")
    spec = broken["spec"]
    assert isinstance(spec, dict)
    spec["progressDeadlineSeconds"] = 2
    fleet.repository.put("data/db.yaml", broken)

    ran = await fleet.run("sync", "--yes")

    assert ran.code == 4, ran.stdout + ran.stderr
    assert "Deployment" in ran.stdout + ran.stderr
    assert "configmaps/web" not in fleet.firsts()
    states = {
        get_text(body, "metadata", "name"): (get_text(each, "reason"), get_text(each, "message"))
        for body in bodies(fleet, "kustomizations", "flux-system")
        for each in get_mappings(body, "status", "conditions")
        if get_text(each, "type") == "Ready"
    }
    namespace = f"flux-system{fleet.repository.suffix}"
    assert states["web"] == ("DependencyNotReady", f"dependency '{namespace}/data' is not ready")
    assert states["data"][0] == "HealthCheckFailed"
    assert "Deployment/shop" in states["data"][1]


async def test_a_rollout_killed_ten_times_has_the_same_result(fleet: Fleet) -> None:
    for name in ("rollout.started", "step.checking", "object.written") * 3 + ("rollout.started",):
        await fleet.killed("sync", after=name, times=1)

    ran = await fleet.run("sync", "--yes")

    assert ran.code == 0, ran.stdout + ran.stderr
    assert in_order(fleet) == [*ORDER]
    status = await fleet.run("status")
    assert numbers_in(status.lines[-1])[1] == 0, status.stdout


async def test_layers_are_deleted_in_reverse_dependency_order(fleet: Fleet) -> None:
    created = await fleet.run("sync", "--yes")
    before = len(fleet.writes())

    gone = await fleet.run("delete", "--yes")

    assert (created.code, gone.code) == (0, 0), gone.stdout + gone.stderr
    names = [name for verb, name in fleet.writes()[before:] if verb == "delete"]
    order = ["configmaps/web", "deployments/db", "secrets/password", "namespaces/shop"]
    assert [name for name in names if name in order] == order
