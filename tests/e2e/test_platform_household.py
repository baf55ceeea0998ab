"""A household whose cluster runs its own Argo CD, on a real API server."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from plane import ControlPlane
from tests.e2e.dialect_kinds import serve
from tests.e2e.platform_story import EXAMPLES, Platform, come, copy_of, go, inhabited, lose, rest

pytestmark = [pytest.mark.kube, pytest.mark.timeout(900)]

HOMELAB = (
    [
        "kube-system/daemonsets/cilium",
        "external-secrets/deployments/external-secrets",
        "1passwordconnect/deployments/onepassword-connect",
        "argocd/statefulsets/argocd-application-controller",
    ],
    ["longhorn-system/daemonsets/longhorn-manager", "volsync-system/deployments/volsync"],
    ["volsync-system/deployments/pvc-plumber"],
    ["cert-manager/deployments/cert-manager", "redis/statefulsets/redis"],
    ["loki-stack/statefulsets/loki", "tempo/statefulsets/tempo"],
    ["frigate/deployments/frigate", "paperless/deployments/paperless"],
    ["jellyfin/deployments/jellyfin"],
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with ControlPlane.start(runs_pods=False) as running:
        asyncio.run(serve(running))
        yield running


async def homelab(cluster: ControlPlane, folder: Path) -> None:
    """Its wave 0 brings Argo CD, which is alive from then on, and has to be held."""
    root = copy_of("homelab", folder)
    platform = Platform(cluster, root, HOMELAB[:-1])
    await come(platform)
    refused = await platform.run("sync")
    assert (refused.code, "Argo CD is alive" in refused.stderr) == (5, True), refused.stderr
    held = await platform.run("sync", "--take-over")
    assert held.code == 0, held.stdout + held.stderr
    await rest(platform)
    shutil.rmtree(root / "my-apps/media/jellyfin")
    await lose(platform, ["jellyfin/httproutes/jellyfin", *HOMELAB[-1]])
    await go(platform)


async def test_a_cluster_that_runs_its_own_argo_cd(cluster: ControlPlane, tmp_path: Path) -> None:
    scenario = EXAMPLES / "homelab" / "scenarios" / "first-day.yaml"
    async with inhabited(cluster, tmp_path, scenario):
        await homelab(cluster, tmp_path)
