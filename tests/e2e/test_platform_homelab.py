"""A homelab whose cluster runs its own Argo CD, on a real API server."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from plane import ControlPlane
from tests.e2e.platform_run import (
    EXAMPLES,
    Platform,
    come,
    copy_of,
    go,
    inhabited,
    lose,
    rest,
)

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
    ["jellyfin/deployments/jellyfin"],
)
FRIGATE = (
    "frigate/httproutes/frigate",
    "frigate/deployments/frigate",
    "frigate/externalsecrets/frigate",
)
"""From its last wave to its first."""


async def test_a_cluster_with_its_own_argo_cd(platform_plane: ControlPlane, tmp_path: Path) -> None:
    """Wave 0 deploys Argo CD, which is running from then on and must be paused."""
    scenario = EXAMPLES / "homelab" / "scenarios" / "first-day.yaml"
    async with inhabited(platform_plane, tmp_path, scenario):
        root = copy_of("homelab", tmp_path)
        platform = Platform(platform_plane, root, HOMELAB)
        await come(replace(platform, wishes=["--take-over", "--hand-back"]))
        refused = await platform.run("sync")
        assert refused.code == 5, refused.stderr
        assert "error[cluster.controller-active]" in refused.stderr
        held = await platform.run("sync", "--take-over")
        assert held.code == 0, held.stdout + held.stderr
        await rest(platform)
        shutil.rmtree(root / "my-apps/home/frigate")
        await lose(platform, FRIGATE)
        await go(platform)
