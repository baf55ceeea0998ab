"""Tests of a HelmRelease from outside: when they run, what is left of them, and whose they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_release_statuses import read_result, versions
from tests.support.persistent_sandbox import PersistentSandbox
from tests.support.recorded_wording import RecordedWording
from tests.support.releases import (
    CONFIG_MAP,
    ChartRepository,
    a_shop,
    hook,
    records,
    release_sandbox,
    revision_statuses,
)
from tests.support.tidegate_runs import tidegate
from tests.support.unit_conditions import condition, list_results
from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.times import MINUTE

ON: JsonObject = {"enable": True}


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PersistentSandbox:
    """A cluster that has the release, and in which the Job `broken` fails."""
    return release_sandbox(tmp_path, monkeypatch, with_unit_resource=True, failing=["broken"])


@pytest.fixture
def shop(tmp_path: Path) -> ChartRepository:
    made = a_shop(tmp_path / "repository")
    made.put("templates/tests/probe.yaml", hook("probe", "test"))
    made.release(test=ON)
    return made


def phases(sandbox: PersistentSandbox) -> dict[str, str]:
    """The hooks in the last record."""
    hooks = get_mappings(records(sandbox)[-1].content, "hooks")
    return {get_text(hook, "name"): get_text(hook, "last_run", "phase") for hook in hooks}


def test_a_release_is_deployed_before_it_is_tested_and_keeps_how_that_went(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    shop.put("templates/hook.yaml", hook("after", "post-install"))

    done = sandbox.sync(shop.root)

    assert done.code == 0, done.stderr
    record = "secrets/sh.helm.release.v1.web.v1"
    expected = {f"create {record}", f"change {record}", "create jobs/after", "create jobs/probe"}
    changes = [change for change in sandbox.changes() if change in expected]
    assert changes == [
        f"create {record}",
        "create jobs/after",
        f"change {record}",
        "create jobs/probe",
        f"change {record}",
    ]
    assert phases(sandbox) == {"after": "Succeeded", "probe": "Succeeded"}
    text = "Helm test succeeded for release shop/web.v1 with chart shop@1.0.0"
    tested = ("True", "TestSucceeded", f"{text}: 1 test hook completed successfully")
    assert condition(read_result(sandbox), "TestSuccess") == tested
    assert condition(read_result(sandbox), "Ready") == tested
    released = condition(read_result(sandbox), "Released")
    assert released is not None
    assert released[:2] == ("True", "InstallSucceeded")
    (snapshot,) = get_mappings(read_result(sandbox), "status", "history")
    assert get_text(snapshot, "testHooks", "probe", "phase") == "Succeeded"
    before = read_result(sandbox)

    again = sandbox.sync(shop.root)

    assert again.code == 0
    assert read_result(sandbox) == before
    assert sandbox.changes().count("create jobs/probe") == 1


def test_a_test_that_fails_fails_the_release_which_stays_deployed(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    shop.put("templates/tests/broken.yaml", hook("broken", "test", weight=-1))

    failed = sandbox.sync(shop.root)

    assert failed.code != 0
    assert revision_statuses(sandbox) == [(1, "deployed")]
    assert phases(sandbox) == {"broken": "Failed", "probe": ""}
    tested = condition(read_result(sandbox), "TestSuccess")
    assert tested is not None
    assert tested[:2] == ("False", "TestFailed")
    text = "Helm test failed for release shop/web.v1 with chart shop@1.0.0: Job shop/broken"
    assert tested[2].startswith(text)
    assert condition(read_result(sandbox), "Ready") == tested
    released = condition(read_result(sandbox), "Released")
    assert released is not None
    assert released[:2] == ("True", "InstallSucceeded")
    tried = "Failed to install after 1 attempt(s)"
    assert condition(read_result(sandbox), "Stalled") == ("True", "RetriesExceeded", tried)

    shop.drop("templates/tests/broken.yaml")
    fixed = sandbox.sync(shop.root)

    assert fixed.code == 0, fixed.stderr
    assert revision_statuses(sandbox) == [(1, "superseded"), (2, "deployed")]


def test_a_release_with_failed_tests_is_deployed_again_on_request(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    shop.put("templates/tests/broken.yaml", hook("broken", "test"))
    for _ in range(2):
        assert sandbox.sync(shop.root).code != 0

    assert revision_statuses(sandbox) == [(1, "superseded"), (2, "deployed")]


def test_an_upgrade_that_fails_its_tests_is_rolled_back_to_what_passed_its_own(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    sandbox.sync(shop.root)
    shop.put("templates/tests/broken.yaml", hook("broken", "test"))
    shop.release(values={"to": "two"}, upgrade={"remediation": {"retries": 1}})

    failed = sandbox.sync(shop.root)

    assert failed.code != 0
    assert revision_statuses(sandbox) == [
        *((item, "superseded") for item in range(1, 5)),
        (5, "deployed"),
    ]
    described = [get_text(record.content, "info", "description") for record in records(sandbox)]
    assert described == [
        "Install complete",
        "Upgrade complete",
        "Rollback to 1",
        "Upgrade complete",
        "Rollback to 3",
    ]
    assert get_text(sandbox.all(CONFIG_MAP, "shop")["web"], "data", "to") == "one"
    ready, tested = (
        condition(read_result(sandbox), "Ready"),
        condition(read_result(sandbox), "TestSuccess"),
    )
    assert ready is not None
    assert ready[:2] == ("False", "RollbackSucceeded")
    assert tested is not None
    assert tested[:2] == ("False", "TestFailed")
    assert versions(read_result(sandbox)) == [(5, "deployed"), (4, "superseded"), (3, "superseded")]


def test_an_install_with_failed_tests_is_uninstalled_if_the_release_says_so(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    shop.put("templates/tests/broken.yaml", hook("broken", "test"))
    shop.release(install={"remediation": {"remediateLastFailure": True}})

    assert sandbox.sync(shop.root).code != 0

    assert revision_statuses(sandbox) == []
    assert "web" not in sandbox.all(CONFIG_MAP, "shop")
    ready, tested = (
        condition(read_result(sandbox), "Ready"),
        condition(read_result(sandbox), "TestSuccess"),
    )
    assert ready is not None
    assert ready[:2] == ("False", "UninstallSucceeded")
    assert tested is not None
    assert tested[:2] == ("False", "TestFailed")


@pytest.mark.parametrize(
    "spec",
    [
        {"test": {"enable": True, "ignoreFailures": True}},
        {"test": ON, "install": {"remediation": {"ignoreTestFailures": True}}},
    ],
)
def test_ignored_test_failures_are_reported_and_fail_nothing(
    wording: RecordedWording, sandbox: PersistentSandbox, shop: ChartRepository, spec: JsonObject
) -> None:
    shop.put("templates/tests/broken.yaml", hook("broken", "test", weight=-1))
    shop.release(**spec)

    done = sandbox.sync(shop.root)

    assert done.code == 0, done.stderr
    wording(line for line in done.stdout.splitlines() if "Job shop/broken: Job Failed." in line)
    assert phases(sandbox) == {"broken": "Failed", "probe": ""}
    tested, ready = (
        condition(read_result(sandbox), "TestSuccess"),
        condition(read_result(sandbox), "Ready"),
    )
    assert tested is not None
    assert tested[:2] == ("False", "TestFailed")
    is_ignored = "ignoreFailures" in get_mapping(spec, "test")
    assert ready is not None
    assert ready[0] == ("True" if is_ignored else "False")
    assert ("web", "TestFailed") in list_results(sandbox, "shop")

    assert sandbox.sync(shop.root).code == 0
    assert revision_statuses(sandbox) == [(1, "deployed")]


def test_only_the_selected_tests_are_run(sandbox: PersistentSandbox, shop: ChartRepository) -> None:
    shop.put("templates/tests/broken.yaml", hook("broken", "test"))
    shop.put("templates/tests/more.yaml", hook("more", "test-success"))
    filters: Json = [{"name": "broken", "exclude": True}]
    shop.release(test={"enable": True, "filters": filters})
    assert sandbox.sync(shop.root).code == 0
    assert phases(sandbox) == {"broken": "", "more": "Succeeded", "probe": "Succeeded"}

    shop.release(values={"to": "two"}, test={"enable": True, "filters": [{"name": "probe"}]})
    assert sandbox.sync(shop.root).code == 0

    assert phases(sandbox) == {"broken": "", "more": "", "probe": "Succeeded"}


def test_a_deployed_release_is_tested_when_tests_are_enabled_later(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    shop.put("templates/hook.yaml", hook("before", "pre-install,pre-upgrade"))
    shop.release(test={"enable": False})
    sandbox.sync(shop.root)
    assert phases(sandbox) == {"before": "Succeeded", "probe": ""}
    assert condition(read_result(sandbox), "TestSuccess") is None

    shop.release(test=ON)
    done = sandbox.sync(shop.root)

    assert done.code == 0, done.stderr
    assert revision_statuses(sandbox) == [(1, "deployed")]
    assert phases(sandbox) == {"before": "Succeeded", "probe": "Succeeded"}
    assert sandbox.changes().count("create jobs/before") == 1


def test_a_release_without_tests_is_tested_all_the_same(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    shop.drop("templates/tests/probe.yaml")

    assert sandbox.sync(shop.root).code == 0

    tested = condition(read_result(sandbox), "TestSuccess")
    assert tested is not None
    assert tested[2].endswith(": no test hooks")


def test_tests_have_a_time_of_their_own(tmp_path: Path, shop: ChartRepository) -> None:
    shop.release(test={"enable": True, "timeout": "2m"}, timeout="7m")
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text("behaviours: [{effect: slow, by: 1h, when: {kind: Job, name: probe}}]\n")

    ran = tidegate("simulate", shop.root, "--engine", "flux", "-o", "json", "--scenario", scenario)

    events = [json.loads(line) for line in ran.stdout.splitlines()]
    began, failed = (
        next(
            event["at"]
            for event in events
            if event.get("event") == what and "test" in event["step"]
        )
        for what in ("step.gating", "step.failed")
    )
    assert 2 * MINUTE <= failed - began < 3 * MINUTE


@pytest.mark.parametrize("event", ["pre-install", "post-install"])
def test_a_hook_that_is_also_a_test_is_not_run_twice(
    sandbox: PersistentSandbox, shop: ChartRepository, event: str
) -> None:
    shop.put("templates/tests/probe.yaml", hook("probe", f"{event},test"))
    sandbox.sync(shop.root)
    made = sandbox.changes().count("create jobs/probe")

    again = sandbox.sync(shop.root)

    assert again.code == 0, again.stderr
    assert sandbox.changes().count("create jobs/probe") == made == 2
