"""What a result of `lint` rests on: nothing that was not looked at is clean."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.support.recorded_wording import RecordedWording
from tests.support.rule_pages import write_files
from tests.support.tidegate_runs import tidegate_in

URL = "https://git.example.com/shop/platform.git"
FAR = "https://git.example.com/shop/elsewhere.git"
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\n"


def application(name: str, url: str = URL) -> str:
    return f"""apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {{name: {name}, namespace: argocd}}
spec:
  project: default
  source: {{repoURL: "{url}", targetRevision: v1, path: {name}}}
  destination: {{server: https://kubernetes.default.svc, namespace: default}}
  syncPolicy: {{automated: {{}}}}
"""


def lint(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return tidegate_in(folder, "lint", "--offline", *words)


@pytest.fixture
def mostly_elsewhere(tmp_path: Path) -> Path:
    """One unit is here, and the sources of three others are not."""
    far = {f"cd/{name}.yaml": application(name, FAR) for name in ("one", "two", "three")}
    return write_files(
        tmp_path / "repo", {**far, "cd/near.yaml": application("near"), "near/a.yaml": CONFIG_MAP}
    )


def test_an_empty_directory_is_nothing_to_check(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()

    ran = lint(tmp_path / "empty")
    allowed = lint(tmp_path / "empty", "--allow-incomplete")

    assert (ran.returncode, allowed.returncode) == (9, 0)


def test_units_without_a_valid_object_are_counted(tmp_path: Path) -> None:
    source = (
        "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\n"
        "metadata: {name: flux-system, namespace: flux-system}\n"
        f"spec: {{interval: 1m, url: '{URL}', ref: {{branch: main}}}}\n"
    )
    unit = (
        "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n"
        "metadata: {name: near, namespace: flux-system}\n"
        "spec: {interval: 1m, path: ./near, prune: true,"
        " sourceRef: {kind: GitRepository, name: flux-system}}\n"
    )
    without_namespace = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
    write_files(
        tmp_path, {"flux/all.yaml": f"{source}---\n{unit}", "near/a.yaml": without_namespace}
    )

    ran = lint(tmp_path)

    assert "1 unit" in next(line for line in ran.stdout.splitlines() if "nothing" in line)


def test_a_result_names_what_it_does_not_rest_on(
    mostly_elsewhere: Path, wording: RecordedWording
) -> None:
    ran = lint(mostly_elsewhere, "--severity", "error")

    assert ran.returncode == 9
    assert ran.stdout.splitlines()[-1].startswith("incomplete: ")
    wording(ran.stdout)


def test_the_json_has_the_gaps_and_commands_that_help(mostly_elsewhere: Path) -> None:
    ran = lint(mostly_elsewhere, "-o", "json")

    coverage = json.loads(ran.stdout)["coverage"]
    assert coverage["incomplete"]
    assert (coverage["units"] - coverage["rendered"]) == 3
    (gap,) = coverage["gaps"]
    assert sorted(gap["units"]) == [
        f"Application/argocd/{name}" for name in ("one", "three", "two")
    ]
    assert not gap["partial"]
    assert coverage["commands"] == [gap["command"]]
    assert f"--repo-map {FAR}=" in gap["command"]


def test_machine_formats_have_the_verdict(mostly_elsewhere: Path) -> None:
    sarif = json.loads(lint(mostly_elsewhere, "-o", "sarif").stdout)
    github = lint(mostly_elsewhere, "-o", "github").stdout

    (invocation,) = sarif["runs"][0]["invocations"]
    assert not invocation["executionSuccessful"]
    assert invocation["toolExecutionNotifications"]
    assert "::error title=incomplete::" in github


def test_a_repository_of_which_most_is_known_is_not_incomplete(tmp_path: Path) -> None:
    near = {f"cd/{name}.yaml": application(name) for name in ("one", "two", "three")}
    objects = {f"{name}/a.yaml": CONFIG_MAP for name in ("one", "two", "three")}
    folder = write_files(tmp_path, {**near, **objects, "cd/far.yaml": application("far", FAR)})

    ran = lint(folder, "-o", "json")

    coverage = json.loads(ran.stdout)["coverage"]
    assert not coverage["incomplete"]
    assert len(coverage["gaps"]) == 1
    assert ran.returncode == 0
