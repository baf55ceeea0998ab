"""A location is a path that can be opened from the working directory."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from tests.support.in_process_command import run_in_process
from tests.support.rule_pages import write_files

APP = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: shop, namespace: argocd}
spec:
  project: default
  source: {repoURL: https://git.example.org/shop.git, path: charts/shop, targetRevision: HEAD}
  destination: {server: https://kubernetes.default.svc, namespace: shop}
"""
TEMPLATE = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  annotations:
    argocd.argoproj.io/hook: Presync
"""


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "work" / "repo"
    files = {
        "apps/shop.yaml": APP,
        "charts/shop/Chart.yaml": "apiVersion: v2\nname: shop\nversion: 0.1.0\n",
        "charts/shop/templates/settings.yaml": TEMPLATE,
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize(
    ("line_text", "what", "expected"),
    [
        (".", "repo", "repo/charts/shop/templates/settings.yaml"),
        ("repo", ".", "charts/shop/templates/settings.yaml"),
        ("repo/charts", "..", "shop/templates/settings.yaml"),
        ("repo/apps", "..", "{repo}/charts/shop/templates/settings.yaml"),
        ("repo", "charts/shop", "charts/shop/templates/settings.yaml"),
    ],
)
@pytest.mark.parametrize("verb", ["plan", "lint"])
def test_a_template_is_reported_as_it_can_be_opened(
    verb: str, line_text: str, what: str, expected: str, repo: Path
) -> None:
    here = (repo.parent / line_text).resolve()

    ran = run_in_process(here, os.environ, (verb, what, "--offline", "-o", "json"))

    matches = [json.loads(line) for line in (ran.stdout + ran.stderr).splitlines()]
    findings = [item for each in matches for item in each.get("findings", [each])]
    (location,) = (
        finding["location"] for finding in findings if finding.get("code") == "argo.hook"
    )
    name, line = location.split(" ")[0].split(":")[:2]
    assert name == expected.format(repo=repo)
    assert "Presync" in (here / name).read_text().splitlines()[int(line) - 1]


def test_a_template_error_is_reported_with_the_same_path(repo: Path) -> None:
    (repo / "charts/shop/templates/settings.yaml").write_text("a: {{ fail `no` }}\n")

    ran = run_in_process(repo.parent, os.environ, ("render", "repo/charts/shop"))

    assert "  at repo/charts/shop/templates/settings.yaml:1:" in ran.stderr


def test_each_chart_has_its_own_locations(repo: Path) -> None:
    charts = repo / "charts"
    (charts / "shop/templates/settings.yaml").write_text("a: {{ fail `no` }}\n")
    (charts / "shop").rename(charts / "first")
    (charts / "second/templates").mkdir(parents=True)
    for name in ("Chart.yaml", "templates/settings.yaml"):
        (charts / "second" / name).write_text((charts / "first" / name).read_text())

    ran = run_in_process(charts, os.environ, ("render", "first", "second"))

    places = [line for line in ran.stderr.splitlines() if line.startswith("  at ")]
    assert [line.split(":")[0] for line in places] == [
        "  at first/templates/settings.yaml",
        "  at second/templates/settings.yaml",
    ]


def test_every_file_that_is_named_with_its_line_is_there(repo: Path) -> None:
    (repo / "apps/again.yaml").write_text(APP)

    ran = run_in_process(repo.parent, os.environ, ("units", "repo", "--offline"))

    named = re.findall(r"[\w./-]+\.yaml(?=:\d)", ran.stdout + ran.stderr)
    assert named
    assert all((repo.parent / item).is_file() for item in named), named


def test_a_baseline_does_not_depend_on_the_current_directory(repo: Path) -> None:
    known = repo.parent / "known.json"
    args = ("--offline", "--baseline", str(known), "--update-baseline")
    run_in_process(repo.parent, os.environ, ("lint", "repo", *args))
    first = known.read_text()
    run_in_process(repo / "apps", os.environ, ("lint", "..", *args))

    assert known.read_text() == first


@pytest.mark.parametrize("verb", ["render", "plan", "simulate"])
def test_a_values_file_is_reported_relative_to_the_current_directory(
    verb: str, tmp_path: Path
) -> None:
    chart = write_files(tmp_path / "chart", {"Chart.yaml": "apiVersion: v2\nname: a\nversion: 1\n"})
    write_files(tmp_path / "sub", {"prod.yaml": "- a\n", "none.yaml": "\0"})
    for place, word, result in (
        (tmp_path, "sub/prod.yaml", "sub/prod.yaml"),
        (tmp_path / "sub", "../sub/prod.yaml", "prod.yaml"),
        (tmp_path / "sub", "none.yaml", "none.yaml"),
        (chart, "../sub/prod.yaml", f"{tmp_path}/sub/prod.yaml"),
    ):
        ran = run_in_process(place, {"HOME": str(tmp_path)}, (verb, str(chart), "-f", word))

        assert ran.code == 3
        assert f"  at {result}\n" in ran.stderr
