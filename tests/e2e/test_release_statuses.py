"""The status of a HelmRelease on a real API server, and the output of helm 3 and helm 4."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from plane import ControlPlane
from tests.e2e.output import events_of
from tests.e2e.release_namespace import FAILS, VERSIONS, ReleaseNamespace
from tests.support.releases import config_map, hook
from tests.support.repositories import deployment
from tests.support.tidegate_command import CommandResult
from tests.support.unit_conditions import condition
from tidegate.documents.dump import to_yaml
from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text, get_value
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.times import SECOND

pytestmark = [pytest.mark.kube, pytest.mark.timeout(400)]

TESTED: Json = {"enable": True}
CHANGES = ("object.written", "object.pruned", "object.adopted", "hook.finished", "hook.deleted")
HANGS = {"test.tidegate.dev/outcome": "hang"}
UNHELD = '{"metadata": {"finalizers": null}}'
ENDLESS = 2**31 - 1
"""The deadline of a Deployment that has none of its own."""
SOON = 30
"""Seconds: far less than what is not said of an action has."""


@pytest.fixture
def stage(served_plane: ControlPlane, tmp_path: Path) -> ReleaseNamespace:
    made = ReleaseNamespace.open(served_plane, tmp_path)
    made.apply_release()
    return made


def reasons(stage: ReleaseNamespace) -> dict[str, tuple[str, str]]:
    """By condition, its status and its reason."""
    mappings = get_mappings(stage.unit_resource(), "status", "conditions")
    return {
        get_text(item, "type"): (get_text(item, "status"), get_text(item, "reason"))
        for item in mappings
    }


def snapshots(stage: ReleaseNamespace) -> list[tuple[Json, str]]:
    history = get_mappings(stage.unit_resource(), "status", "history")
    return [(item["version"], get_text(item, "status")) for item in history]


def phases(stage: ReleaseNamespace) -> dict[str, str]:
    """How the hooks of the last revision went, in the eyes of both."""
    three, four = (stage.phases(version) for version in VERSIONS)
    assert three == four
    return four


async def test_a_deployed_release_is_tested_and_helm_test_still_works(
    stage: ReleaseNamespace,
) -> None:
    stage.shop.put("templates/tests/probe.yaml", hook("probe", "test"))
    stage.shop.release(test=TESTED)

    await stage.tidegate()

    assert stage.revision_statuses() == [(1, "deployed")]
    assert phases(stage) == {"probe": "Succeeded"}
    text = f"Helm test succeeded for release {stage.namespace}/web.v1 with chart shop@1.0.0"
    tested = ("True", "TestSucceeded", f"{text}: 1 test hook completed successfully")
    unit_resource, job = stage.unit_resource(), stage.body("job", "probe")
    assert condition(unit_resource, "TestSuccess") == condition(unit_resource, "Ready") == tested
    assert reasons(stage)["Released"] == ("True", "InstallSucceeded")
    (snapshot,) = get_mappings(unit_resource, "status", "history")
    assert get_text(snapshot, "testHooks", "probe", "phase") == "Succeeded"

    again = await stage.tidegate("sync", "-o", "json")
    (end,) = events_of(again.stdout, "rollout.finished")
    assert end["reason"] == "passed"
    assert len(events_of(again.stdout, "object.unchanged")) == 1
    for change in CHANGES:
        assert events_of(again.stdout, change) == []
    assert stage.unit_resource() == unit_resource
    assert stage.body("job", "probe") == job

    for version in VERSIONS:
        stage.helm("test", "web", version=version)
        await stage.tidegate()
        assert stage.revision_statuses() == [(1, "deployed")]


async def test_failed_tests_are_reported_ignored_or_remediated(
    stage: ReleaseNamespace,
) -> None:
    stage.shop.release(test=TESTED)
    await stage.tidegate()
    stage.shop.put("templates/tests/broken.yaml", hook("broken", "test", weight=-1, pod=FAILS))
    stage.shop.put("templates/tests/probe.yaml", hook("probe", "test"))

    await stage.tidegate(fails=True)

    assert stage.revision_statuses() == [(1, "superseded"), (2, "deployed")]
    assert phases(stage) == {"broken": "Failed", "probe": ""}
    failed = ("False", "TestFailed")
    stalled = ("True", "RetriesExceeded")
    released = ("True", "UpgradeSucceeded")
    assert reasons(stage) == {
        "Ready": failed,
        "Released": released,
        "Stalled": stalled,
        "TestSuccess": failed,
    }

    stage.shop.release(test={"enable": True, "ignoreFailures": True})
    await stage.tidegate()

    assert stage.revision_statuses() == [(1, "superseded"), (2, "deployed")]
    assert reasons(stage) == {"Ready": released, "Released": released, "TestSuccess": failed}

    remediation: Json = {"retries": 1}
    spec: Mapping[str, Json] = {"test": TESTED, "upgrade": {"remediation": remediation}}
    stage.shop.release(values={"to": "two"}, maxHistory=0, **spec)
    await stage.tidegate(fails=True)

    assert [item[2] for item in stage.history()][2:] == [
        "Upgrade complete",
        "Rollback to 1",
        "Upgrade complete",
        "Rollback to 4",
    ]
    assert stage.revision_statuses()[-2:] == [(5, "superseded"), (6, "deployed")]
    assert stage.setting() == {"to": "one"}
    back = ("False", "RollbackSucceeded")
    assert (reasons(stage)["Ready"], reasons(stage)["TestSuccess"]) == (back, failed)
    assert condition(stage.unit_resource(), "Stalled") == (
        *stalled,
        "Failed to upgrade after 2 attempt(s)",
    )
    assert snapshots(stage) == [(6, "deployed"), (5, "superseded"), (4, "superseded")]


def break_upgrade(stage: ReleaseNamespace, strategy: str) -> None:
    """Make the next install or upgrade fail after its last object."""
    remediation: Json = {"retries": 2, "strategy": strategy}
    last: Json = {"remediation": {"remediateLastFailure": True}}
    stage.shop.put("templates/more.yaml", config_map("more", to="more"))
    stage.shop.put("templates/never.yaml", hook("never", "post-install,post-upgrade", pod=FAILS))
    spec: Mapping[str, Json] = {"upgrade": {"remediation": remediation}, "install": last}
    stage.shop.release(values={"to": "two"}, maxHistory=0, **spec)


async def test_an_upgrade_that_fails_three_times_is_rolled_back(
    stage: ReleaseNamespace,
) -> None:
    await stage.tidegate()
    break_upgrade(stage, "rollback")

    await stage.tidegate(fails=True)

    good = [(item, "superseded") for item in (1, 3, 5)]
    failed = [(item, "failed") for item in (2, 4, 6)]
    assert stage.revision_statuses() == [*sorted((*good, *failed)), (7, "deployed")]
    assert stage.history()[-1][2] == "Rollback to 5"
    assert stage.setting() == {"to": "one"}
    assert stage.names() == {"web"}
    unit_resource = stage.unit_resource()
    text = f"Helm rollback to previous release {stage.namespace}/web.v5 with chart shop@1.0.0"
    assert condition(unit_resource, "Ready") == ("False", "RollbackSucceeded", f"{text} succeeded")
    assert condition(unit_resource, "Remediated") == (
        "True",
        "RollbackSucceeded",
        f"{text} succeeded",
    )
    released = condition(unit_resource, "Released")
    assert released is not None
    assert released[:2] == ("False", "UpgradeFailed")
    space = stage.namespace
    why = f"failed for release {space}/web with chart shop@1.0.0: Job {space}/never"
    assert released[2].startswith(f"Helm upgrade {why}")
    tried = "Failed to upgrade after 3 attempt(s)"
    assert condition(unit_resource, "Stalled") == ("True", "RetriesExceeded", tried)
    assert snapshots(stage) == [(7, "deployed"), (6, "failed"), (5, "superseded")]


async def test_a_failed_upgrade_with_the_uninstall_strategy_is_retried_as_an_install(
    stage: ReleaseNamespace,
) -> None:
    await stage.tidegate()
    break_upgrade(stage, "uninstall")

    await stage.tidegate(fails=True)

    assert stage.records() == []
    assert stage.names() == set()
    unit_resource = stage.unit_resource()
    text = f"Helm uninstall remediation for release {stage.namespace}/web succeeded"
    assert condition(unit_resource, "Ready") == ("False", "UninstallSucceeded", text)
    assert reasons(stage)["Released"] == ("False", "InstallFailed")
    assert reasons(stage)["Stalled"] == ("True", "RetriesExceeded")

    stage.shop.drop("templates/never.yaml")
    await stage.tidegate()

    assert stage.revision_statuses() == [(1, "deployed")]
    assert stage.names() == {"web", "more"}
    assert reasons(stage) == dict.fromkeys(("Ready", "Released"), ("True", "InstallSucceeded"))


def is_observed(resource: JsonObject) -> bool:
    """Whether the status is that of the current generation."""
    return get_value(resource, "status", "observedGeneration") == get_value(
        resource, "metadata", "generation"
    )


def put_deployment(stage: ReleaseNamespace, outcome: str = "") -> None:
    body = deployment("slow", outcome=outcome)
    spec: Json = {**get_mapping(body, "spec"), "progressDeadlineSeconds": ENDLESS}
    stage.shop.put("templates/slow.yaml", to_yaml({**body, "spec": spec}))


def lasted(ran: CommandResult, stage: str = "objects") -> list[int]:
    """For how many seconds a stage was waited for, in each try, until that failed."""
    messages = [json.loads(line) for line in ran.stdout.splitlines()]
    own_items = [item for item in messages if f"web/{stage}" in item.get("step", "")]
    begun = [item["at"] for item in own_items if item["event"] == "step.gating"]
    ended = [
        item["at"] for item in own_items if item["event"] in {"retry.scheduled", "step.failed"}
    ]
    return [int(end - start) // SECOND for start, end in zip(begun, ended, strict=True)]


async def test_an_object_that_is_never_ready_fails_after_the_timeout_of_its_action(
    stage: ReleaseNamespace,
) -> None:
    put_deployment(stage, "never")
    install: Json = {"timeout": "3s", "remediation": {"retries": 1}}
    stage.shop.release(timeout="30m", install=install, maxHistory=0)

    failed = await stage.tidegate("sync", "-o", "json", fails=True)

    assert [3 <= item < SOON for item in lasted(failed)] == [True, True]
    assert stage.revision_statuses() == [(1, "failed")]
    name = f"Deployment {stage.namespace}/slow"
    why = stage.history()[0][2].removeprefix('Release "web" failed: ')
    assert why.startswith(name)
    unit_resource = stage.unit_resource()
    released = condition(unit_resource, "Released")
    assert released is not None
    assert released[:2] == ("False", "InstallFailed")
    message = f"Helm install failed for release {stage.namespace}/web with chart shop@1.0.0: {why}"
    assert released[2].startswith(message)
    assert condition(unit_resource, "Ready") == released
    tried = "Failed to install after 2 attempt(s)"
    assert condition(unit_resource, "Stalled") == ("True", "RetriesExceeded", tried)
    assert get_value(unit_resource, "status", "installFailures") == 2
    assert is_observed(unit_resource)

    put_deployment(stage)
    await stage.tidegate()
    put_deployment(stage, "never")
    stage.shop.release(upgrade={"timeout": "2s", "remediation": {"remediateLastFailure": True}})
    failed = await stage.tidegate("sync", "-o", "json", fails=True)

    assert [2 <= item < SOON for item in lasted(failed)] == [True]
    assert stage.revision_statuses() == [
        (1, "failed"),
        (2, "superseded"),
        (3, "failed"),
        (4, "deployed"),
    ]
    assert reasons(stage)["Ready"] == ("False", "RollbackSucceeded")
    assert reasons(stage)["Released"] == ("False", "UpgradeFailed")
    assert get_value(stage.body("deployment", "slow"), "status", "readyReplicas") == 1


async def test_tests_and_uninstalls_have_their_own_timeouts(
    stage: ReleaseNamespace,
) -> None:
    held = config_map("held").replace("name: held", "name: held\n  finalizers: [shop/held]")
    stage.shop.put("templates/held.yaml", held)
    stage.shop.put("templates/tests/hangs.yaml", hook("hangs", "test", pod=HANGS))
    tests: Json = {"enable": True, "timeout": "2s"}
    stage.shop.release(timeout="30m", test=tests, uninstall={"timeout": "2s"})

    failed = await stage.tidegate("sync", "-o", "json", fails=True)

    assert [2 <= item < SOON for item in lasted(failed, "test")] == [True]
    assert stage.revision_statuses() == [(1, "deployed")]
    assert phases(stage) == {"hangs": "Failed"}
    assert reasons(stage)["Ready"] == ("False", "TestFailed")

    failed = await stage.tidegate("delete", "-o", "json", fails=True)
    assert [2 <= item < SOON for item in lasted(failed, "delete")] == [True]
    assert stage.revision_statuses() == [(1, "uninstalling")]
    stage.kubectl("patch", "configmap", "held", "--type=merge", "-p", UNHELD)
    await stage.tidegate("delete")

    assert stage.records() == []
    assert stage.names() == set()
