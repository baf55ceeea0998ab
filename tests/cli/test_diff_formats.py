"""`tidegate diff` for a pull request: Markdown, SARIF, annotations, and hostile names in them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.changed_repository import ChangedRepository, changed_repository
from tests.support.file_trees import GIT_REPOSITORY, kustomization, run_git
from tests.support.tidegate_runs import tidegate, tidegate_in

HOSTILE = "x`](http://evil.example)<img src=x>@team #1 ::set-output name=a::b\x1b[31m|**b**"
WAIT = '"wait": true'


def wide_repository(root: Path, count: int) -> ChangedRepository:
    """Return a repository of Kustomizations that all wait for the first."""
    files = {"clusters/flux-system.yaml": GIT_REPOSITORY + kustomization("flux-system", "clusters")}
    files["clusters/base.yaml"] = kustomization("base", "./base", more=WAIT)
    files["base/base.yaml"] = "apiVersion: v1\nkind: Namespace\nmetadata: {name: base}\n"
    for number in range(count):
        name = f"a-unit-with-a-long-name-that-needs-some-space-in-a-comment-{number:03}"
        files[f"clusters/{name}.yaml"] = kustomization(
            name, f"./{name}", more=f'{WAIT}, "dependsOn": [{{"name": "base"}}]'
        )
        files[f"{name}/a.yaml"] = (
            f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c{number}, namespace: base}}\n"
        )
    return changed_repository(root, files)


def test_a_comment_has_the_verdict_in_its_heading(tmp_path: Path) -> None:
    repository = wide_repository(tmp_path / "fleet", 2)
    repository.write("clusters/base.yaml", kustomization("base", "./base"))

    lines = tidegate("diff", repository.root, "-o", "markdown").stdout.splitlines()

    assert lines[0] == "<!-- tidegate diff -->"
    assert lines[1] == "### Order: 1 gate lost"
    assert "```mermaid" in lines


def test_a_comment_about_the_same_order_has_one_line(tmp_path: Path) -> None:
    repository = wide_repository(tmp_path / "fleet", 1)

    lines = tidegate("diff", repository.root, "-o", "markdown").stdout.splitlines()

    assert len(lines) == 2
    assert lines[1].startswith("**Order:** same order as main")


def test_a_long_comment_is_cut_and_complete_in_its_parts(tmp_path: Path) -> None:
    repository = wide_repository(tmp_path / "fleet", 150)
    for path in sorted((repository.root / "clusters").glob("a-unit*.yaml")):
        repository.write(
            f"clusters/{path.name}",
            kustomization(path.stem, f"./{path.stem}", more='"suspend": true'),
        )

    comment = tidegate("diff", repository.root, "-o", "markdown").stdout

    assert len(comment) <= 60_000
    assert "The comment was cut" in comment
    assert comment.count("<details>") == comment.count("</details>")
    assert comment.count("```") % 2 == 0


@pytest.mark.parametrize("output", ["text", "json", "markdown", "sarif", "github"])
def test_hostile_names_are_harmless(tmp_path: Path, output: str) -> None:
    repository = wide_repository(tmp_path / "fleet", 1)
    branch = "x`<b>@team#1"
    run_git(repository.root, "checkout", "-q", "-b", branch)
    name = "base/<img src=x>@team `::set-output name=a::b.yaml"
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "job", "namespace": HOSTILE, "annotations": {"a": HOSTILE}},
        "spec": {"template": {"spec": {"containers": [{"name": HOSTILE, "image": "a"}]}}},
    }
    repository.write(name, json.dumps(job))
    dependency = json.dumps([{"name": HOSTILE}])
    repository.write(
        f"clusters/{Path(name).name}",
        kustomization("lost", "./base", more=f'"dependsOn": {dependency}'),
    )
    repository.commit()
    repository.remove(name)
    repository.write(f"clusters/{Path(name).name}", kustomization("lost", "./base"))
    repository.write(
        f"clusters/new-{Path(name).name}",
        kustomization("gained", "./base", more=f'"dependsOn": {dependency}'),
    )
    repository.write("clusters/base.yaml", kustomization("base", "./base"))

    ran = tidegate("diff", repository.root, "--base", branch, "-o", output)

    assert ran.returncode in {0, 3}, ran.stderr
    assert "evil" in ran.stdout
    assert "img src" in ran.stdout.replace("\\", "")
    assert "\x1b" not in ran.stdout
    assert not [line for line in ran.stdout.splitlines() if line.startswith("::set-output")]
    if output == "markdown":
        text = re.sub(r"```mermaid\n.*?\n```", "", ran.stdout, flags=re.DOTALL)
        assert "evil" in text
        assert "<img" not in ran.stdout
        assert "<b>" not in ran.stdout
        assert "@team" not in text
        assert "](http" not in text


def test_sarif_and_annotations_have_the_new_findings_alone(tmp_path: Path) -> None:
    repository = wide_repository(tmp_path / "fleet", 1)
    known = kustomization("known", "./base", more='"dependsOn": [{"name": "nowhere"}]')
    repository.write("clusters/known.yaml", known)
    repository.commit()
    repository.write("clusters/new.yaml", known.replace("known", "new"))

    sarif = json.loads(tidegate("diff", repository.root, "-o", "sarif").stdout)
    annotations = tidegate("diff", repository.root, "-o", "github").stdout

    results = [result for result in sarif["runs"][0]["results"] if result["level"] == "error"]
    places = {
        result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in results
    }
    assert {place.rpartition("/")[2] for place in places} == {"new.yaml"}
    assert "known.yaml" not in annotations


@pytest.mark.parametrize(("severity", "code"), [("error", 0), ("warning", 3), ("note", 3)], ids=str)
def test_the_severity_that_fails_is_chosen(tmp_path: Path, severity: str, code: int) -> None:
    repository = wide_repository(tmp_path / "fleet", 1)
    (path,) = (repository.root / "clusters").glob("a-unit*.yaml")
    alone = kustomization(path.stem, f"./{path.stem}", more=WAIT)
    repository.write(f"clusters/{path.name}", alone)

    assert tidegate("diff", repository.root, "--fail-on", severity).returncode == code
    assert tidegate("lint", repository.root, "--fail-on", severity).returncode == code


def test_lint_reports_what_a_base_does_not_have(tmp_path: Path) -> None:
    repository = wide_repository(tmp_path / "fleet", 1)
    known = kustomization("known", "./base", more='"dependsOn": [{"name": "nowhere"}]')
    repository.write("clusters/known.yaml", known)
    repository.commit()

    without_change = tidegate("lint", repository.root, "--base", "HEAD", "-o", "json")
    repository.write("clusters/new.yaml", known.replace("known", "new"))
    with_change = tidegate("lint", repository.root, "--base", "HEAD", "-o", "json")

    assert (without_change.returncode, with_change.returncode) == (0, 3)
    assert json.loads(without_change.stdout)["findings"] == []
    errors = [
        finding
        for finding in json.loads(with_change.stdout)["findings"]
        if finding["severity"] == "error"
    ]
    assert {finding["file"].rpartition("/")[2] for finding in errors} == {"new.yaml"}


def test_lint_of_a_file_is_about_the_units_that_it_belongs_to(tmp_path: Path) -> None:
    repository = wide_repository(tmp_path / "fleet", 2)
    broken = '"dependsOn": [{"name": "nowhere"}]'
    for name in ("first", "second"):
        repository.write(f"clusters/{name}.yaml", kustomization(name, f"./{name}", more=broken))
        repository.write(
            f"{name}/a.yaml",
            f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: base}}\n",
        )

    changed = repository.root / "second" / "a.yaml"
    ran = tidegate("lint", repository.root, changed, "-o", "json")
    other = tidegate("lint", repository.root, repository.root / "base/base.yaml")
    alone = tidegate_in(repository.root, "lint", "second/a.yaml", "base/base.yaml", "-o", "json")

    files = {finding["file"].rpartition("/")[2] for finding in json.loads(ran.stdout)["findings"]}
    assert (ran.returncode, other.returncode) == (3, 0)
    assert files == {"second.yaml"}
    assert json.loads(alone.stdout)["findings"] == json.loads(ran.stdout)["findings"]
