"""HelmReleases that fail, are locked, or are released by another client."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conformance.flux.stage import case, lines_with
from tests.support.persistent_sandbox import PersistentSandbox
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
from tests.support.tidegate_runs import tidegate
from tidegate.dialect.helm.record import ReleaseRecord, ReleaseStatus, record_secret
from tidegate.model.k8s.json_fields import get_text
from tidegate.model.k8s.objects import Json, JsonObject, Kind
from tidegate.model.times import Ms

JOB = Kind("batch", "v1", "Job")


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PersistentSandbox:
    """A cluster in which the Job `migrate` fails."""
    return release_sandbox(tmp_path, monkeypatch, failing=["migrate"])


@pytest.fixture
def shop(tmp_path: Path) -> ChartRepository:
    return a_shop(tmp_path / "repository")


@case(59)
def test_a_failed_install_stays_failed_and_new_values_make_a_new_revision(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    shop.put("templates/hook.yaml", hook("migrate", "pre-install"))
    failed = sandbox.sync(shop.root)
    assert failed.code != 0
    assert revision_statuses(sandbox) == [(1, "failed")]
    assert 'Release "web" failed' in get_text(records(sandbox)[0].content, "info", "description")

    shop.release(values={"to": "two"})
    fixed = sandbox.sync(shop.root)

    assert fixed.code == 0, fixed.stderr
    assert revision_statuses(sandbox) == [(1, "failed"), (2, "deployed")]


@case(61)
def test_retry_on_failure_retries_at_its_interval_without_rollback(
    tmp_path: Path, shop: ChartRepository
) -> None:
    shop.put("templates/hook.yaml", hook("migrate", "pre-install,pre-upgrade"))
    retries: Json = {"strategy": {"name": "RetryOnFailure", "retryInterval": "2m"}}
    shop.release(install=retries, upgrade=retries)
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text("behaviours: [{effect: fails, when: {kind: Job, name: migrate}}]\n")
    args = ("--engine", "flux", "-o", "json", "--until", "7m", "--scenario", str(scenario))

    ran = tidegate("simulate", shop.root, *args)

    messages = [json.loads(line) for line in ran.stdout.splitlines()]
    planned = [
        (item["at"], item["until"]) for item in messages if item.get("event") == "retry.scheduled"
    ]
    assert [until - at for at, until in planned] == [120_000] * 3, ran.stderr
    (history,) = messages[-1]["releases"]
    assert [revision["status"] for revision in history["revisions"]][:3] == ["failed"] * 3


@case(61)
def test_a_failed_install_is_retried_as_an_upgrade_with_a_new_revision(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    shop.put("templates/hook.yaml", hook("migrate", "post-install"))
    shop.put("templates/web.yaml", config_map("web", by="'{{ .Release.Revision }}'"))
    shop.release(install={"strategy": {"name": "RetryOnFailure"}})

    done = sandbox.sync(shop.root)

    assert done.code == 0, done.stderr
    assert revision_statuses(sandbox) == [(1, "failed"), (2, "deployed")]
    assert get_text(sandbox.all(CONFIG_MAP, "shop")["web"], "data", "by") == "2"


@case(62)
def test_a_release_left_pending_is_unlocked_and_upgraded(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    sandbox.sync(shop.root)
    last = records(sandbox)[0]
    locked = last.with_status(ReleaseStatus.PENDING_UPGRADE, "Preparing upgrade")
    content: JsonObject = {**locked.content, "version": 2}
    stale = ReleaseRecord(content)
    sandbox.put(record_secret(stale, "shop", now=Ms(0)))

    done = sandbox.sync(shop.root)

    assert done.code == 0, done.stderr
    assert revision_statuses(sandbox) == [(1, "superseded"), (2, "failed"), (3, "deployed")]
    assert lines_with(done.stderr, "[", "`shop/web`", "`pending-upgrade`")


@case(62)
def test_a_release_of_the_helm_client_is_upgraded(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    sandbox.sync(shop.root)
    content: JsonObject = {**records(sandbox)[0].content, "version": 2}
    sandbox.put(record_secret(ReleaseRecord(content), "shop", now=Ms(0)))

    done = sandbox.sync(shop.root)

    assert done.code == 0, done.stderr
    assert revision_statuses(sandbox) == [(1, "superseded"), (2, "superseded"), (3, "deployed")]


@case(65)
def test_changed_post_renderers_cause_one_upgrade(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    sandbox.sync(shop.root)
    patch = '[{"op": "add", "path": "/data/more", "value": "yes"}]'
    target: JsonObject = {"kind": "ConfigMap", "name": "web"}
    shop.release(postRenderers=[{"kustomize": {"patches": [{"patch": patch, "target": target}]}}])

    for _ in range(2):
        done = sandbox.sync(shop.root)
        assert done.code == 0, done.stderr

    assert revision_statuses(sandbox) == [(1, "superseded"), (2, "deployed")]
    assert get_text(sandbox.all(CONFIG_MAP, "shop")["web"], "data", "more") == "yes"


@case(60)
def test_a_failed_upgrade_is_rolled_back_and_retried_until_its_retries_are_used(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    shop.put("templates/before.yaml", hook("before", "pre-rollback"))
    sandbox.sync(shop.root)
    shop.put("templates/more.yaml", config_map("more", to="'{{ .Values.to }}'"))
    shop.put("templates/hook.yaml", hook("migrate", "post-upgrade"))
    shop.release(values={"to": "two"}, upgrade={"remediation": {"retries": 1}})

    failed = sandbox.sync(shop.root)

    assert failed.code != 0
    assert revision_statuses(sandbox) == [
        (1, "superseded"),
        (2, "failed"),
        (3, "superseded"),
        (4, "failed"),
        (5, "deployed"),
    ]
    last = records(sandbox)[-1]
    assert get_text(last.content, "info", "description") == "Rollback to 3"
    assert last.manifest == records(sandbox)[0].manifest
    assert sandbox.changes().count("create jobs/before") == 2
    assert sandbox.all(CONFIG_MAP, "shop").keys() & {"web", "more"} == {"web"}
    assert get_text(sandbox.all(CONFIG_MAP, "shop")["web"], "data", "to") == "one"


@case(60)
def test_a_failed_upgrade_without_a_successful_release_is_not_retried(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    shop.put("templates/hook.yaml", hook("migrate", "post-install,post-upgrade"))
    sandbox.sync(shop.root)
    shop.release(values={"to": "two"}, upgrade={"remediation": {"retries": 2}})

    failed = sandbox.sync(shop.root)

    assert failed.code != 0
    assert revision_statuses(sandbox) == [(1, "failed"), (2, "failed")]


@case(60)
def test_a_revert_in_git_after_a_rollback_makes_no_new_revision(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    sandbox.sync(shop.root)
    shop.put("templates/hook.yaml", hook("migrate", "pre-upgrade"))
    remediation: JsonObject = {"remediateLastFailure": True}
    shop.release(upgrade={"remediation": remediation})
    assert sandbox.sync(shop.root).code != 0
    before = revision_statuses(sandbox)
    assert before == [(1, "superseded"), (2, "failed"), (3, "deployed")]

    shop.drop("templates/hook.yaml")
    back = sandbox.sync(shop.root)

    assert back.code == 0, back.stderr
    assert revision_statuses(sandbox) == before


@case(60)
def test_a_failed_install_is_uninstalled_before_each_retry(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    shop.put("templates/hook.yaml", hook("migrate", "post-install"))
    shop.put("templates/bye.yaml", hook("goodbye", "pre-delete"))
    shop.release(install={"remediation": {"retries": 1}})

    failed = sandbox.sync(shop.root, "-o", "json")

    assert failed.code != 0
    written = events_of(failed, "object.written")
    assert [event["name"] for event in written if event["kind"] == "Job"].count("goodbye") == 1
    assert revision_statuses(sandbox) == [(1, "failed")]
    assert "web" in sandbox.all(CONFIG_MAP, "shop")


@case(60)
def test_remediate_last_failure_uninstalls_after_the_last_failed_install(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    shop.put("templates/hook.yaml", hook("migrate", "post-install"))
    shop.release(install={"remediation": {"remediateLastFailure": True}})

    assert sandbox.sync(shop.root).code != 0

    assert revision_statuses(sandbox) == []
    assert "web" not in sandbox.all(CONFIG_MAP, "shop")


@case(60)
def test_a_failed_upgrade_can_be_uninstalled(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    sandbox.sync(shop.root)
    shop.put("templates/hook.yaml", hook("migrate", "post-install,post-upgrade"))
    remediation: JsonObject = {"strategy": "uninstall", "remediateLastFailure": True}
    shop.release(upgrade={"remediation": remediation})

    assert sandbox.sync(shop.root).code != 0

    assert revision_statuses(sandbox) == []
    assert not sandbox.all(CONFIG_MAP, "shop").keys() & {"web"}


@case(60)
@pytest.mark.parametrize("turns", [16, 30])
def test_a_process_killed_between_retries_leaves_no_lock(
    sandbox: PersistentSandbox, shop: ChartRepository, turns: int
) -> None:
    """Killed during the upgrade or the rollback; everything that fails is still rolled back."""
    sandbox.sync(shop.root)
    shop.put("templates/hook.yaml", hook("migrate", "post-upgrade"))
    remediation: JsonObject = {"remediateLastFailure": True}
    shop.release(values={"to": "two"}, upgrade={"remediation": remediation})
    sandbox.killed(shop.root, turns=turns)

    assert sandbox.sync(shop.root).code != 0

    result = revision_statuses(sandbox)
    assert [number for number, _ in result] == [*range(1, len(result) + 1)]
    assert result[-1][1] == "deployed"
    assert [status for _, status in result].count("deployed") == 1
    assert get_text(sandbox.all(CONFIG_MAP, "shop")["web"], "data", "to") == "one"


@case(60)
def test_hooks_of_a_rollback_follow_their_delete_policies(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    """The hook of the upgrade fails, that of the rollback succeeds; both are deleted."""
    shop.put("templates/undo.yaml", hook("undo", "pre-rollback", policy="hook-succeeded"))
    shop.put("templates/kept.yaml", hook("kept", "pre-rollback", policy="hook-failed"))
    assert sandbox.sync(shop.root).code == 0
    shop.put("templates/hook.yaml", hook("migrate", "post-upgrade", policy="hook-failed"))
    shop.release(values={"to": "two"}, upgrade={"remediation": {"remediateLastFailure": True}})

    failed = sandbox.sync(shop.root)

    assert failed.code != 0
    assert revision_statuses(sandbox)[-1] == (3, "deployed")
    assert {*sandbox.all(JOB, "shop")} == {"kept"}


def events_of(ran: CommandResult, kind: str) -> list[dict[str, str]]:
    """The events of a kind that a run with `-o json` printed."""
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    return [event for event in events if event["event"] == kind]


def drift(sandbox: PersistentSandbox) -> None:
    """Another writer changes one object of the release, and deletes the other."""
    sandbox.patch(CONFIG_MAP, "shop", "web", {"data": {"to": "other"}})
    sandbox.delete(CONFIG_MAP, "shop", "more")


@case(63)
@pytest.mark.parametrize("mode", ["enabled", "warn", "disabled", ""])
def test_drift_is_corrected_only_with_drift_detection(
    sandbox: PersistentSandbox, shop: ChartRepository, mode: str, wording: RecordedWording
) -> None:
    shop.put("templates/more.yaml", config_map("more", to="more"))
    shop.release(driftDetection={"mode": mode} if mode else {})
    sandbox.sync(shop.root)
    drift(sandbox)

    done = sandbox.sync(shop.root, "-o", "json")

    assert done.code == 0, done.stderr
    settings, is_mended = sandbox.all(CONFIG_MAP, "shop"), mode == "enabled"
    assert get_text(settings["web"], "data", "to") == ("one" if is_mended else "other")
    assert ("more" in settings) is is_mended
    assert revision_statuses(sandbox) == [(1, "deployed")]
    drifted = {event["name"]: event["message"] for event in events_of(done, "object.drifted")}
    assert {*drifted} == ({"web", "more"} if mode == "warn" else set())
    if drifted:
        wording(f"{name}: {drifted[name]}" for name in sorted(drifted))

    shop.release(values={"to": "two"})
    sandbox.sync(shop.root)
    settings = sandbox.all(CONFIG_MAP, "shop")
    assert get_text(settings["web"], "data", "to") == "two"
    assert "more" in settings


@case(63)
@pytest.mark.parametrize("word", ["labels", "annotations"])
def test_drift_detection_can_be_disabled_for_an_object(
    sandbox: PersistentSandbox, shop: ChartRepository, word: str
) -> None:
    text = f"  {word}: {{helm.toolkit.fluxcd.io/driftDetection: disabled}}"
    template = config_map("more", to="more").replace("\ndata:", f"\n{text}\ndata:")
    shop.put("templates/more.yaml", template)
    shop.release(driftDetection={"mode": "enabled"})
    sandbox.sync(shop.root)
    drift(sandbox)

    done = sandbox.sync(shop.root)

    assert done.code == 0, done.stderr
    settings = sandbox.all(CONFIG_MAP, "shop")
    assert get_text(settings["web"], "data", "to") == "one"
    assert "more" not in settings


@case(63)
def test_ignored_fields_are_no_drift(sandbox: PersistentSandbox, shop: ChartRepository) -> None:
    target: JsonObject = {"kind": "ConfigMap", "name": "web"}
    ignore: Json = [{"paths": ["/data/to"], "target": target}]
    shop.release(driftDetection={"mode": "warn", "ignore": ignore})
    sandbox.sync(shop.root)
    sandbox.patch(CONFIG_MAP, "shop", "web", {"data": {"to": "other"}})

    done = sandbox.sync(shop.root, "-o", "json")

    assert done.code == 0, done.stderr
    assert events_of(done, "object.drifted") == []


@case(63)
def test_an_upgrade_interrupted_by_a_kill_is_continued_with_any_drift_mode(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    sandbox.sync(shop.root)
    shop.put("templates/hook.yaml", hook("before", "pre-upgrade"))
    shop.release(values={"to": "two"})
    sandbox.killed(shop.root, turns=16)
    assert revision_statuses(sandbox)[-1][1] == "pending-upgrade"

    done = sandbox.sync(shop.root)

    assert done.code == 0, done.stderr
    assert revision_statuses(sandbox) == [(1, "superseded"), (2, "deployed")]
    assert get_text(sandbox.all(CONFIG_MAP, "shop")["web"], "data", "to") == "two"
