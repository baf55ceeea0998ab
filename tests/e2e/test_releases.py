"""Releases of ours on a real API server, in the eyes of helm 3 and helm 4."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from plane import ControlPlane
from tests.e2e.output import events_of
from tests.e2e.release_namespace import FAILS, VERSIONS, ReleaseNamespace
from tests.support.helm_oracle import VERSION, objects_of
from tests.support.recorded_wording import RecordedWording
from tests.support.releases import config_map, hook
from tests.support.repositories import Repository, git_repository, kustomization, namespace, setting
from tidegate.model.k8s.json_fields import get_mapping, get_text
from tidegate.model.k8s.objects import Json, JsonObject

pytestmark = [pytest.mark.kube, pytest.mark.timeout(400)]


@pytest.fixture(params=VERSIONS)
def stage(plane: ControlPlane, tmp_path: Path, request: pytest.FixtureRequest) -> ReleaseNamespace:
    made = ReleaseNamespace.open(plane, tmp_path, str(request.param))
    shop = made.shop
    shop.put("values.yaml", "to: one\nkept: true\n")
    shop.put("templates/NOTES.txt", "thanks for {{ .Release.Name }}")
    shop.put("templates/hook.yaml", hook("migrate", "pre-install,pre-upgrade", weight=2))
    shop.put("templates/tests/test.yaml", hook("probe", "test"))
    return made


def read_by_helm(stage: ReleaseNamespace, namespace: str = "") -> list[Json]:
    """The output of `helm get` for a release, without the labels that Flux adds to its objects."""
    values = [
        stage.helm("get", "values", "web", *item, namespace=namespace) for item in ((), ("--all",))
    ]
    notes = stage.helm("get", "notes", "web", namespace=namespace)
    kinds = (stage.helm("get", name, "web", namespace=namespace) for name in ("manifest", "hooks"))
    objects = [[path, without_origin(item)] for kind in kinds for path, item in objects_of(kind)]
    return [*values, notes, *objects]


def without_origin(body: bytes) -> Json:
    document: JsonObject = msgspec.json.decode(body)
    metadata = get_mapping(document, "metadata")
    labels = get_mapping(metadata, "labels").items()
    others: JsonObject = {
        key: label for key, label in labels if not key.startswith("helm.toolkit.")
    }
    rest: JsonObject = {key: item for key, item in metadata.items() if key != "labels"}
    return {**document, "metadata": {**rest, "labels": others}}


def released_by_helm(stage: ReleaseNamespace, to: str) -> list[Json]:
    """The output of helm for the same chart, released by helm in another namespace."""
    namespace, words = f"{stage.namespace}-helm", ("--create-namespace", "--set", f"to={to}")
    stage.helm("upgrade", "--install", "web", stage.chart, *words, namespace=namespace)
    return read_by_helm(stage, namespace)


async def test_helm_reads_our_releases(stage: ReleaseNamespace) -> None:
    stage.shop.release(values={"to": "two"})
    await stage.tidegate()
    assert stage.history() == [(1, "deployed", "Install complete")]
    assert stage.listed() == [("web", "1", "deployed", "shop-1.0.0")]
    assert stage.phases() == {"migrate": "Succeeded", "probe": ""}
    assert read_by_helm(stage) == released_by_helm(stage, "two")
    stage.shop.release(values={"to": "three"}, test={"enable": True})

    await stage.tidegate()

    assert stage.history() == [
        (1, "superseded", "Install complete"),
        (2, "deployed", "Upgrade complete"),
    ]
    assert stage.listed() == [("web", "2", "deployed", "shop-1.0.0")]
    assert get_text(stage.helm_json("status", "web"), "info", "status") == "deployed"
    assert stage.phases() == {"migrate": "Succeeded", "probe": "Succeeded"}
    assert stage.helm_json("get", "values", "web") == {"to": "three"}
    assert read_by_helm(stage) == released_by_helm(stage, "three")


async def test_helm_can_roll_back_our_release(stage: ReleaseNamespace) -> None:
    await stage.tidegate()
    stage.shop.put("templates/more.yaml", config_map("more", to="more"))
    stage.shop.release(values={"to": "two"})
    await stage.tidegate()
    forced = ("--force-conflicts",) if stage.version == VERSION else ()

    stage.helm("rollback", "web", "1", *forced)
    assert stage.setting() == {"to": "one"}
    assert stage.names() == {"web"}
    await stage.tidegate()

    assert stage.setting() == {"to": "two"}
    assert stage.names() == {"web", "more"}
    assert [item[:2] for item in stage.history()][-2:] == [(3, "superseded"), (4, "deployed")]


async def test_a_release_of_helm_is_upgraded_and_removed_objects_are_deleted(
    stage: ReleaseNamespace,
) -> None:
    stage.shop.put("templates/old.yaml", config_map("old", to="old"))
    stage.helm("install", "web", stage.chart, "--set", "to=zero")
    stage.shop.drop("templates/old.yaml")

    await stage.tidegate()

    assert stage.names() == {"web"}
    assert stage.setting() == {"to": "one"}
    assert [item[:2] for item in stage.history()] == [(1, "superseded"), (2, "deployed")]


async def test_helm_can_uninstall_our_release(stage: ReleaseNamespace) -> None:
    await stage.tidegate()

    stage.helm("uninstall", "web")

    assert stage.names() == set()
    assert stage.records() == []


async def test_helm_can_upgrade_our_release(stage: ReleaseNamespace) -> None:
    await stage.tidegate()
    forced = ("--force-conflicts",) if stage.version == VERSION else ()

    stage.helm("upgrade", "web", stage.chart, "--set", "to=three", "--reuse-values", *forced)

    assert stage.setting() == {"to": "three"}
    assert [item[:2] for item in stage.history()] == [(1, "superseded"), (2, "deployed")]


async def test_helm_shows_the_rollback_of_a_failed_upgrade(
    stage: ReleaseNamespace,
) -> None:
    await stage.tidegate()
    stage.shop.put("templates/more.yaml", config_map("more", to="more"))
    stage.shop.put("templates/never.yaml", hook("never", "post-upgrade", pod=FAILS))
    remediation: Json = {"retries": 1}
    stage.shop.release(values={"to": "two"}, upgrade={"remediation": remediation})

    await stage.tidegate(fails=True)

    messages = [item if item[1] != "failed" else item[:2] for item in stage.history()]
    assert messages == [
        (1, "superseded", "Install complete"),
        (2, "failed"),
        (3, "superseded", "Rollback to 1"),
        (4, "failed"),
        (5, "deployed", "Rollback to 3"),
    ]
    assert stage.setting() == {"to": "one"}
    assert stage.helm_json("get", "values", "web") == {}
    assert stage.names() == {"web"}

    stage.shop.drop("templates/never.yaml")
    await stage.tidegate()

    assert stage.setting() == {"to": "two"}
    assert [item[:2] for item in stage.history()][-2:] == [(5, "superseded"), (6, "deployed")]


async def test_helm_does_not_list_renamed_or_removed_releases(
    stage: ReleaseNamespace,
) -> None:
    apps = kustomization(stage.namespace, "./apps", into="")
    repository = Repository(stage.shop.root)
    stage.shop.file = "apps/release.yaml"
    stage.shop.release()
    repository.put("clusters/main/all.yaml", git_repository(), apps)
    await stage.tidegate()
    stage.shop.release(releaseName="till")

    await stage.tidegate()

    assert stage.listed() == [("till", "1", "deployed", "shop-1.0.0")]
    assert stage.names() == {"web"}

    left = setting("left", stage.namespace)
    repository.put("apps/release.yaml", namespace(stage.namespace), left)
    await stage.tidegate()

    assert stage.listed() == []
    assert stage.names() == {"left"}
    assert stage.records() == []


@pytest.mark.parametrize("stage", [VERSION], indirect=True)
async def test_drift_is_reported_or_corrected_by_mode(
    stage: ReleaseNamespace, wording: RecordedWording
) -> None:
    stage.shop.put("templates/more.yaml", config_map("more", to="more"))
    stage.shop.release(driftDetection={"mode": "warn"})
    await stage.tidegate()
    edit = json.dumps({"data": {"to": "other"}})
    stage.kubectl("patch", "configmap", "web", "--type=merge", "-p", edit)
    stage.kubectl("delete", "configmap", "more")

    warned = await stage.tidegate("sync", "-o", "json")
    drifted = events_of(warned.stdout, "object.drifted")
    assert sorted(event["name"] for event in drifted) == ["more", "web"]
    wording(sorted(f"{event['name']}: {event['message']}" for event in drifted))
    assert await stage.operations() == {"keep"}
    stage.shop.release(driftDetection={"mode": "disabled"})
    silent = await stage.tidegate("sync", "-o", "json")
    assert events_of(silent.stdout, "object.drifted") == []
    assert stage.setting() == {"to": "other"}
    assert stage.names() == {"web"}

    stage.shop.release(driftDetection={"mode": "enabled"})
    assert await stage.operations() == {"create", "change"}
    await stage.tidegate()

    assert stage.setting() == {"to": "one"}
    assert stage.names() == {"web", "more"}
    assert stage.history() == [(1, "deployed", "Install complete")]
