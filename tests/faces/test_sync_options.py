"""Options of `tidegate sync` that choose what is written, from outside."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

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
SCENARIO = """\
given:
  objects:
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: two, namespace: default, annotations: {tidegate.dev/unit: %s}}
"""


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tidegate", "sync", *map(str, arguments), "--sandbox"],
        capture_output=True,
        text=True,
        check=False,
    )


def written(*arguments: str | Path) -> list[str]:
    """The objects that a rollout wrote, in their order."""
    ran = run(*arguments, "-o", "json")
    assert (ran.returncode, ran.stderr) == (0, "")
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    found = [one["ref"] for one in events if one["told"] == "object.written"]
    return [f"{ref['kind']['name']} {ref['name']}" for ref in found]


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


def test_only_the_resources_that_are_named_are_written_and_no_hook(shop: Path) -> None:
    everything = written(shop)
    one = written(shop, "--resource", ":ConfigMap:default/two")
    both = written(shop, "--resource", ":ConfigMap:two", "--resource", ":ConfigMap:one")
    others = written(shop, "--resource", "!:ConfigMap:two")

    assert everything == ["ConfigMap one", "ConfigMap two", "Job check"]
    assert one == ["ConfigMap two"]
    assert both == ["ConfigMap one", "ConfigMap two"]
    assert others == ["ConfigMap one"]


def test_a_dry_run_shows_only_the_resources_that_are_named(shop: Path) -> None:
    ran = run(shop, "--resource", ":ConfigMap:two", "--dry-run")

    assert ran.stdout.splitlines()[-1] == "1 to create"


@pytest.mark.parametrize("named", [":ConfigMap:three", "ConfigMap", "batch:Job:check"])
def test_a_resource_that_is_not_there_is_an_error(shop: Path, named: str) -> None:
    ran = run(shop, "--resource", named)

    assert (ran.returncode, ran.stdout) == (3, "")
    assert ran.stderr.startswith("error[plan.selection]")


def test_a_part_of_a_unit_is_not_pruned(shop: Path) -> None:
    ran = run(shop, "--resource", ":ConfigMap:two", "--prune")

    assert (ran.returncode, ran.stdout) == (2, "")
    assert "--resource" in ran.stderr


def test_a_namespace_is_created_where_that_is_asked_for(shop: Path) -> None:
    without = run(shop, "--namespace", "web")
    objects = written(shop, "--namespace", "web", "--create-namespace")

    assert without.returncode == 3
    assert "namespace" in without.stdout
    assert objects == ["Namespace web", "ConfigMap one", "ConfigMap two", "Job check"]


def test_what_another_unit_has_is_refused_before_the_first_write(shop: Path) -> None:
    theirs = scenario_with(shop, "default/other")

    refused = run(shop, *theirs, "--fail-on-shared")
    taken = run(shop, *theirs)

    assert (refused.returncode, refused.stdout) == (3, "")
    assert refused.stderr.startswith(
        "error[plan.shared]: ConfigMap default/two belongs to the unit `default/other`\n"
    )
    assert "at objects.yaml:5:1\n" in refused.stderr
    assert taken.returncode == 0


def test_what_is_the_units_own_is_not_shared(shop: Path) -> None:
    ours = scenario_with(shop, "default/shop")

    assert "ConfigMap one" in written(shop, *ours, "--fail-on-shared")


def test_what_is_not_chosen_may_be_shared(shop: Path) -> None:
    theirs = scenario_with(shop, "default/other")

    objects = written(shop, *theirs, "--fail-on-shared", "--resource", ":ConfigMap:one")

    assert objects == ["ConfigMap one"]
