"""Releases of ours on a real API server, in the eyes of helm 3 and helm 4."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from plane import ControlPlane
from tests.e2e.output import events_of
from tests.e2e.release_harbour import FAILS, VERSIONS, ReleaseHarbour
from tests.support.helm_oracle import VERSION, objects_of
from tests.support.recorded_wording import RecordedWording
from tests.support.releases import config_map, hook
from tests.support.repositories import Repository, git_repository, kustomization, namespace, setting
from tidegate.model.k8s.json_fields import get_mapping, get_text
from tidegate.model.k8s.objects import Json, JsonObject

pytestmark = [pytest.mark.kube, pytest.mark.timeout(400)]


@pytest.fixture(params=VERSIONS)
def harbour(plane: ControlPlane, tmp_path: Path, request: pytest.FixtureRequest) -> ReleaseHarbour:
    made = ReleaseHarbour.open(plane, tmp_path, str(request.param))
    shop = made.shop
    shop.put("values.yaml", "to: one\nkept: true\n")
    shop.put("templates/NOTES.txt", "thanks for {{ .Release.Name }}")
    shop.put("templates/hook.yaml", hook("migrate", "pre-install,pre-upgrade", weight=2))
    shop.put("templates/tests/test.yaml", hook("probe", "test"))
    return made


def read_by_helm(harbour: ReleaseHarbour, home: str = "") -> list[Json]:
    """All that `helm get` says of a release; of its objects without what Flux puts onto them."""
    values = [harbour.helm("get", "values", "web", *item, home=home) for item in ((), ("--all",))]
    notes = harbour.helm("get", "notes", "web", home=home)
    kinds = (harbour.helm("get", name, "web", home=home) for name in ("manifest", "hooks"))
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


def released_by_helm(harbour: ReleaseHarbour, to: str) -> list[Json]:
    """What helm says of the same chart when it has released that itself, next door."""
    home, words = f"{harbour.home}-helm", ("--create-namespace", "--set", f"to={to}")
    harbour.helm("upgrade", "--install", "web", harbour.chart, *words, home=home)
    return read_by_helm(harbour, home)


async def test_helm_reads_what_we_installed_and_upgraded(harbour: ReleaseHarbour) -> None:
    harbour.shop.release(values={"to": "two"})
    await harbour.tidegate()
    assert harbour.history() == [(1, "deployed", "Install complete")]
    assert harbour.listed() == [("web", "1", "deployed", "shop-1.0.0")]
    assert harbour.phases() == {"migrate": "Succeeded", "probe": ""}
    assert read_by_helm(harbour) == released_by_helm(harbour, "two")
    harbour.shop.release(values={"to": "three"}, test={"enable": True})

    await harbour.tidegate()

    assert harbour.history() == [
        (1, "superseded", "Install complete"),
        (2, "deployed", "Upgrade complete"),
    ]
    assert harbour.listed() == [("web", "2", "deployed", "shop-1.0.0")]
    assert get_text(harbour.told("status", "web"), "info", "status") == "deployed"
    assert harbour.phases() == {"migrate": "Succeeded", "probe": "Succeeded"}
    assert harbour.told("get", "values", "web") == {"to": "three"}
    assert read_by_helm(harbour) == released_by_helm(harbour, "three")


async def test_helm_rolls_ours_back_and_we_go_on(harbour: ReleaseHarbour) -> None:
    await harbour.tidegate()
    harbour.shop.put("templates/more.yaml", config_map("more", to="more"))
    harbour.shop.release(values={"to": "two"})
    await harbour.tidegate()
    forced = ("--force-conflicts",) if harbour.version == VERSION else ()

    harbour.helm("rollback", "web", "1", *forced)
    assert harbour.setting() == {"to": "one"}
    assert harbour.names() == {"web"}
    await harbour.tidegate()

    assert harbour.setting() == {"to": "two"}
    assert harbour.names() == {"web", "more"}
    assert [item[:2] for item in harbour.history()][-2:] == [(3, "superseded"), (4, "deployed")]


async def test_what_helm_installed_is_upgraded_and_what_left_the_chart_goes(
    harbour: ReleaseHarbour,
) -> None:
    harbour.shop.put("templates/old.yaml", config_map("old", to="old"))
    harbour.helm("install", "web", harbour.chart, "--set", "to=zero")
    harbour.shop.drop("templates/old.yaml")

    await harbour.tidegate()

    assert harbour.names() == {"web"}
    assert harbour.setting() == {"to": "one"}
    assert [item[:2] for item in harbour.history()] == [(1, "superseded"), (2, "deployed")]


async def test_helm_uninstalls_ours(harbour: ReleaseHarbour) -> None:
    await harbour.tidegate()

    harbour.helm("uninstall", "web")

    assert harbour.names() == set()
    assert harbour.records() == []


async def test_helm_upgrades_ours(harbour: ReleaseHarbour) -> None:
    await harbour.tidegate()
    forced = ("--force-conflicts",) if harbour.version == VERSION else ()

    harbour.helm("upgrade", "web", harbour.chart, "--set", "to=three", "--reuse-values", *forced)

    assert harbour.setting() == {"to": "three"}
    assert [item[:2] for item in harbour.history()] == [(1, "superseded"), (2, "deployed")]


async def test_an_upgrade_that_fails_is_rolled_back_in_the_eyes_of_helm(
    harbour: ReleaseHarbour,
) -> None:
    await harbour.tidegate()
    harbour.shop.put("templates/more.yaml", config_map("more", to="more"))
    harbour.shop.put("templates/never.yaml", hook("never", "post-upgrade", pod=FAILS))
    remediation: Json = {"retries": 1}
    harbour.shop.release(values={"to": "two"}, upgrade={"remediation": remediation})

    await harbour.tidegate(fails=True)

    messages = [item if item[1] != "failed" else item[:2] for item in harbour.history()]
    assert messages == [
        (1, "superseded", "Install complete"),
        (2, "failed"),
        (3, "superseded", "Rollback to 1"),
        (4, "failed"),
        (5, "deployed", "Rollback to 3"),
    ]
    assert harbour.setting() == {"to": "one"}
    assert harbour.told("get", "values", "web") == {}
    assert harbour.names() == {"web"}

    harbour.shop.drop("templates/never.yaml")
    await harbour.tidegate()

    assert harbour.setting() == {"to": "two"}
    assert [item[:2] for item in harbour.history()][-2:] == [(5, "superseded"), (6, "deployed")]


async def test_what_became_another_release_or_left_git_helm_sees_no_more(
    harbour: ReleaseHarbour,
) -> None:
    apps = kustomization(harbour.home, "./apps", into="")
    repository = Repository(harbour.shop.root)
    harbour.shop.file = "apps/release.yaml"
    harbour.shop.release()
    repository.put("clusters/main/all.yaml", git_repository(), apps)
    await harbour.tidegate()
    harbour.shop.release(releaseName="till")

    await harbour.tidegate()

    assert harbour.listed() == [("till", "1", "deployed", "shop-1.0.0")]
    assert harbour.names() == {"web"}

    left = setting("left", harbour.home)
    repository.put("apps/release.yaml", namespace(harbour.home), left)
    await harbour.tidegate()

    assert harbour.listed() == []
    assert harbour.names() == {"left"}
    assert harbour.records() == []


@pytest.mark.parametrize("harbour", [VERSION], indirect=True)
async def test_what_others_change_is_reported_or_put_back_as_the_release_says(
    harbour: ReleaseHarbour, wording: RecordedWording
) -> None:
    harbour.shop.put("templates/more.yaml", config_map("more", to="more"))
    harbour.shop.release(driftDetection={"mode": "warn"})
    await harbour.tidegate()
    edit = json.dumps({"data": {"to": "other"}})
    harbour.kubectl("patch", "configmap", "web", "--type=merge", "-p", edit)
    harbour.kubectl("delete", "configmap", "more")

    warned = await harbour.tidegate("sync", "-o", "json")
    drifted = events_of(warned.stdout, "object.drifted")
    assert sorted(event["name"] for event in drifted) == ["more", "web"]
    wording(sorted(f"{event['name']}: {event['message']}" for event in drifted))
    assert await harbour.operations() == {"keep"}
    harbour.shop.release(driftDetection={"mode": "disabled"})
    silent = await harbour.tidegate("sync", "-o", "json")
    assert events_of(silent.stdout, "object.drifted") == []
    assert harbour.setting() == {"to": "other"}
    assert harbour.names() == {"web"}

    harbour.shop.release(driftDetection={"mode": "enabled"})
    assert await harbour.operations() == {"create", "change"}
    await harbour.tidegate()

    assert harbour.setting() == {"to": "one"}
    assert harbour.names() == {"web", "more"}
    assert harbour.history() == [(1, "deployed", "Install complete")]
