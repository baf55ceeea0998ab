"""Three layers of Flux with releases and encrypted secrets, on a real API server."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from examples.encrypt import KEY, encrypt_example
from plane import ControlPlane
from tests.e2e.platform_run import Platform, come, copy_of, go, inhabited, lose, rest

pytestmark = [pytest.mark.kube, pytest.mark.timeout(900)]

LAYERS = (
    ["cert-manager/deployments/cert-manager", "cert-manager/deployments/cert-manager-webhook"],
    ["database/statefulsets/postgresql", "cache/deployments/redis"],
    ["auth/jobs/authentik-migrate"],
    ["auth/deployments/authentik-server"],
)
AUTHENTIK = ("auth/deployments/authentik-server", "auth/namespaces/auth")
"""Objects of the release are deleted before their dependencies."""


async def test_three_layers_with_helm_releases(
    platform_plane: ControlPlane, tmp_path: Path
) -> None:
    async with inhabited(platform_plane, tmp_path):
        root = copy_of("layers", tmp_path)
        await asyncio.to_thread(encrypt_example, root)
        key = {"SOPS_AGE_KEY_FILE": str(root / KEY)}
        platform = Platform(platform_plane, root, LAYERS, key)
        await come(platform)
        await rest(platform)
        listed = root / "gitops/clusters/home/kustomization.yaml"
        listed.write_text(listed.read_text().replace("- apps-kustomization.yaml", ""))
        (listed.parent / "apps-kustomization.yaml").unlink()
        for folder in ("applications", "authentik"):
            shutil.rmtree(root / "gitops/apps" / folder)
        await lose(platform, AUTHENTIK)
        await go(replace(platform, waves=LAYERS[:2]))
