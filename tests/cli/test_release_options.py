"""Options of a HelmRelease: timeouts, cleanup, and what an uninstall keeps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.persistent_sandbox import PersistentSandbox
from tests.support.recorded_wording import RecordedWording
from tests.support.releases import (
    CONFIG_MAP,
    ChartRepository,
    a_shop,
    config_map,
    hook,
    release_sandbox,
    revision_statuses,
)
from tests.support.repositories import deployment, namespace
from tests.support.tidegate_command import CommandResult
from tidegate.documents.dump import to_yaml
from tidegate.model.k8s.json_fields import get_text
from tidegate.model.k8s.objects import Json, Kind
from tidegate.model.times import MINUTE

JOB = Kind("batch", "v1", "Job")
REPLICA_SET = Kind("apps", "v1", "ReplicaSet")
CONTAINER: Json = {"name": "main", "image": "busybox"}
HANGS: Json = {"effect": "slow", "by": "9h", "when": {"kind": "Job", "name": "back"}}
NEVER: Json = {"effect": "never-ready", "when": {"kind": "Deployment", "name": "never"}}


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PersistentSandbox:
    """A cluster where the Job `migrate` fails, `back` takes hours, and `never` is never ready."""
    behaviours = [HANGS, NEVER]
    return release_sandbox(tmp_path, monkeypatch, failing=["migrate"], behaviours=behaviours)


@pytest.fixture
def shop(tmp_path: Path) -> ChartRepository:
    return a_shop(tmp_path / "repository")


@pytest.mark.parametrize("cleans", [True, False])
def test_objects_of_a_failed_upgrade_are_deleted_if_the_release_says_so(
    sandbox: PersistentSandbox, shop: ChartRepository, *, cleans: bool
) -> None:
    sandbox.sync(shop.root)
    shop.put("templates/more.yaml", config_map("more", to="more"))
    shop.put("templates/hook.yaml", hook("migrate", "post-upgrade"))
    shop.release(values={"to": "two"}, upgrade={"cleanupOnFail": cleans})

    failed = sandbox.sync(shop.root)

    assert failed.code != 0
    assert revision_statuses(sandbox) == [(1, "deployed"), (2, "failed")]
    settings = sandbox.all(CONFIG_MAP, "shop")
    assert get_text(settings["web"], "data", "to") == "two"
    assert ("more" in settings) is not cleans


LATE = "apiVersion: v1\nkind: Service\nmetadata: {name: late}\nspec: {ports: [{port: 80}]}\n"
TAKEN_BACK: Json = {"remediation": {"remediateLastFailure": True}}


@pytest.mark.parametrize("cleans", [True, False])
def test_objects_of_a_rejected_rollback_are_deleted_if_the_release_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shop: ChartRepository, *, cleans: bool
) -> None:
    """The upgrade takes two objects away; the second is refused when both are to come back."""
    (user_home := tmp_path / "home").mkdir()
    second: Json = {"verb": "apply", "kind": "Service", "name": "late"}
    fault: Json = {"effect": "conflict", "when": second, "every": 2}
    cluster = PersistentSandbox.make(
        user_home, monkeypatch, namespace("shop"), served=False, faults=[fault], failing=["migrate"]
    )
    shop.put("templates/old.yaml", config_map("old", to="old"))
    shop.put("templates/late.yaml", LATE)
    cluster.sync(shop.root)
    shop.drop("templates/old.yaml")
    shop.drop("templates/late.yaml")
    shop.put("templates/hook.yaml", hook("migrate", "post-upgrade"))
    shop.release(values={"to": "two"}, upgrade=TAKEN_BACK, rollback={"cleanupOnFail": cleans})

    failed = cluster.sync(shop.root)

    assert failed.code != 0
    assert "flux.unsupported" not in failed.stderr
    assert revision_statuses(cluster)[-1] == (3, "failed")
    settings = cluster.all(CONFIG_MAP, "shop")
    assert get_text(settings["web"], "data", "to") == "one"
    assert ("old" in settings) is not cleans


def test_objects_of_a_rollback_that_times_out_are_kept(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    """Helm cleans up after a rejected write, and not after a failed hook or wait."""
    shop.put("templates/old.yaml", config_map("old", to="old"))
    shop.put("templates/back.yaml", hook("back", "post-rollback"))
    sandbox.sync(shop.root)
    shop.drop("templates/old.yaml")
    shop.put("templates/hook.yaml", hook("migrate", "post-upgrade"))
    shop.release(upgrade=TAKEN_BACK, rollback={"cleanupOnFail": True})

    sandbox.sync(shop.root)

    assert revision_statuses(sandbox)[-1] == (3, "failed")
    assert "old" in sandbox.all(CONFIG_MAP, "shop")


def lasted(ran: CommandResult, word: str) -> int:
    """How long the first step waited that has this in its name, until it failed."""
    events = [
        item for item in map(json.loads, ran.stdout.splitlines()) if word in item.get("step", "")
    ]
    began, failed = (
        next(event["at"] for event in events if event["event"] == name)
        for name in ("step.applying", "step.failed")
    )
    return int(failed - began)


def test_a_rollback_has_a_time_of_its_own(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    shop.put("templates/back.yaml", hook("back", "post-rollback"))
    shop.release(timeout="30m", rollback={"timeout": "20m"})
    sandbox.sync(shop.root)
    shop.put("templates/hook.yaml", hook("migrate", "post-upgrade"))
    shop.release(upgrade={"remediation": {"remediateLastFailure": True}})

    failed = sandbox.sync(shop.root, "-o", "json")

    assert 20 * MINUTE <= lasted(failed, "post-rollback") < 21 * MINUTE
    assert revision_statuses(sandbox)[-1] == (3, "failed")


def test_an_uninstall_has_its_own_timeout_and_can_be_continued(
    wording: RecordedWording, sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    held = config_map("held").replace("name: held", "name: held\n  finalizers: [shop/held]")
    shop.put("templates/held.yaml", held)
    shop.release(timeout="30m", uninstall={"timeout": "20m"})
    sandbox.sync(shop.root)

    ended = sandbox.run("delete", shop.root, "--sandbox", "--yes", "-o", "json")

    assert ended.code != 0
    assert 20 * MINUTE <= lasted(ended, "delete") < 21 * MINUTE
    assert revision_statuses(sandbox) == [(1, "uninstalling")]

    sandbox.patch(CONFIG_MAP, "shop", "held", {"metadata": {"finalizers": None}})
    again = sandbox.run("delete", shop.root, "--sandbox", "--yes")

    assert again.code == 0, again.stderr
    assert revision_statuses(sandbox) == []
    wording(sandbox.run("delete", shop.root, "--sandbox", "--yes").stdout)


def test_a_repeated_failure_is_a_new_revision_even_without_writes(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    shop.put("templates/never.yaml", to_yaml(deployment("never")))
    assert sandbox.sync(shop.root).code != 0
    assert revision_statuses(sandbox) == [(1, "failed")]

    again = sandbox.sync(shop.root)

    assert again.code != 0
    assert revision_statuses(sandbox) == [(1, "failed"), (2, "failed")]


def test_hooks_that_have_run_stay_after_an_uninstall_as_helm_leaves_them(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    shop.put("templates/kept.yaml", hook("kept", "pre-install"))
    shop.put("templates/gone.yaml", hook("gone", "pre-delete", policy="hook-succeeded"))
    sandbox.sync(shop.root)

    ended = sandbox.run("delete", shop.root, "--sandbox", "--yes")

    assert ended.code == 0, ended.stderr
    assert {*sandbox.all(JOB, "shop")} == {"kept"}
    assert "web" not in sandbox.all(CONFIG_MAP, "shop")


@pytest.mark.parametrize("way", ["background", "foreground", "orphan"])
def test_owned_objects_follow_the_deletion_propagation_of_the_release(
    sandbox: PersistentSandbox, shop: ChartRepository, way: str
) -> None:
    labels: Json = {"app": "web"}
    pod: Json = {"metadata": {"labels": labels}, "spec": {"containers": [CONTAINER]}}
    spec: Json = {"selector": {"matchLabels": labels}, "template": pod}
    metadata: Json = {"name": "web"}
    body: Json = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
    shop.put("templates/deployment.yaml", to_yaml(body))
    shop.release(uninstall={"deletionPropagation": way})
    sandbox.sync(shop.root)
    assert len(sandbox.all(REPLICA_SET, "shop")) == 1

    ended = sandbox.run("delete", shop.root, "--sandbox", "--yes")

    assert ended.code == 0, ended.stderr
    deleted = any(change.startswith("delete replicasets/web") for change in sandbox.changes())
    left = len(sandbox.all(REPLICA_SET, "shop"))
    assert (deleted, left) == ((False, 1) if way == "orphan" else (True, 0))
