"""A HelmRelease whose chart has another name by now: another release, or the next revision."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.persistent_sandbox import PersistentSandbox
from tests.support.releases import (
    CONFIG_MAP,
    SECRET,
    ChartRepository,
    config_map,
    records,
    revision_statuses,
)
from tests.support.repositories import namespace
from tidegate.dialect.helm.record import ReleaseRecord, record_secret
from tidegate.model.k8s.json_fields import get_text
from tidegate.model.k8s.objects import Json
from tidegate.model.times import Ms

REVISION = "'{{ .Release.Revision }} {{ .Release.IsInstall }}'"
IN_PLACE = "InPlaceUpdate"


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PersistentSandbox:
    user_home = tmp_path / "home"
    user_home.mkdir()
    return PersistentSandbox.make(user_home, monkeypatch, namespace("shop"), served=False)


@pytest.fixture
def shop(tmp_path: Path) -> ChartRepository:
    made = ChartRepository(tmp_path / "repository")
    made.put("templates/web.yaml", config_map("web", it=REVISION))
    return made


def rename(shop: ChartRepository, **spec: Json) -> None:
    shop.chart = "till"
    shop.release(**spec)


def seen(sandbox: PersistentSandbox) -> str:
    return get_text(sandbox.all(CONFIG_MAP, "shop")["web"], "data", "it")


def charts(sandbox: PersistentSandbox) -> list[tuple[int, str]]:
    return [(record.number, record.chart[0]) for record in records(sandbox)]


def become_strange(sandbox: PersistentSandbox, *, by_flux: bool) -> None:
    """Write the records as another client would, such as Flux or Helm."""
    for record in records(sandbox):
        content = {**record.content}
        if not by_flux:
            lines = record.manifest.splitlines(keepends=True)
            content["manifest"] = "".join(line for line in lines if "toolkit.fluxcd.io" not in line)
        sandbox.delete(SECRET, "shop", f"sh.helm.release.v1.{record.name}.v{record.number}")
        sandbox.put(record_secret(ReleaseRecord(content), "shop", now=Ms(0)))


def test_a_chart_of_another_name_is_another_release(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    sandbox.sync(shop.root)
    shop.release(values={"to": "two"})
    sandbox.sync(shop.root)
    before = len(sandbox.changes())
    rename(shop)

    ran = sandbox.sync(shop.root)

    assert ran.code == 0, ran.stdout + ran.stderr
    assert any(
        "note[flux.release-moved]" in line
        and "`HelmRelease/shop/web`" in line
        and "`shop`" in line
        and "`till`" in line
        for line in ran.stderr.splitlines()
    )
    assert "InPlaceUpdate" in ran.stderr
    assert charts(sandbox) == [(1, "till")]
    assert seen(sandbox) == "1 true"
    done = [change for change in sandbox.changes()[before:] if "configmaps/web" in change]
    assert done == ["delete configmaps/web", "create configmaps/web"]
    again = sandbox.sync(shop.root)
    assert (again.code, "flux.release-moved" in again.stderr) == (0, False)
    assert charts(sandbox) == [(1, "till")]


def test_a_renamed_chart_is_upgraded_in_place_if_the_release_says_so(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    sandbox.sync(shop.root)
    before = len(sandbox.changes())
    rename(shop, upgrade={"chartNameChangeStrategy": IN_PLACE})

    ran = sandbox.sync(shop.root)

    assert ran.code == 0, ran.stdout + ran.stderr
    assert "flux.release-moved" not in ran.stderr
    assert charts(sandbox) == [(1, "shop"), (2, "till")]
    assert seen(sandbox) == "2 false"
    assert "delete configmaps/web" not in sandbox.changes()[before:]


def test_revision_numbers_continue_after_a_kept_history(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    shop.release(uninstall={"keepHistory": True})
    sandbox.sync(shop.root)
    shop.release(values={"to": "two"})
    sandbox.sync(shop.root)
    rename(shop)

    ran = sandbox.sync(shop.root)

    assert ran.code == 0, ran.stdout + ran.stderr
    assert revision_statuses(sandbox) == [(1, "superseded"), (2, "uninstalled"), (3, "deployed")]
    assert seen(sandbox) == "3 true"
    again = sandbox.sync(shop.root)
    assert (again.code, "flux.release-moved" in again.stderr) == (0, False)
    assert revision_statuses(sandbox)[-1] == (3, "deployed")


@pytest.mark.parametrize("by_flux", [True, False])
def test_a_release_of_flux_is_replaced_and_a_release_of_helm_upgraded(
    sandbox: PersistentSandbox, shop: ChartRepository, *, by_flux: bool
) -> None:
    """helm-controller goes by what it has released itself."""
    sandbox.sync(shop.root)
    become_strange(sandbox, by_flux=by_flux)
    rename(shop)

    ran = sandbox.sync(shop.root)

    assert ran.code == 0, ran.stdout + ran.stderr
    assert charts(sandbox) == ([(1, "till")] if by_flux else [(1, "shop"), (2, "till")])


def test_a_killed_replacement_uninstalls_and_installs_once(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    sandbox.sync(shop.root)
    before = len(sandbox.changes())
    rename(shop)
    for number in range(10):
        sandbox.killed(shop.root, turns=4 + 4 * number)

    ran = sandbox.sync(shop.root)

    assert ran.code == 0, ran.stdout + ran.stderr
    assert charts(sandbox) == [(1, "till")]
    assert revision_statuses(sandbox) == [(1, "deployed")]
    made = [
        change
        for change in sandbox.changes()[before:]
        if change.startswith("create secrets/sh.helm")
    ]
    assert made == ["create secrets/sh.helm.release.v1.web.v1"]


def test_an_unknown_strategy_is_reported(sandbox: PersistentSandbox, shop: ChartRepository) -> None:
    shop.release(upgrade={"chartNameChangeStrategy": "Rename"})

    ran = sandbox.run("lint", shop.root)

    assert "spec.upgrade.chartNameChangeStrategy" in ran.stdout + ran.stderr
