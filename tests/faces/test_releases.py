"""A HelmRelease from outside: the records of it that Helm would find."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.kept_sandbox import KeptSandbox
from tests.fakes.releases import (
    CONFIG_MAP,
    ChartRepository,
    config_map,
    hook,
    records,
    stands,
)
from tests.fakes.repositories import namespace
from tidegate.model.reading import text

VALUE = "'{{ .Values.to }}'"


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KeptSandbox:
    home = tmp_path / "home"
    home.mkdir()
    return KeptSandbox.make(home, monkeypatch, namespace("shop"), served=False)


@pytest.fixture
def shop(tmp_path: Path) -> ChartRepository:
    made = ChartRepository(tmp_path / "repository")
    made.put("values.yaml", "to: one\n")
    made.put("templates/web.yaml", config_map("web", to=VALUE))
    made.put("templates/NOTES.txt", "thanks for {{ .Release.Name }}")
    return made


def test_an_install_and_an_upgrade_leave_a_record_each(
    sandbox: KeptSandbox, shop: ChartRepository
) -> None:
    first = sandbox.sync(shop.root)
    assert first.code == 0, first.stderr
    assert stands(sandbox) == [(1, "deployed")]

    shop.release(values={"to": "two"})
    second = sandbox.sync(shop.root)

    assert second.code == 0, second.stderr
    assert stands(sandbox) == [(1, "superseded"), (2, "deployed")]
    last = records(sandbox)[-1]
    assert last.config == {"to": "two"}
    assert last.chart == ("shop", "1.0.0")
    assert "to: two" in last.manifest
    assert text(last.content, "info", "notes") == "thanks for web"
    assert text(last.content, "info", "description") == "Upgrade complete"


def test_nothing_is_entered_where_nothing_has_changed(
    sandbox: KeptSandbox, shop: ChartRepository
) -> None:
    sandbox.sync(shop.root)
    before = records(sandbox)

    again = sandbox.sync(shop.root)

    assert again.code == 0, again.stderr
    assert records(sandbox) == before


def test_values_that_change_no_object_are_a_revision_too(
    sandbox: KeptSandbox, shop: ChartRepository
) -> None:
    sandbox.sync(shop.root)
    shop.release(values={"unused": True})

    sandbox.sync(shop.root)

    assert stands(sandbox) == [(1, "superseded"), (2, "deployed")]


def test_a_release_that_fails_says_so_and_the_next_one_is_another_revision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shop: ChartRepository
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    sandbox = KeptSandbox.make(
        home, monkeypatch, namespace("shop"), served=False, failing=["migrate"]
    )
    shop.put("templates/hook.yaml", hook("migrate", "pre-install"))
    failed = sandbox.sync(shop.root)
    assert failed.code != 0
    assert stands(sandbox) == [(1, "failed")]
    assert 'Release "web" failed' in text(records(sandbox)[0].content, "info", "description")

    shop.drop("templates/hook.yaml")
    mended = sandbox.sync(shop.root)

    assert mended.code == 0, mended.stderr
    assert stands(sandbox) == [(1, "failed"), (2, "deployed")]


def test_so_many_records_are_kept_as_is_said(sandbox: KeptSandbox, shop: ChartRepository) -> None:
    shop.release(maxHistory=2)
    for to in ("one", "two", "three"):
        shop.release(values={"to": to})
        assert sandbox.sync(shop.root).code == 0

    assert stands(sandbox) == [(2, "superseded"), (3, "deployed")]


def test_a_release_that_is_deleted_leaves_no_record(
    sandbox: KeptSandbox, shop: ChartRepository
) -> None:
    sandbox.sync(shop.root)

    deleted = sandbox.run("delete", shop.root, "--sandbox", "--yes")

    assert deleted.code == 0, deleted.stderr
    assert records(sandbox) == []
    assert "web" not in sandbox.all(CONFIG_MAP, "shop")


def test_records_lie_where_the_release_says(sandbox: KeptSandbox, shop: ChartRepository) -> None:
    shop.release(storageNamespace="records", targetNamespace="shop", releaseName="till")

    ran = sandbox.sync(shop.root)

    assert ran.code == 0, ran.stderr
    assert [(one.name, one.namespace) for one in records(sandbox, "records")] == [("till", "shop")]
