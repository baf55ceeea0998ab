"""What a HelmRelease says of itself on a real API server, and what helm 3 and helm 4 say of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from plane import ControlPlane
from tests.e2e.output import events_of
from tests.e2e.release_harbour import FAILS, VERSIONS, ReleaseHarbour
from tests.support.releases import config_map, hook
from tests.support.repositories import deployment
from tests.support.tidegate_command import Ran
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
def harbour(served_plane: ControlPlane, tmp_path: Path) -> ReleaseHarbour:
    made = ReleaseHarbour.open(served_plane, tmp_path)
    made.give_own()
    return made


def reasons(harbour: ReleaseHarbour) -> dict[str, tuple[str, str]]:
    """By condition, its status and its reason."""
    mappings = get_mappings(harbour.own(), "status", "conditions")
    return {
        get_text(item, "type"): (get_text(item, "status"), get_text(item, "reason"))
        for item in mappings
    }


def snapshots(harbour: ReleaseHarbour) -> list[tuple[Json, str]]:
    history = get_mappings(harbour.own(), "status", "history")
    return [(item["version"], get_text(item, "status")) for item in history]


def phases(harbour: ReleaseHarbour) -> dict[str, str]:
    """How the hooks of the last revision went, in the eyes of both."""
    three, four = (harbour.phases(version) for version in VERSIONS)
    assert three == four
    return four


async def test_a_release_is_tested_when_it_is_deployed_and_helm_may_test_it_again(
    harbour: ReleaseHarbour,
) -> None:
    harbour.shop.put("templates/tests/probe.yaml", hook("probe", "test"))
    harbour.shop.release(test=TESTED)

    await harbour.tidegate()

    assert harbour.stands() == [(1, "deployed")]
    assert phases(harbour) == {"probe": "Succeeded"}
    text = f"Helm test succeeded for release {harbour.home}/web.v1 with chart shop@1.0.0"
    tested = ("True", "TestSucceeded", f"{text}: 1 test hook completed successfully")
    unit_resource, job = harbour.own(), harbour.body("job", "probe")
    assert condition(unit_resource, "TestSuccess") == condition(unit_resource, "Ready") == tested
    assert reasons(harbour)["Released"] == ("True", "InstallSucceeded")
    (snapshot,) = get_mappings(unit_resource, "status", "history")
    assert get_text(snapshot, "testHooks", "probe", "phase") == "Succeeded"

    again = await harbour.tidegate("sync", "-o", "json")
    (end,) = events_of(again.stdout, "rollout.finished")
    assert end["reason"] == "passed"
    assert len(events_of(again.stdout, "object.unchanged")) == 1
    for change in CHANGES:
        assert events_of(again.stdout, change) == []
    assert harbour.own() == unit_resource
    assert harbour.body("job", "probe") == job

    for version in VERSIONS:
        harbour.helm("test", "web", version=version)
        await harbour.tidegate()
        assert harbour.stands() == [(1, "deployed")]


async def test_tests_that_fail_are_told_ignored_or_taken_back_as_the_release_says(
    harbour: ReleaseHarbour,
) -> None:
    harbour.shop.release(test=TESTED)
    await harbour.tidegate()
    harbour.shop.put("templates/tests/broken.yaml", hook("broken", "test", weight=-1, pod=FAILS))
    harbour.shop.put("templates/tests/probe.yaml", hook("probe", "test"))

    await harbour.tidegate(fails=True)

    assert harbour.stands() == [(1, "superseded"), (2, "deployed")]
    assert phases(harbour) == {"broken": "Failed", "probe": ""}
    failed = ("False", "TestFailed")
    stalled = ("True", "RetriesExceeded")
    released = ("True", "UpgradeSucceeded")
    assert reasons(harbour) == {
        "Ready": failed,
        "Released": released,
        "Stalled": stalled,
        "TestSuccess": failed,
    }

    harbour.shop.release(test={"enable": True, "ignoreFailures": True})
    await harbour.tidegate()

    assert harbour.stands() == [(1, "superseded"), (2, "deployed")]
    assert reasons(harbour) == {"Ready": released, "Released": released, "TestSuccess": failed}

    remediation: Json = {"retries": 1}
    spec: Mapping[str, Json] = {"test": TESTED, "upgrade": {"remediation": remediation}}
    harbour.shop.release(values={"to": "two"}, maxHistory=0, **spec)
    await harbour.tidegate(fails=True)

    assert [item[2] for item in harbour.history()][2:] == [
        "Upgrade complete",
        "Rollback to 1",
        "Upgrade complete",
        "Rollback to 4",
    ]
    assert harbour.stands()[-2:] == [(5, "superseded"), (6, "deployed")]
    assert harbour.setting() == {"to": "one"}
    back = ("False", "RollbackSucceeded")
    assert (reasons(harbour)["Ready"], reasons(harbour)["TestSuccess"]) == (back, failed)
    assert condition(harbour.own(), "Stalled") == (*stalled, "Failed to upgrade after 2 attempt(s)")
    assert snapshots(harbour) == [(6, "deployed"), (5, "superseded"), (4, "superseded")]


def break_upgrade(harbour: ReleaseHarbour, strategy: str) -> None:
    """What is tried next fails behind its last object, be it an install or an upgrade."""
    remediation: Json = {"retries": 2, "strategy": strategy}
    last: Json = {"remediation": {"remediateLastFailure": True}}
    harbour.shop.put("templates/more.yaml", config_map("more", to="more"))
    harbour.shop.put("templates/never.yaml", hook("never", "post-install,post-upgrade", pod=FAILS))
    spec: Mapping[str, Json] = {"upgrade": {"remediation": remediation}, "install": last}
    harbour.shop.release(values={"to": "two"}, maxHistory=0, **spec)


async def test_an_upgrade_that_fails_thrice_ends_on_the_last_good_revision(
    harbour: ReleaseHarbour,
) -> None:
    await harbour.tidegate()
    break_upgrade(harbour, "rollback")

    await harbour.tidegate(fails=True)

    good = [(item, "superseded") for item in (1, 3, 5)]
    failed = [(item, "failed") for item in (2, 4, 6)]
    assert harbour.stands() == [*sorted((*good, *failed)), (7, "deployed")]
    assert harbour.history()[-1][2] == "Rollback to 5"
    assert harbour.setting() == {"to": "one"}
    assert harbour.names() == {"web"}
    unit_resource = harbour.own()
    text = f"Helm rollback to previous release {harbour.home}/web.v5 with chart shop@1.0.0"
    assert condition(unit_resource, "Ready") == ("False", "RollbackSucceeded", f"{text} succeeded")
    assert condition(unit_resource, "Remediated") == (
        "True",
        "RollbackSucceeded",
        f"{text} succeeded",
    )
    released = condition(unit_resource, "Released")
    assert released is not None
    assert released[:2] == ("False", "UpgradeFailed")
    why = f"failed for release {harbour.home}/web with chart shop@1.0.0: Job {harbour.home}/never"
    assert released[2].startswith(f"Helm upgrade {why}")
    tried = "Failed to upgrade after 3 attempt(s)"
    assert condition(unit_resource, "Stalled") == ("True", "RetriesExceeded", tried)
    assert snapshots(harbour) == [(7, "deployed"), (6, "failed"), (5, "superseded")]


async def test_an_upgrade_that_fails_can_be_uninstalled_and_what_is_tried_then_is_an_install(
    harbour: ReleaseHarbour,
) -> None:
    await harbour.tidegate()
    break_upgrade(harbour, "uninstall")

    await harbour.tidegate(fails=True)

    assert harbour.records() == []
    assert harbour.names() == set()
    unit_resource = harbour.own()
    text = f"Helm uninstall remediation for release {harbour.home}/web succeeded"
    assert condition(unit_resource, "Ready") == ("False", "UninstallSucceeded", text)
    assert reasons(harbour)["Released"] == ("False", "InstallFailed")
    assert reasons(harbour)["Stalled"] == ("True", "RetriesExceeded")

    harbour.shop.drop("templates/never.yaml")
    await harbour.tidegate()

    assert harbour.stands() == [(1, "deployed")]
    assert harbour.names() == {"web", "more"}
    assert reasons(harbour) == dict.fromkeys(("Ready", "Released"), ("True", "InstallSucceeded"))


def is_observed(resource: JsonObject) -> bool:
    """Whether the status speaks of what is asked for now."""
    return get_value(resource, "status", "observedGeneration") == get_value(
        resource, "metadata", "generation"
    )


def put_deployment(harbour: ReleaseHarbour, outcome: str = "") -> None:
    body = deployment("slow", outcome=outcome)
    spec: Json = {**get_mapping(body, "spec"), "progressDeadlineSeconds": ENDLESS}
    harbour.shop.put("templates/slow.yaml", to_yaml({**body, "spec": spec}))


def lasted(ran: Ran, stage: str = "objects") -> list[int]:
    """For how many seconds a stage was waited for, in each try, until that failed."""
    messages = [json.loads(line) for line in ran.stdout.splitlines()]
    own_items = [item for item in messages if f"web/{stage}" in item.get("step", "")]
    begun = [item["at"] for item in own_items if item["event"] == "step.gating"]
    ended = [
        item["at"] for item in own_items if item["event"] in {"retry.scheduled", "step.failed"}
    ]
    return [int(end - begin) // SECOND for begin, end in zip(begun, ended, strict=True)]


async def test_what_is_never_ready_fails_in_the_time_of_its_action_and_is_taken_back(
    harbour: ReleaseHarbour,
) -> None:
    put_deployment(harbour, "never")
    install: Json = {"timeout": "3s", "remediation": {"retries": 1}}
    harbour.shop.release(timeout="30m", install=install, maxHistory=0)

    failed = await harbour.tidegate("sync", "-o", "json", fails=True)

    assert [3 <= item < SOON for item in lasted(failed)] == [True, True]
    assert harbour.stands() == [(1, "failed")]
    name = f"Deployment {harbour.home}/slow"
    why = harbour.history()[0][2].removeprefix('Release "web" failed: ')
    assert why.startswith(name)
    unit_resource = harbour.own()
    released = condition(unit_resource, "Released")
    assert released is not None
    assert released[:2] == ("False", "InstallFailed")
    message = f"Helm install failed for release {harbour.home}/web with chart shop@1.0.0: {why}"
    assert released[2].startswith(message)
    assert condition(unit_resource, "Ready") == released
    tried = "Failed to install after 2 attempt(s)"
    assert condition(unit_resource, "Stalled") == ("True", "RetriesExceeded", tried)
    assert get_value(unit_resource, "status", "installFailures") == 2
    assert is_observed(unit_resource)

    put_deployment(harbour)
    await harbour.tidegate()
    put_deployment(harbour, "never")
    harbour.shop.release(upgrade={"timeout": "2s", "remediation": {"remediateLastFailure": True}})
    failed = await harbour.tidegate("sync", "-o", "json", fails=True)

    assert [2 <= item < SOON for item in lasted(failed)] == [True]
    assert harbour.stands() == [(1, "failed"), (2, "superseded"), (3, "failed"), (4, "deployed")]
    assert reasons(harbour)["Ready"] == ("False", "RollbackSucceeded")
    assert reasons(harbour)["Released"] == ("False", "UpgradeFailed")
    assert get_value(harbour.body("deployment", "slow"), "status", "readyReplicas") == 1


async def test_tests_and_ends_have_times_of_their_own_and_an_end_is_gone_on_with(
    harbour: ReleaseHarbour,
) -> None:
    held = config_map("held").replace("name: held", "name: held\n  finalizers: [shop/held]")
    harbour.shop.put("templates/held.yaml", held)
    harbour.shop.put("templates/tests/hangs.yaml", hook("hangs", "test", pod=HANGS))
    tests: Json = {"enable": True, "timeout": "2s"}
    harbour.shop.release(timeout="30m", test=tests, uninstall={"timeout": "2s"})

    failed = await harbour.tidegate("sync", "-o", "json", fails=True)

    assert [2 <= item < SOON for item in lasted(failed, "test")] == [True]
    assert harbour.stands() == [(1, "deployed")]
    assert phases(harbour) == {"hangs": "Failed"}
    assert reasons(harbour)["Ready"] == ("False", "TestFailed")

    failed = await harbour.tidegate("delete", "-o", "json", fails=True)
    assert [2 <= item < SOON for item in lasted(failed, "delete")] == [True]
    assert harbour.stands() == [(1, "uninstalling")]
    harbour.kubectl("patch", "configmap", "held", "--type=merge", "-p", UNHELD)
    await harbour.tidegate("delete")

    assert harbour.records() == []
    assert harbour.names() == set()
