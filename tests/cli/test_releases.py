"""A HelmRelease from outside: the records of it that Helm would find."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.persistent_sandbox import PersistentSandbox, definition
from tests.support.recorded_wording import RecordedWording
from tests.support.releases import (
    CONFIG_MAP,
    ChartRepository,
    a_shop,
    config_map,
    hook,
    records,
    release_sandbox,
    revision_statuses,
)
from tests.support.tidegate_command import CommandResult
from tidegate.documents.dump import to_yaml
from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text
from tidegate.model.k8s.objects import Json, Kind

DEFINITION = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
IN_PLACE: Json = {"name": "web", "namespace": "shop"}
VALUE = "'{{ .Values.to }}'"


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PersistentSandbox:
    return release_sandbox(tmp_path, monkeypatch)


@pytest.fixture
def shop(tmp_path: Path) -> ChartRepository:
    made = a_shop(tmp_path / "repository")
    made.put("templates/NOTES.txt", "thanks for {{ .Release.Name }}")
    return made


def test_an_install_and_an_upgrade_leave_a_record_each(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    first = sandbox.sync(shop.root)
    assert first.code == 0, first.stderr
    assert revision_statuses(sandbox) == [(1, "deployed")]

    shop.release(values={"to": "two"})
    second = sandbox.sync(shop.root)

    assert second.code == 0, second.stderr
    assert revision_statuses(sandbox) == [(1, "superseded"), (2, "deployed")]
    last = records(sandbox)[-1]
    assert last.config == {"to": "two"}
    assert last.chart == ("shop", "1.0.0")
    assert "to: two" in last.manifest
    assert get_text(last.content, "info", "notes") == "thanks for web"
    assert get_text(last.content, "info", "description") == "Upgrade complete"


def test_nothing_is_entered_where_nothing_has_changed(
    wording: RecordedWording, sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    sandbox.sync(shop.root)
    before = records(sandbox)

    again = sandbox.sync(shop.root)

    assert again.code == 0, again.stderr
    wording(line for line in again.stdout.splitlines() if "  rollout  " in line)
    assert "note: " not in again.stderr
    assert records(sandbox) == before


def test_values_that_change_no_object_are_a_revision_too(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    sandbox.sync(shop.root)
    shop.release(values={"unused": True})

    sandbox.sync(shop.root)

    assert revision_statuses(sandbox) == [(1, "superseded"), (2, "deployed")]


def test_the_history_limit_of_a_release_is_respected(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    shop.release(maxHistory=2)
    for to in ("one", "two", "three"):
        shop.release(values={"to": to})
        assert sandbox.sync(shop.root).code == 0

    assert revision_statuses(sandbox) == [(2, "superseded"), (3, "deployed")]


def test_a_release_that_is_deleted_leaves_no_record(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    sandbox.sync(shop.root)

    deleted = sandbox.run("delete", shop.root, "--sandbox", "--yes")

    assert deleted.code == 0, deleted.stderr
    assert records(sandbox) == []
    assert "web" not in sandbox.all(CONFIG_MAP, "shop")


def test_an_uninstall_follows_the_options_of_the_release(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    """Uninstall without hooks and with the history; do not wait for objects with a finalizer."""
    held = config_map("held").replace("name: held", "name: held\n  finalizers: [shop/held]")
    shop.put("templates/held.yaml", held)
    shop.put("templates/bye.yaml", hook("goodbye", "pre-delete"))
    shop.release(uninstall={"disableHooks": True, "disableWait": True, "keepHistory": True})
    sandbox.sync(shop.root)

    ended = sandbox.run("delete", shop.root, "--sandbox", "--yes")

    assert ended.code == 0, ended.stdout + ended.stderr
    assert "goodbye" not in ended.stdout
    assert sandbox.all(CONFIG_MAP, "shop").keys() & {"held", "web"} == {"held"}
    assert revision_statuses(sandbox) == [(1, "uninstalled")]


def test_records_are_in_the_storage_namespace_of_the_release(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    shop.release(storageNamespace="records", targetNamespace="shop", releaseName="till")

    ran = sandbox.sync(shop.root)

    assert ran.code == 0, ran.stderr
    assert [(record.name, record.namespace) for record in records(sandbox, "records")] == [
        ("till", "shop")
    ]


def ran(done: CommandResult) -> list[str]:
    """The steps that were begun, in their order, without the name of the unit."""
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    begun = (item["step"] for item in messages if item["event"] == "step.applying")
    return [item.removeprefix("HelmRelease/shop/web/") for item in begun]


def test_installs_and_upgrades_run_their_own_hooks_one_after_another(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    shop.put("templates/a.yaml", hook("late", "pre-install,post-upgrade", weight=5))
    shop.put("templates/b.yaml", hook("early", "pre-install", weight=-5))
    shop.put("templates/c.yaml", hook("after", "post-install,pre-upgrade"))
    installed = sandbox.sync(shop.root, "-o", "json")
    again = sandbox.sync(shop.root, "-o", "json")
    shop.release(values={"to": "two"})
    upgraded = sandbox.sync(shop.root, "-o", "json")

    assert ran(installed) == ["pre-install/1", "pre-install/2", "objects", "post-install"]
    assert ran(again) == ["objects"]
    assert ran(upgraded) == ["pre-upgrade", "objects", "post-upgrade"]
    phases = {
        get_text(hook, "name"): get_text(hook, "last_run", "phase")
        for hook in get_mappings(records(sandbox)[-1].content, "hooks")
    }
    assert phases == {"late": "Succeeded", "early": "", "after": "Succeeded"}


def test_hooks_run_for_each_revision_though_their_text_is_the_same(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    shop.put("templates/hook.yaml", hook("migrate", "pre-upgrade"))
    sandbox.sync(shop.root)
    for to in ("a", "b"):
        shop.release(values={"unused": to})
        assert ran(sandbox.sync(shop.root, "-o", "json"))[0] == "pre-upgrade"

    assert revision_statuses(sandbox)[-1] == (3, "deployed")


def test_templates_see_the_revision_that_they_make(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    message = "'{{ .Release.Revision }} {{ .Release.IsInstall }} {{ .Release.IsUpgrade }}'"
    shop.put("templates/seen.yaml", config_map("seen", it=message))

    def seen() -> str:
        assert sandbox.sync(shop.root).code == 0
        return get_text(sandbox.all(CONFIG_MAP, "shop")["seen"], "data", "it")

    assert seen() == "1 true false"
    assert seen() == "1 true false"
    shop.release(values={"to": "two"})
    assert seen() == "2 false true"
    assert seen() == "2 false true"
    assert revision_statuses(sandbox) == [(1, "superseded"), (2, "deployed")]


def test_definitions_of_a_chart_are_made_once_unless_they_are_to_be_replaced(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    def define(note: str) -> None:
        body = definition(Kind("sea.example", "v1", "Buoy"), "buoys", status=False)
        metadata: Json = {**get_mapping(body, "metadata"), "annotations": {"note": note}}
        shop.put("crds/buoy.yaml", to_yaml({**body, "metadata": metadata}))

    def noted() -> str:
        return get_text(
            sandbox.all(DEFINITION, "")["buoys.sea.example"], "metadata", "annotations", "note"
        )

    define("one")
    shop.put(
        "templates/buoy.yaml", "apiVersion: sea.example/v1\nkind: Buoy\nmetadata: {name: red}\n"
    )
    done = sandbox.sync(shop.root, "-o", "json")
    assert ran(done) == ["crds", "objects"], done.stderr
    define("two")
    sandbox.sync(shop.root)
    assert noted() == "one"

    shop.release(values={"to": "two"}, upgrade={"crds": "CreateReplace"})
    done = sandbox.sync(shop.root)

    assert done.code == 0, done.stderr
    assert noted() == "two"
    assert "Buoy" in records(sandbox)[-1].manifest
    assert "CustomResourceDefinition" not in records(sandbox)[-1].manifest


def test_objects_have_release_labels_and_hooks_do_not(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    shop.put("templates/hook.yaml", hook("note", "pre-install", kind="ConfigMap"))
    sandbox.sync(shop.root)

    settings = sandbox.all(CONFIG_MAP, "shop")

    assert get_mapping(settings["web"], "metadata", "labels") == {
        "app.kubernetes.io/managed-by": "Helm",
        "helm.toolkit.fluxcd.io/name": "web",
        "helm.toolkit.fluxcd.io/namespace": "shop",
    }
    assert get_mapping(settings["web"], "metadata", "annotations") == {
        "meta.helm.sh/release-name": "web",
        "meta.helm.sh/release-namespace": "shop",
    }
    assert "meta.helm.sh/release-name" not in get_mapping(
        settings["note"], "metadata", "annotations"
    )


def test_options_of_upgrades_are_for_upgrades_alone(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    shop.put("templates/hook.yaml", hook("migrate", "pre-install,pre-upgrade"))
    shop.release(upgrade={"disableHooks": True})
    installed = sandbox.sync(shop.root, "-o", "json")
    shop.release(values={"to": "two"})
    upgraded = sandbox.sync(shop.root, "-o", "json")

    assert ran(installed) == ["pre-install", "objects"]
    assert ran(upgraded) == ["objects"]


def test_an_object_removed_from_the_chart_is_deleted_by_the_upgrade(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    shop.put("templates/old.yaml", config_map("old", to="old"))
    sandbox.sync(shop.root)
    shop.drop("templates/old.yaml")

    sandbox.sync(shop.root)

    assert "old" not in sandbox.all(CONFIG_MAP, "shop")
    assert revision_statuses(sandbox) == [(1, "superseded"), (2, "deployed")]


def test_existing_objects_are_adopted_unless_the_release_disables_it(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    sandbox.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": IN_PLACE, "data": {"a": "b"}})
    shop.release(install={"disableTakeOwnership": True})
    refused = sandbox.sync(shop.root)
    assert refused.code == 3
    assert any(
        "error[plan.shared]" in line and "ConfigMap shop/web" in line
        for line in refused.stderr.splitlines()
    )
    assert 'missing key "app.kubernetes.io/managed-by": must be set to "Helm"' in refused.stderr
    assert records(sandbox) == []

    shop.release(install={})
    taken = sandbox.sync(shop.root)

    assert taken.code == 0, taken.stderr
    assert revision_statuses(sandbox) == [(1, "deployed")]


def test_drift_is_corrected_without_hooks_and_without_a_new_revision(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    shop.put("templates/hook.yaml", hook("migrate", "pre-install,pre-upgrade"))
    shop.release(driftDetection={"mode": "enabled"})
    sandbox.sync(shop.root)
    sandbox.patch(CONFIG_MAP, "shop", "web", {"data": {"to": "other"}})

    done = sandbox.sync(shop.root, "-o", "json")

    assert ran(done) == ["objects"]
    assert get_text(sandbox.all(CONFIG_MAP, "shop")["web"], "data", "to") == "one"
    assert revision_statuses(sandbox) == [(1, "deployed")]


def test_ignored_drift_stays_until_the_next_revision(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    shop.put("templates/web.yaml", config_map("web", to=VALUE, kept="mine"))
    target: Json = {"kind": "ConfigMap", "name": "web"}
    shop.release(
        driftDetection={"mode": "enabled", "ignore": [{"paths": ["/data/to"], "target": target}]}
    )
    sandbox.sync(shop.root)
    sandbox.patch(CONFIG_MAP, "shop", "web", {"data": {"to": "other", "kept": "theirs"}})

    sandbox.sync(shop.root)
    assert get_mapping(sandbox.all(CONFIG_MAP, "shop")["web"], "data") == {
        "to": "other",
        "kept": "mine",
    }

    shop.release(values={"to": "two"})
    sandbox.sync(shop.root)

    assert get_text(sandbox.all(CONFIG_MAP, "shop")["web"], "data", "to") == "two"
