"""Values and variables that only the cluster has, as Flux reads them there."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from tests.support.persistent_sandbox import PersistentSandbox
from tests.support.releases import CONFIG_MAP, ChartRepository, config_map
from tests.support.repositories import Repository, git_repository, kustomization, namespace, setting
from tidegate.model.k8s.json_fields import get_text
from tidegate.model.k8s.objects import Json, JsonObject

PASSWORD = "hunter2-hunter2"


def settings_of(name: str, namespace: str, **data: Json) -> JsonObject:
    metadata: Json = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {**data}}


def secret_of(name: str, namespace: str, **data: str) -> JsonObject:
    by_name: Json = {key: base64.b64encode(item.encode()).decode() for key, item in data.items()}
    metadata: Json = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": by_name}


@pytest.fixture
def shop(tmp_path: Path) -> ChartRepository:
    made = ChartRepository(tmp_path / "repository")
    made.put("templates/web.yaml", config_map("web", to="'{{ .Values.to }}'"))
    return made


def test_values_of_a_release_are_read_from_the_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shop: ChartRepository
) -> None:
    user_home = tmp_path / "home"
    user_home.mkdir()
    secret: Json = {"kind": "Secret", "name": "words", "valuesKey": "to", "targetPath": "to"}
    shop.release(valuesFrom=[secret])
    place, kept = namespace("shop"), secret_of("words", "shop", to=PASSWORD)
    cluster = PersistentSandbox.make(user_home, monkeypatch, place, kept, served=False)

    ran = cluster.sync(shop.root, "-o", "json")

    assert ran.code == 0, ran.stdout + ran.stderr
    assert get_text(cluster.all(CONFIG_MAP, "shop")["web"], "data", "to") == PASSWORD
    assert PASSWORD not in ran.stdout + ran.stderr


def test_variables_are_read_from_the_cluster_after_the_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user_home = tmp_path / "home"
    user_home.mkdir()
    made = Repository(tmp_path / "platform")
    sources: Json = [
        {"kind": "ConfigMap", "name": "there"},
        {"kind": "ConfigMap", "name": "here"},
        {"kind": "ConfigMap", "name": "nowhere", "optional": True},
    ]
    build: Json = {"substituteFrom": sources}
    unit = kustomization("web", "./web", postBuild=build)
    here = settings_of("here", "flux-system", near="of the repository")
    made.put("clusters/main/all.yaml", git_repository(), unit, here)
    body = setting("web")
    body["data"] = {"there": "${far}", "here": "${near}"}
    made.put("web/all.yaml", body)
    live = settings_of("there", "flux-system", far="of the cluster")
    old = settings_of("here", "flux-system", near="of yesterday")
    cluster = PersistentSandbox.make(
        user_home, monkeypatch, namespace("shop"), live, old, served=False
    )

    ran = cluster.sync(made.root)

    assert ran.code == 0, ran.stdout + ran.stderr
    result = cluster.all(CONFIG_MAP, "shop")["web"]["data"]
    assert result == {"there": "of the cluster", "here": "of the repository"}
