"""Our kubelet on a real API server: what a rollout would do, for the same reasons as anywhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from plane import ControlPlane
from tests.e2e.conftest import Site, a_site
from tests.support.cluster_client import ClusterClient, require_live
from tests.support.worlds import real_world, run_controllers
from tidegate.clusters.sandboxes import SimulationConfig
from tidegate.documents import read_documents
from tidegate.model.k8s.objects import Kind, LiveObject, Ref
from tidegate.model.times import MINUTE, Ms

pytestmark = [pytest.mark.kube, pytest.mark.timeout(400)]

JOB = Kind("batch", "v1", "Job")
SHOP = Path(__file__).parents[2] / "examples" / "migration" / "shop.yaml"
LONG = Ms(2 * MINUTE)


@pytest.fixture(scope="module")
def bare_plane() -> Iterator[ControlPlane]:
    """A control plane without a kubelet: kwok only keeps the node alive."""
    with ControlPlane.start(runs_pods=False) as running:
        yield running


@pytest.fixture
async def bare_site(bare_plane: ControlPlane, tmp_path: Path) -> AsyncIterator[Site]:
    async with a_site(bare_plane, tmp_path) as site:
        yield site


@asynccontextmanager
async def a_kubelet(site: Site, scenario: str, folder: Path) -> AsyncIterator[None]:
    """Runs in parallel with the test, on a separate connection."""
    path = folder / "scenario.yaml"
    path.write_text(scenario)
    async with (
        real_world(kubeconfig=site.kubeconfig()) as world,
        asyncio.TaskGroup() as group,
    ):
        until = Ms(world.now() + 3 * MINUTE)
        task = group.create_task(
            run_controllers(world, SimulationConfig(scenario=path), until=until)
        )
        try:
            yield
        finally:
            task.cancel()


async def apply_shop(client: ClusterClient, failures: int) -> Ref:
    """The shop whose migration may fail so often; its Job."""
    text = SHOP.read_text().replace("backoffLimit: 1", f"backoffLimit: {failures}")
    for document in read_documents(text, "shop.yaml"):
        require_live(await client.apply(document.body))
    return Ref(JOB, client.namespace, "migrate")


def ended(live: LiveObject | None) -> bool:
    return live is not None and (
        b'"type":"Complete"' in live.body or b'"type":"Failed"' in live.body
    )


@pytest.mark.parametrize(("failures", "end"), [(0, b'"type":"Failed"'), (6, b'"type":"Complete"')])
async def test_a_migration_with_a_slow_database_ends_within_its_deadline(
    bare_site: Site, tmp_path: Path, failures: int, end: bytes
) -> None:
    scenario = "behaviours:\n- effect: slow\n  by: 5s\n  when: {kind: StatefulSet, name: db}\n"
    async with (
        a_kubelet(bare_site, scenario, tmp_path),
        bare_site.client(bare_site.kubeconfig()) as client,
    ):
        job = await apply_shop(client, failures)

        live = await client.settled(job, ended, within=LONG)

    assert live is not None
    assert end in live.body
