"""Two platforms of Argo CD side by side on a real API server: a parent, and a set in steps."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from examples.seal import seal_example
from plane import ControlPlane
from tests.e2e.platform_run import EXAMPLES, Platform, come, copy_of, go, inhabited, lose, rest
from tidegate.documents import read_documents
from tidegate.model.k8s.json_fields import get_text

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


def rungs(root: Path) -> list[list[str]]:
    """The workloads of the ladder by the phase of their component, as its files have them."""
    result: dict[str, list[str]] = {}
    for file in sorted((root / "environments/dev/components").rglob("component.yaml")):
        component = read_documents(file.read_bytes(), file.name)[0].body
        domain, name = file.parts[-3:-1]
        for source in (root / "sources" / domain / name).rglob("*.yaml"):
            for document in read_documents(source.read_bytes(), source.name):
                resource = RESOURCES.get(get_text(document.body, "kind"))
                if resource:
                    named = get_text(document.body, "metadata", "namespace")
                    namespace = named or get_text(component, "namespace")
                    text = f"{namespace}/{resource}/{get_text(document.body, 'metadata', 'name')}"
                    result.setdefault(get_text(component, "rolloutPhase"), []).append(text)
    return [result[phase] for phase in sorted(result)]


async def fineract(cluster: ControlPlane, folder: Path) -> None:
    root = copy_of("fineract", folder)
    await asyncio.to_thread(seal_example, root)
    platform = Platform(cluster, root, FINERACT)
    await come(platform)
    await rest(platform)
    gone = ("community-app", "oauth2-proxy")
    for name in gone:
        (root / f"argocd/applications/dev/{name}.yaml").unlink()
    await lose(platform, [f"{DEV}/deployments/{name}" for name in gone])
    left = [[item for item in wave if not item.endswith(gone)] for wave in FINERACT]
    await go(replace(platform, waves=[wave for wave in left if wave]))


async def ladder(cluster: ControlPlane, folder: Path) -> None:
    root = copy_of("ladder", folder)
    platform = Platform(cluster, root, rungs(root))
    await come(platform)
    await rest(platform)
    for name in ("apps-web", "apps-platform-smoke"):
        (root / f"environments/dev/components/apps/{name}/component.yaml").unlink()
    await lose(platform, ["apps/httproutes/apps-web", "apps/deployments/apps-web"])
    await go(replace(platform, waves=rungs(root)))


async def test_applications_of_a_parent_and_components_of_an_applicationset(
    platform_plane: ControlPlane, tmp_path: Path
) -> None:
    scenario = EXAMPLES / "ladder" / "scenarios" / "first-day.yaml"
    async with inhabited(platform_plane, tmp_path, scenario), asyncio.TaskGroup() as both:
        both.create_task(fineract(platform_plane, tmp_path))
        both.create_task(ladder(platform_plane, tmp_path))
