"""Options of `tidegate sync` that choose what is written, from outside."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.support.recorded_wording import RecordedWording
from tests.support.tidegate_runs import tidegate

SETTING = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n"
HOOK = """\
apiVersion: batch/v1
kind: Job
metadata: {name: check, annotations: {argocd.argoproj.io/hook: PostSync}}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: "busybox:1"}]
"""
STRICT = ("--sync-option", "FailOnSharedResource=true")
SCENARIO = """\
given:
  objects:
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: two, namespace: default, annotations: {tidegate.dev/unit: %s}}
"""


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return tidegate("sync", *arguments, "--sandbox")


def written(*arguments: str | Path) -> list[str]:
    """The objects that a rollout wrote, in their order."""
    ran = run(*arguments, "-o", "json")
    assert (ran.returncode, ran.stderr) == (0, "")
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    matches = [event for event in events if event["event"] == "object.written"]
    return [f"{item['kind']} {item['name']}" for item in matches]


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    texts = (SETTING % "one", SETTING % "two", HOOK)
    (folder / "objects.yaml").write_text("---\n".join(texts))
    return folder


def scenario_with(shop: Path, unit: str) -> tuple[str, Path]:
    path = shop.parent / "scenario.yaml"
    path.write_text(SCENARIO % unit)
    return ("--scenario", path)


def test_a_partial_sync_writes_only_the_selected_resources_and_no_hook(shop: Path) -> None:
    everything = written(shop)
    item = written(shop, "--resource", ":ConfigMap:default/two")
    both = written(shop, "--resource", ":ConfigMap:two", "--resource", ":ConfigMap:one")
    others = written(shop, "--resource", "!:ConfigMap:two")

    assert everything == ["ConfigMap one", "ConfigMap two", "Job check"]
    assert item == ["ConfigMap two"]
    assert both == ["ConfigMap one", "ConfigMap two"]
    assert others == ["ConfigMap one"]


def test_a_dry_run_shows_only_the_resources_that_are_named(
    wording: RecordedWording, shop: Path
) -> None:
    ran = run(shop, "--resource", ":ConfigMap:two", "--dry-run")

    wording(ran.stdout.splitlines()[-1])


@pytest.mark.parametrize("named", [":ConfigMap:three", "batch:Job:check"])
def test_a_resource_that_is_not_there_is_an_error(shop: Path, named: str) -> None:
    ran = run(shop, "--resource", named)

    assert (ran.returncode, ran.stdout) == (3, "")
    assert ran.stderr.startswith("error[plan.selection]")


@pytest.mark.parametrize("named", ["ConfigMap", ":ConfigMap:", "!two"])
def test_a_resource_that_cannot_be_read_is_a_mistake_in_the_command(shop: Path, named: str) -> None:
    ran = run(shop, "--resource", named)

    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("error[usage.selection]")


def test_a_part_of_a_unit_is_not_pruned(shop: Path) -> None:
    ran = run(shop, "--resource", ":ConfigMap:two", "--prune")

    assert (ran.returncode, ran.stdout) == (3, "")
    assert ran.stderr.startswith("error[plan.partial]")


def test_create_namespace_creates_the_namespace(shop: Path) -> None:
    without = run(shop, "--namespace", "web", "--empty-cluster")
    objects = written(shop, "--namespace", "web", "--sync-option", "CreateNamespace=true")

    assert without.returncode == 3
    assert "namespace" in without.stdout
    assert objects == ["Namespace web", "ConfigMap one", "ConfigMap two", "Job check"]


def test_an_object_of_another_unit_is_rejected_before_the_first_write(shop: Path) -> None:
    theirs = scenario_with(shop, "default/other")

    refused = run(shop, *theirs, *STRICT)
    taken = run(shop, *theirs)

    assert (refused.returncode, refused.stdout) == (3, "")
    assert refused.stderr.startswith("error[plan.shared]: ")
    assert "ConfigMap default/two" in refused.stderr
    assert "`default/other`" in refused.stderr
    assert "at objects.yaml:5:1\n" in refused.stderr
    assert taken.returncode == 0


def test_objects_of_the_same_unit_are_not_shared(shop: Path) -> None:
    ours = scenario_with(shop, "default/shop")

    assert "ConfigMap one" in written(shop, *ours, *STRICT)


def test_unselected_objects_may_be_shared(shop: Path) -> None:
    theirs = scenario_with(shop, "default/other")

    objects = written(shop, *theirs, *STRICT, "--resource", ":ConfigMap:one")

    assert objects == ["ConfigMap one"]


@pytest.mark.parametrize("verb", ["sync", "plan", "simulate", "status", "delete"])
def test_every_command_suggests_valid_sync_options(
    wording: RecordedWording, shop: Path, verb: str
) -> None:
    ran = tidegate(verb, shop, "--sync-option", "CreateNamespaces=true")

    assert (ran.returncode, ran.stdout) == (2, "")
    wording(ran.stderr.splitlines()[-1])


def test_an_invalid_value_of_an_option_is_reported_with_the_valid_ones(
    wording: RecordedWording, shop: Path
) -> None:
    ran = run(shop, "--sync-option", "Prune=maybe")

    assert ran.returncode == 2
    wording(ran.stderr.splitlines()[-1])


def test_an_object_without_preflight_is_rejected_when_it_is_written(
    wording: RecordedWording, shop: Path
) -> None:
    wrong = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: x}\n"
    (shop / "web.yaml").write_text(wrong)

    checked = run(shop)
    unchecked = run(shop, "--sync-option", "Validate=false")

    assert (checked.returncode, unchecked.returncode) == (3, 4)
    wording(checked.stdout)
    assert any(
        "wave 0" in line and "Deployment default/web" in line and "spec.replicas" in line
        for line in unchecked.stdout.splitlines()
    )


@pytest.mark.parametrize(
    "rule",
    [
        "jsonPointers: [/data/size]",
        "jqPathExpressions: [.data.size]",
        "jqPathExpressions: ['.. | select(.size?) | .size', '.none[]']",
        """jqPathExpressions: ['.data[] | select(test("^[0-9]+$"))']""",
    ],
)
def test_a_replacement_shows_what_it_takes_away_unless_that_is_ignored(
    shop: Path, rule: str
) -> None:
    replaces = ("--sync-option", "Replace=true", "--dry-run")
    theirs = scenario_with(shop, "default/shop")
    theirs[1].write_text(theirs[1].read_text() + "    data: {size: '1'}\n")
    ignored = shop.parent / "ignored.yaml"
    ignored.write_text(f"- kind: ConfigMap\n  {rule}\n")

    shown = run(shop, *theirs, *replaces)
    unlike = run(shop, *theirs, *replaces, "--ignore-differences", ignored)

    assert "replace   ConfigMap default/two" in shown.stdout
    assert "data.size: 1 → -" in shown.stdout
    assert "keep      ConfigMap default/two" in unlike.stdout


@pytest.mark.parametrize("verb", ["plan", "sync", "status"])
def test_a_mistake_in_a_file_of_differences_is_reported_with_its_location(
    shop: Path, verb: str
) -> None:
    ignored = shop.parent / "ignored.yaml"
    ignored.write_text("- kind: ConfigMap\n  jqPathExpressions:\n  - .data\n  - .data[\n")

    ran = tidegate(verb, shop, "--ignore-differences", ignored)

    assert (ran.returncode, ran.stdout) == (3, "")
    assert ran.stderr.startswith("error[dialect.jq.expression]: ")
    assert "`.data[`" in ran.stderr
    assert "syntax error, unexpected end of file" in ran.stderr
    assert f"at {ignored}:4:" in ran.stderr


def test_an_expression_that_does_not_end_is_refused_before_the_first_write(
    wording: RecordedWording, shop: Path
) -> None:
    theirs = scenario_with(shop, "default/shop")
    theirs[1].write_text(theirs[1].read_text() + "    data: {password: hunter2}\n")
    ignored = shop.parent / "ignored.yaml"
    ignored.write_text(
        "- kind: ConfigMap\n"
        "  jqPathExpressions:\n"
        "  - .data.password | error\n"
        "  - if .data then stderr | repeat(empty) else .data end\n"
    )

    ran = run(shop, *theirs, "--ignore-differences", ignored)

    assert ran.returncode == 3
    wording(ran.stdout)
    assert ran.stderr.startswith("error[dialect.jq.timeout]: ")
    assert "`if .data then stderr | repeat(empty)" in ran.stderr
    assert "at objects.yaml:5:1\n" in ran.stderr
    assert "hunter2" not in ran.stderr
