"""Whole platforms on a real API server that serves the kinds of Argo CD and Flux."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.encrypt import KEY as AGE_KEY
from examples.encrypt import encrypt_example
from examples.seal import seal_example
from plane import ControlPlane
from tests.e2e.dialect_kinds import serve
from tests.e2e.platform_story import EXAMPLES, Platform, come, copy_of, go, inhabited, lose, rest
from tidegate.documents import read
from tidegate.model.reading import text

pytestmark = [pytest.mark.kube, pytest.mark.timeout(900)]

DEV = "fineract-dev"
FINERACT = (
    ["sealed-secrets/deployments/sealed-secrets-controller"],
    [f"{DEV}/jobs/create-databases"],
    [f"{DEV}/jobs/fineract-schema-migration"],
    [f"{DEV}/deployments/keycloak"],
    [f"{DEV}/jobs/apply-keycloak-config"],
    [f"{DEV}/deployments/oauth2-proxy"],
    [f"{DEV}/statefulsets/fineract-redis"],
    [f"{DEV}/deployments/fineract-{mode}" for mode in ("batch", "read", "write")],
    [f"{DEV}/deployments/community-app"],
)
RESOURCES = {
    "Deployment": "deployments",
    "StatefulSet": "statefulsets",
    "DaemonSet": "daemonsets",
    "Job": "jobs",
}
LAYERS = (
    ["cert-manager/deployments/cert-manager", "cert-manager/deployments/cert-manager-webhook"],
    ["database/statefulsets/postgresql", "cache/deployments/redis"],
    ["auth/jobs/authentik-migrate"],
    ["auth/deployments/authentik-server"],
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with ControlPlane.start(runs_pods=False) as running:
        asyncio.run(serve(running))
        yield running


def rungs(root: Path) -> list[list[str]]:
    """The workloads of the ladder by the phase of their component, as its files have them."""
    found: dict[str, list[str]] = {}
    for file in sorted((root / "environments/dev/components").rglob("component.yaml")):
        component = read(file.read_bytes(), file.name)[0].body
        domain, name = file.parts[-3:-1]
        for source in (root / "sources" / domain / name).rglob("*.yaml"):
            for one in read(source.read_bytes(), source.name):
                resource = RESOURCES.get(text(one.body, "kind"))
                if resource:
                    named = text(one.body, "metadata", "namespace")
                    where = named or text(component, "namespace")
                    said = f"{where}/{resource}/{text(one.body, 'metadata', 'name')}"
                    found.setdefault(text(component, "rolloutPhase"), []).append(said)
    return [found[phase] for phase in sorted(found)]


async def fineract(cluster: ControlPlane, folder: Path) -> None:
    root = copy_of("fineract", folder)
    await asyncio.to_thread(seal_example, root)
    platform = Platform(cluster, root, FINERACT)
    await come(platform)
    await rest(platform)
    (root / "argocd/applications/dev/community-app.yaml").unlink()
    await lose(platform, FINERACT[-1])
    await go(Platform(cluster, root, FINERACT[:-1]))


async def ladder(cluster: ControlPlane, folder: Path) -> None:
    """It stays: its 72 units would go one after another, and the cluster ends here."""
    root = copy_of("ladder", folder)
    platform = Platform(cluster, root, rungs(root))
    await come(platform)
    await rest(platform)
    for name in ("apps-web", "apps-platform-smoke"):
        (root / f"environments/dev/components/apps/{name}/component.yaml").unlink()
    await lose(platform, ["apps/httproutes/apps-web", "apps/deployments/apps-web"])


async def layers(cluster: ControlPlane, folder: Path) -> None:
    root = copy_of("layers", folder)
    await asyncio.to_thread(encrypt_example, root)
    key = {"SOPS_AGE_KEY_FILE": str(root / AGE_KEY)}
    platform = Platform(cluster, root, LAYERS, key)
    await come(platform)
    await rest(platform)
    listed = root / "gitops/apps/databases/kustomization.yaml"
    listed.write_text(listed.read_text().replace("../issuers, ", ""))
    await lose(platform, ["/clusterissuers/letsencrypt"])
    await go(platform)


async def test_three_layers_with_releases_in_them(cluster: ControlPlane, tmp_path: Path) -> None:
    async with inhabited(cluster, tmp_path):
        await layers(cluster, tmp_path)


async def test_applications_of_one_parent_and_components_of_one_set(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    scenario = EXAMPLES / "ladder" / "scenarios" / "first-day.yaml"
    async with inhabited(cluster, tmp_path, scenario), asyncio.TaskGroup() as both:
        both.create_task(fineract(cluster, tmp_path))
        both.create_task(ladder(cluster, tmp_path))
