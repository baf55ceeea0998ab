"""Releases of a cluster that Flux has filled: they end as those that were rolled out here."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.persistent_sandbox import KUSTOMIZATION, PersistentSandbox, definition
from tests.support.recorded_wording import RecordedWording
from tests.support.releases import (
    CONFIG_MAP,
    SECRET,
    ChartRepository,
    config_map,
    hook,
    records,
    revision_statuses,
)
from tests.support.repositories import Repository, git_repository, kustomization, namespace
from tidegate.dialect.helm.record import ReleaseRecord, record_secret
from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text
from tidegate.model.k8s.objects import Json, Kind
from tidegate.model.times import Ms

APPS = "apps/release.yaml"
OWN = "tidegate-system"
HELM_RELEASE = Kind("helm.toolkit.fluxcd.io", "v2", "HelmRelease")
HELM_CHART = Kind("source.toolkit.fluxcd.io", "v1", "HelmChart")
FINALIZER: Json = ["finalizers.fluxcd.io"]


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PersistentSandbox:
    user_home = tmp_path / "home"
    user_home.mkdir()
    kinds = (
        definition(HELM_RELEASE, "helmreleases", status=True),
        definition(HELM_CHART, "helmcharts", status=True),
    )
    return PersistentSandbox.make(
        user_home, monkeypatch, namespace("shop"), namespace("quay"), *kinds
    )


@pytest.fixture
def shop(tmp_path: Path) -> ChartRepository:
    """A release in a file that a Kustomization applies, which prunes."""
    made = ChartRepository(tmp_path / "repository", file=APPS)
    apps = kustomization("apps", "./apps", into="")
    Repository(made.root).put("clusters/main/all.yaml", git_repository(), apps)
    made.put("templates/web.yaml", config_map("web", to="one"))
    made.put("templates/before.yaml", hook("before", "pre-delete", policy="hook-succeeded"))
    return made


def fill(sandbox: PersistentSandbox, shop: ChartRepository) -> None:
    """Everything as Flux leaves it: own objects with their statuses, and nothing of ours."""
    sandbox.put(kustomization("apps", "./apps", into=""))
    ran = sandbox.sync(shop.root)
    assert ran.code == 0, ran.stdout + ran.stderr
    for name in sandbox.all(SECRET, OWN):
        sandbox.delete(SECRET, OWN, name)
    for record in records(sandbox):
        sandbox.delete(SECRET, "shop", f"sh.helm.release.v1.{record.name}.v{record.number}")
        sandbox.put(record_secret(ReleaseRecord(record.content), "shop", now=Ms(0)))
    chart: Json = {"name": "shop-web", "namespace": "flux-system"}
    sandbox.put({"apiVersion": HELM_CHART.api_version, "kind": "HelmChart", "metadata": chart})
    sandbox.patch(HELM_RELEASE, "shop", "web", {"metadata": {"finalizers": FINALIZER}})
    result: Json = {"helmChart": "flux-system/shop-web"}
    sandbox.patch(HELM_RELEASE, "shop", "web", {"status": result}, status=True)
    release = sandbox.all(HELM_RELEASE, "shop")["web"]
    assert get_text(release, "status", "storageNamespace") == "shop"
    parent = sandbox.all(KUSTOMIZATION, "flux-system")["apps"]
    entries = [
        get_text(entry, "id") for entry in get_mappings(parent, "status", "inventory", "entries")
    ]
    assert "shop_web_helm.toolkit.fluxcd.io_HelmRelease" in entries


def remove_release(shop: ChartRepository) -> None:
    Repository(shop.root).put(APPS, namespace(shop.namespace))


def is_gone(sandbox: PersistentSandbox) -> bool:
    remaining = [sandbox.all(HELM_RELEASE, "shop"), sandbox.all(HELM_CHART, "flux-system")]
    return not (records(sandbox) or any(remaining) or "web" in sandbox.all(CONFIG_MAP, "shop"))


def test_a_release_that_flux_installed_and_that_left_git_is_uninstalled(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    fill(sandbox, shop)
    before = len(sandbox.changes())
    remove_release(shop)

    ran = sandbox.sync(shop.root)

    assert ran.code == 0, ran.stdout + ran.stderr
    assert any(
        "note[units.orphan]" in line
        and "`HelmRelease/shop/web`" in line
        and "ConfigMap shop/web" in line
        for line in ran.stderr.splitlines()
    )
    assert is_gone(sandbox)
    assert "create jobs/before" in sandbox.changes()[before:]
    again = sandbox.sync(shop.root)
    assert (again.code, "units.orphan" in again.stderr) == (0, False)


def test_a_plan_reports_the_deletion(sandbox: PersistentSandbox, shop: ChartRepository) -> None:
    fill(sandbox, shop)
    remove_release(shop)

    planned = sandbox.reach("plan", shop.root)

    assert planned.code == 0, planned.stdout + planned.stderr
    assert any(
        "note[units.orphan]" in line
        and "`HelmRelease/shop/web`" in line
        and "ConfigMap shop/web" in line
        for line in planned.stderr.splitlines()
    )
    assert not is_gone(sandbox)


def test_a_release_of_flux_is_uninstalled_with_the_options_of_its_helmrelease(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    shop.release(uninstall={"keepHistory": True, "disableHooks": True})
    fill(sandbox, shop)
    before = len(sandbox.changes())
    remove_release(shop)

    ran = sandbox.sync(shop.root)

    assert ran.code == 0, ran.stdout + ran.stderr
    assert revision_statuses(sandbox) == [(1, "uninstalled")]
    assert "create jobs/before" not in sandbox.changes()[before:]
    assert "web" not in sandbox.all(CONFIG_MAP, "shop")


def test_a_suspended_release_of_flux_is_kept(
    wording: RecordedWording, sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    fill(sandbox, shop)
    sandbox.patch(HELM_RELEASE, "shop", "web", {"spec": {"suspend": True}})
    remove_release(shop)

    ran = sandbox.sync(shop.root)

    assert ran.code == 0, ran.stdout + ran.stderr
    assert any(
        "warning[units.orphan]" in line and "`HelmRelease/shop/web`" in line
        for line in ran.stderr.splitlines()
    )
    wording(line for line in ran.stderr.splitlines() if "Flux" in line)
    assert revision_statuses(sandbox) == [(1, "deployed")]


@pytest.mark.parametrize("why", ["labels", "prune", "inventory"])
def test_a_release_whose_parent_does_not_prune_is_kept(
    sandbox: PersistentSandbox, shop: ChartRepository, why: str
) -> None:
    """By kustomize-controller's rules: what it has an inventory of, and says that it may go."""
    fill(sandbox, shop)
    if why == "labels":
        labels: Json = {"kustomize.toolkit.fluxcd.io/name": "other"}
        sandbox.patch(HELM_RELEASE, "shop", "web", {"metadata": {"labels": labels}})
    elif why == "prune":
        notes: Json = {"kustomize.toolkit.fluxcd.io/prune": "disabled"}
        sandbox.patch(HELM_RELEASE, "shop", "web", {"metadata": {"annotations": notes}})
    else:
        none: Json = {"inventory": {"entries": []}}
        sandbox.patch(KUSTOMIZATION, "flux-system", "apps", {"status": none}, status=True)
    remove_release(shop)

    ran = sandbox.sync(shop.root)

    assert ran.code == 0, ran.stdout + ran.stderr
    assert revision_statuses(sandbox) == [(1, "deployed")]
    assert "web" in sandbox.all(HELM_RELEASE, "shop")


@pytest.mark.parametrize("most", [20, 60])
def test_killed_on_its_way_nothing_of_it_is_lost(
    sandbox: PersistentSandbox, shop: ChartRepository, most: int
) -> None:
    fill(sandbox, shop)
    before = len(sandbox.changes())
    remove_release(shop)
    for turns in range(4, most, 4):
        sandbox.killed(shop.root, turns=turns)

    ran = sandbox.sync(shop.root)

    assert ran.code == 0, ran.stdout + ran.stderr
    assert is_gone(sandbox)
    assert sandbox.changes()[before:].count("create jobs/before") == 1


MOVES: dict[str, dict[str, Json]] = {
    "name": {"releaseName": "till"},
    "target": {"releaseName": "web", "targetNamespace": "quay"},
    "storage": {"storageNamespace": "quay"},
}


@pytest.mark.parametrize("move", MOVES)
def test_a_release_of_flux_with_another_name_or_namespace_is_uninstalled_first(
    sandbox: PersistentSandbox, shop: ChartRepository, move: str
) -> None:
    fill(sandbox, shop)
    before = len(sandbox.changes())
    shop.release(**MOVES[move])

    ran = sandbox.sync(shop.root)

    assert ran.code == 0, ran.stdout + ran.stderr
    assert "flux.release-moved" in ran.stderr
    matches = [record for place in ("shop", "quay") for record in records(sandbox, place)]
    into = str(MOVES[move].get("targetNamespace", "shop"))
    name = str(MOVES[move].get("releaseName", "web"))
    assert [(item.name, item.namespace, item.number) for item in matches] == [(name, into, 1)]
    done = sandbox.changes()[before:]
    assert done.index("create jobs/before") < done.index("delete configmaps/web")
    assert done.index("delete configmaps/web") < done.index("create configmaps/web")
    again = sandbox.sync(shop.root)
    assert (again.code, "flux.release-moved" in again.stderr) == (0, False)
    release = sandbox.all(HELM_RELEASE, "shop")["web"]
    assert get_text(get_mappings(release, "status", "history")[0], "name") == name
    assert get_mapping(release, "status")["storageNamespace"] == MOVES[move].get(
        "storageNamespace", "shop"
    )
