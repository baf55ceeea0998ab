"""The status of a HelmRelease, on a simulated cluster that serves its kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.persistent_sandbox import PersistentSandbox
from tests.support.releases import (
    CONFIG_MAP,
    RELEASE,
    ChartRepository,
    a_shop,
    config_map,
    hook,
    release_sandbox,
)
from tests.support.unit_conditions import condition, list_results
from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text, get_value
from tidegate.model.k8s.objects import JsonObject


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PersistentSandbox:
    """A cluster that has the release, and in which the Job `migrate` fails."""
    return release_sandbox(tmp_path, monkeypatch, with_unit_resource=True, failing=["migrate"])


@pytest.fixture
def shop(tmp_path: Path) -> ChartRepository:
    made = a_shop(tmp_path / "repository")
    made.release(values={"to": "one"})
    return made


def read_result(sandbox: PersistentSandbox) -> JsonObject:
    return sandbox.all(RELEASE, "shop")["web"]


def versions(body: JsonObject) -> list[tuple[object, str]]:
    history = get_mappings(body, "status", "history")
    return [(item["version"], get_text(item, "status")) for item in history]


def test_the_status_of_a_release_contains_installs_and_upgrades(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    installed = sandbox.sync(shop.root)

    assert "note: " not in installed.stderr
    text = "Helm install succeeded for release shop/web.v1 with chart shop@1.0.0"
    assert condition(read_result(sandbox), "Released") == ("True", "InstallSucceeded", text)
    assert condition(read_result(sandbox), "Ready") == ("True", "InstallSucceeded", text)
    assert condition(read_result(sandbox), "Reconciling") is None
    entries = get_mappings(read_result(sandbox), "status", "inventory", "entries")
    assert [get_text(entry, "id") for entry in entries] == ["shop_web__ConfigMap"]

    shop.release(values={"to": "two"})
    sandbox.sync(shop.root)

    text = "Helm upgrade succeeded for release shop/web.v2 with chart shop@1.0.0"
    assert condition(read_result(sandbox), "Ready") == ("True", "UpgradeSucceeded", text)
    assert versions(read_result(sandbox)) == [(2, "deployed"), (1, "superseded")]
    assert ("web", "UpgradeSucceeded") in list_results(sandbox, "shop")


def test_a_second_run_writes_the_same_status(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    sandbox.sync(shop.root)
    before = read_result(sandbox)

    sandbox.sync(shop.root)

    assert read_result(sandbox) == before


def test_the_status_of_a_rolled_back_upgrade_says_that_retries_are_exhausted(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    sandbox.sync(shop.root)
    shop.put("templates/hook.yaml", hook("migrate", "pre-upgrade"))
    shop.release(values={"to": "two"}, upgrade={"remediation": {"retries": 2}})

    sandbox.sync(shop.root)

    result = read_result(sandbox)
    released = condition(result, "Released")
    assert released is not None
    assert released[:2] == ("False", "UpgradeFailed")
    assert released[2].startswith(
        "Helm upgrade failed for release shop/web with chart shop@1.0.0: Job shop/migrate"
    )
    back = "Helm rollback to previous release shop/web.v5 with chart shop@1.0.0 succeeded"
    assert condition(result, "Remediated") == ("True", "RollbackSucceeded", back)
    assert condition(result, "Ready") == ("False", "RollbackSucceeded", back)
    tried = "Failed to upgrade after 3 attempt(s)"
    assert condition(result, "Stalled") == ("True", "RetriesExceeded", tried)
    assert versions(result) == [(7, "deployed"), (6, "failed"), (5, "superseded")]
    assert get_value(result, "status", "upgradeFailures") == 3

    shop.drop("templates/hook.yaml")
    sandbox.sync(shop.root)

    assert condition(read_result(sandbox), "Remediated") is None
    assert condition(read_result(sandbox), "Stalled") is None
    ready = condition(read_result(sandbox), "Ready")
    assert ready is not None
    assert ready[:2] == ("True", "UpgradeSucceeded")
    assert "upgradeFailures" not in get_mapping(read_result(sandbox), "status")


def test_the_status_contains_an_uninstalled_install(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    shop.put("templates/hook.yaml", hook("migrate", "pre-install"))
    shop.release(install={"remediation": {"remediateLastFailure": True}})

    sandbox.sync(shop.root)

    result = read_result(sandbox)
    gone = "Helm uninstall remediation for release shop/web succeeded"
    assert condition(result, "Ready") == ("False", "UninstallSucceeded", gone)
    assert condition(result, "Stalled") == (
        "True",
        "RetriesExceeded",
        "Failed to install after 1 attempt(s)",
    )


def test_a_failure_that_nothing_is_done_about_is_stalled_at_once(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    shop.put("templates/hook.yaml", hook("migrate", "pre-install"))

    sandbox.sync(shop.root)

    result = read_result(sandbox)
    ready = condition(result, "Ready")
    assert ready is not None
    assert ready[:2] == ("False", "InstallFailed")
    assert condition(result, "Remediated") is None
    assert condition(result, "Stalled") is not None
    assert get_value(result, "status", "observedGeneration") == get_value(
        result, "metadata", "generation"
    )
    assert versions(result) == [(1, "failed")]


@pytest.mark.parametrize("mode", ["warn", "enabled"])
def test_the_status_of_a_release_contains_its_drift(
    sandbox: PersistentSandbox, shop: ChartRepository, mode: str
) -> None:
    shop.put("templates/more.yaml", config_map("more", to="more"))
    shop.release(driftDetection={"mode": mode})
    sandbox.sync(shop.root)
    no_drift = ("False", "NoDriftDetected", "No drift detected for release shop/web.v1")
    assert condition(read_result(sandbox), "Drifted") == no_drift
    ready = condition(read_result(sandbox), "Ready")
    sandbox.patch(CONFIG_MAP, "shop", "web", {"data": {"to": "other", "new": "one"}})
    sandbox.delete(CONFIG_MAP, "shop", "more")

    sandbox.sync(shop.root)

    text = (
        "Cluster state of release shop/web.v1 has drifted from the desired state:\n"
        "ConfigMap/shop/more removed\n"
        "ConfigMap/shop/web changed (0 additions, 1 changes, 0 removals)"
    )
    warned = ("True", "DriftDetected", text)
    assert condition(read_result(sandbox), "Drifted") == (warned if mode == "warn" else no_drift)
    assert condition(read_result(sandbox), "Ready") == ready
    assert ("web", "DriftDetected") in list_results(sandbox, "shop")
    assert (("web", "DriftCorrected") in list_results(sandbox, "shop")) is (mode == "enabled")
    assert versions(read_result(sandbox)) == [(1, "deployed")]

    shop.release(driftDetection={"mode": "disabled"})
    sandbox.sync(shop.root)

    assert condition(read_result(sandbox), "Drifted") is None
    assert condition(read_result(sandbox), "Ready") == ready


def test_the_status_says_that_no_revision_can_be_rolled_back_to(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    shop.put("templates/hook.yaml", hook("migrate", "post-install,post-upgrade"))
    sandbox.sync(shop.root)
    shop.release(values={"to": "two"}, upgrade={"remediation": {"retries": 2}})

    sandbox.sync(shop.root)

    flux_message = "missing target release for rollback: cannot remediate failed release"
    why = f"Failed to perform remediation: {flux_message}"
    assert condition(read_result(sandbox), "Stalled") == ("True", "MissingRollbackTarget", why)
    ready = condition(read_result(sandbox), "Ready")
    assert ready is not None
    assert ready[:2] == ("False", "UpgradeFailed")
    assert get_mapping(read_result(sandbox), "status")["upgradeFailures"] == 1
