"""`tidegate graph`: its text, drawings and explanations."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.support.recorded_wording import RecordedWording
from tests.support.tidegate_runs import ROOT, config_map, tidegate, write_unit

PLATFORM = ROOT / "examples" / "platform"
LATE = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: migrate
  annotations: {argocd.argoproj.io/sync-wave: "1"}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
      - {name: app, image: acme/app, envFrom: [{secretRef: {name: db}}]}
---
apiVersion: v1
kind: Secret
metadata:
  name: db
  annotations: {argocd.argoproj.io/sync-wave: "2"}
stringData: {password: hunter2}
"""
FIELD = "spec.template.spec.containers[0].envFrom[0].secretRef"
FIRST_SECOND = """\
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: %s, namespace: flux-system}
spec:
  interval: 10m
  path: ./%s
  prune: true
  sourceRef: {kind: GitRepository, name: flux-system}
  dependsOn: [{name: %s}]
"""


@pytest.fixture
def deadlocked(tmp_path: Path) -> Path:
    return write_unit(tmp_path / "late", all=LATE)


def test_a_cycle_is_printed_edge_by_edge_with_its_locations(
    wording: RecordedWording, deadlocked: Path
) -> None:
    ran = tidegate("graph", deadlocked)

    assert ran.returncode == 0, ran.stderr
    assert f"({FIELD}), all.yaml:1:1" in ran.stdout
    wording(ran.stdout)


def test_no_output_format_shows_the_values_of_a_secret(deadlocked: Path) -> None:
    for form in ("text", "json", "mermaid", "dot", "svg", "html"):
        ran = tidegate("graph", deadlocked, "-o", form)
        assert ran.returncode == 0, ran.stderr
        assert "hunter2" not in ran.stdout + ran.stderr


def test_the_document_has_nodes_edges_and_what_is_missing(tmp_path: Path) -> None:
    pods = LATE.partition("---\n")[0]
    ran = tidegate("graph", write_unit(tmp_path / "shop", job=pods), "-o", "json")

    document = json.loads(ran.stdout)
    names = {node["id"]: node["name"] for node in document["nodes"]}
    assert document["schema"] == "tidegate.dev/graph/v2"
    (missing_dependency,) = document["missing"]
    assert (missing_dependency["kind"], missing_dependency["name"]) == (
        "Secret",
        "Secret default/db",
    )
    (asker,) = missing_dependency["neededBy"]
    assert (asker["name"], asker["location"], asker["effect"]) == (
        "Job default/migrate",
        "job.yaml:1:1",
        "held",
    )
    (edge,) = document["edges"]
    assert (names[edge["before"]], names[edge["after"]], edge["reason"]) == (
        "Secret default/db",
        "Job default/migrate",
        "reference",
    )


def test_why_explains_a_dependency_or_that_there_is_none(wording: RecordedWording) -> None:
    args = ("graph", PLATFORM, "--why")

    there = tidegate(*args, "Job/shop/migrate", "StatefulSet/shop/db")
    back = tidegate(*args, "StatefulSet/shop/db", "Job/shop/migrate")
    unknown = tidegate(*args, "Job/shop/migrat", "metrics")
    wording(there.stdout)
    wording(back.stdout)
    assert unknown.returncode == 2
    assert "error[usage.node]: " in unknown.stderr
    assert "`Job/shop/migrat`" in unknown.stderr
    assert "`Job/shop/migrate`" in unknown.stderr


def test_a_single_unit_can_be_shown() -> None:
    whole = tidegate("graph", PLATFORM, "-o", "json")
    part = tidegate("graph", PLATFORM, "-o", "json", "--unit", "Application/argocd/shop")

    units = {node["unit"] for node in json.loads(part.stdout)["nodes"] if node["kind"] == "unit"}
    assert units == {"Application/argocd/root", "Application/argocd/shop"}
    assert json.loads(part.stdout)["missing"] == []
    assert len(part.stdout) < len(whole.stdout)


def test_units_that_depend_on_each_other_are_shown(tmp_path: Path) -> None:
    for name, other in (("first", "second"), ("second", "first")):
        write_unit(
            tmp_path / "clusters",
            **{name: FIRST_SECOND % (name, name, other)},
        )
        write_unit(tmp_path / name, settings=config_map(name, namespace="default"))
    source = """\
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: flux-system, namespace: flux-system}
spec: {interval: 1m, url: "https://git.example.com/shop/circle.git", ref: {branch: main}}
"""
    write_unit(tmp_path / "clusters", source=source)
    address = "https://git.example.com/shop/circle.git"
    ran = tidegate("graph", tmp_path, "--repo-map", f"{address}={tmp_path}")

    first, second = "Kustomization/flux-system/first", "Kustomization/flux-system/second"
    lines = [line.strip() for line in ran.stdout.splitlines() if "clusters/first.yaml" in line]
    assert any(line.startswith(f"{first} ") and f" {second}, " in line for line in lines)


def test_the_drawing_is_complete_and_self_contained(wording: RecordedWording) -> None:
    svg = tidegate("graph", PLATFORM, "-o", "svg").stdout
    html = tidegate("graph", PLATFORM, "-o", "html").stdout

    root = ET.fromstring(svg)  # noqa: S314 - it is our own
    titles = [item.text or "" for item in root.iter("{http://www.w3.org/2000/svg}title")]
    wording(title for title in titles if title.startswith("Job shop/migrate "))
    assert not re.findall(r"(?:src|href)=|@import|url\(http", html)
    assert svg.strip() in html


def test_names_are_escaped_in_a_drawing(tmp_path: Path) -> None:
    odd = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: "<script>alert(1)</script>", namespace: default}
"""
    folder = write_unit(tmp_path / "odd", odd=odd)

    html = tidegate("graph", folder, "-o", "html").stdout
    mermaid = tidegate("graph", folder, "-o", "mermaid").stdout
    assert "<script>alert" not in html
    assert "<script>" not in mermaid


def test_the_same_input_gives_the_same_bytes() -> None:
    runs = {
        tidegate("graph", PLATFORM, "-o", "html", PYTHONHASHSEED=seed).stdout for seed in ("1", "2")
    }

    assert len(runs) == 1


def test_the_critical_path_names_what_is_waited_for(wording: RecordedWording) -> None:
    ran = tidegate("graph", PLATFORM, "--critical-path")

    assert "Application/argocd/shop: PreSync" in ran.stdout
    wording(ran.stdout.splitlines()[-1])


def test_tidegate_obeys_the_depends_on_annotation(wording: RecordedWording, tmp_path: Path) -> None:
    wave = 'argocd.argoproj.io/sync-wave: "1"'
    deadlocked = LATE.replace('"2"', '"1"')
    deadlocked = deadlocked.replace(wave, f"{wave}, tidegate.dev/depends-on: Secret/db", 1)
    ran = tidegate("plan", write_unit(tmp_path / "noted", all=deadlocked))

    steps = [line for line in ran.stdout.splitlines() if line.startswith("  wave")]
    assert [line.split()[:2] for line in steps] == [["wave", "1"]] * 2
    wording(steps)
    assert ran.stdout.index("Secret default/db") < ran.stdout.index("Job default/migrate")
