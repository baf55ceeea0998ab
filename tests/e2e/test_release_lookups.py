"""A chart that looks into the cluster, on a real API server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plane import ControlPlane
from tests.support.kubectl import kubectl
from tests.support.releases import ONLY_WHERE_ABSENT, ChartRepository, config_map
from tests.support.repositories import Repository, git_repository, kustomization
from tests.support.tidegate_command import CommandResult, Tidegate
from tidegate.model.k8s.json_fields import get_mapping, get_value
from tidegate.model.k8s.objects import Json, JsonObject

pytestmark = [pytest.mark.kube, pytest.mark.timeout(200)]

HOME = "looked-up"
SECRET: JsonObject = {"apiVersion": "v1", "kind": "Secret"}


async def test_lookup_reads_the_cluster_and_a_second_sync_changes_nothing(
    plane: ControlPlane, tmp_path: Path
) -> None:
    config = plane.kubeconfig("admin")
    kubectl(config, "create", "namespace", HOME)
    words = ("create", "secret", "generic", "token", "--from-literal=word=hunter2-hunter2")
    kubectl(config, *words, "-n", HOME)
    shop = ChartRepository(tmp_path / "repository", HOME)
    text = f"""'{{{{ (lookup "v1" "Secret" "{HOME}" "token").data.word | b64dec }}}}'"""
    secrets = f"""'{{{{ len (lookup "v1" "Secret" "{HOME}" "").items }}}}'"""
    roles = """'{{ (lookup "rbac.authorization.k8s.io/v1" "ClusterRole" "" "view").kind }}'"""
    shop.put("templates/seen.yaml", config_map("seen", word=text, secrets=secrets, role=roles))
    shop.put("templates/once.yaml", ONLY_WHERE_ABSENT)

    def living(kind: str, name: str) -> Json:
        document: Json = json.loads(kubectl(config, "get", kind, name, "-n", HOME, "-o", "json"))
        return document

    async def sync() -> CommandResult:
        words = ("--yes", "--kubeconfig", config, "--timeout", "100s", "-o", "json")
        ran = await Tidegate(tmp_path).run("sync", shop.root, *words)
        assert ran.code == 0, ran.stdout + ran.stderr
        return ran

    first = await sync()
    data = get_value(living("configmap", "seen"), "data")
    assert data == {"word": "hunter2-hunter2", "secrets": "1", "role": "ClusterRole"}
    before = living("secret", "once")

    again = await sync()

    assert living("secret", "once") == before
    names = kubectl(config, "get", "secret", "-n", HOME, "-o", "name").split()
    assert sorted(names) == ["secret/once", "secret/sh.helm.release.v1.web.v1", "secret/token"]
    raw = first.stdout + first.stderr + again.stdout + again.stderr
    assert "hunter2" not in raw
    assert "aHVudGVyMi" not in raw


async def test_lookup_reads_objects_of_earlier_steps(plane: ControlPlane, tmp_path: Path) -> None:
    """It cannot be rendered earlier; then the chart has another name, and is reinstalled."""
    config, namespace = plane.kubeconfig("admin"), f"{HOME}-later"
    kubectl(config, "create", "namespace", namespace)
    shop = ChartRepository(tmp_path / "repository", namespace, file="apps/release.yaml")
    base, apps = kustomization("base", "./base", into=""), kustomization("apps", "./apps", into="")
    apps["spec"] = {**get_mapping(apps, "spec"), "dependsOn": [{"name": "base"}]}
    made = Repository(shop.root)
    made.put("clusters/main/all.yaml", git_repository(), base, apps)
    metadata: Json = {"name": "token", "namespace": namespace}
    data: Json = {"word": "c2VlbiBpbiB0aW1l"}
    made.put("base/all.yaml", {**SECRET, "metadata": metadata, "data": data})
    text = f"""'{{{{ (lookup "v1" "Secret" "{namespace}" "token").data.word | b64dec }}}}'"""
    revision = "'{{ .Release.Revision }} {{ .Chart.Name }}'"
    shop.put("templates/seen.yaml", config_map("seen", word=text, as_is=revision))

    async def sync() -> Json:
        words = ("--yes", "--kubeconfig", config, "--timeout", "100s")
        ran = await Tidegate(tmp_path).run("sync", shop.root, *words)
        assert ran.code == 0, ran.stdout + ran.stderr
        assert "seen in time" not in ran.stdout + ran.stderr
        result = kubectl(config, "get", "configmap", "seen", "-n", namespace, "-o", "json")
        return get_value(json.loads(result), "data")

    first = await sync()
    shop.chart = "till"
    shop.release()
    then = await sync()

    assert first == {"word": "seen in time", "as_is": "1 shop"}
    assert then == {"word": "seen in time", "as_is": "1 till"}
    names = kubectl(config, "get", "secret", "-n", namespace, "-o", "name").split()
    assert sorted(names) == ["secret/sh.helm.release.v1.web.v1", "secret/token"]
