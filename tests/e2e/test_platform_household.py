"""A household whose cluster runs its own Argo CD, on a real API server."""

from __future__ import annotations

from pathlib import Path

import pytest

from plane import ControlPlane
from tests.e2e.platform_story import EXAMPLES, Platform, copy_of, inhabited

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
    ["frigate/deployments/frigate", "jellyfin/deployments/jellyfin"],
)


async def test_a_cluster_that_runs_its_own_argo_cd(
    platform_plane: ControlPlane, tmp_path: Path
) -> None:
    """Its wave 0 brings Argo CD, which is alive from then on, and has to be held."""
    scenario = EXAMPLES / "homelab" / "scenarios" / "first-day.yaml"
    async with inhabited(platform_plane, tmp_path, scenario):
        root = copy_of("homelab", tmp_path)
        platform = Platform(platform_plane, root, HOMELAB)
        brought = await platform.run("sync")
        refused = await platform.run("sync")
        held = await platform.run("sync", "--take-over")

    assert brought.code == 0, brought.stdout + brought.stderr
    assert platform.came_in_order()
    assert (refused.code, "Argo CD is alive" in refused.stderr) == (5, True), refused.stderr
    assert held.code == 0, held.stdout + held.stderr
