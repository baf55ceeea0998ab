"""`tidegate graph` from outside: what it says, draws and explains."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

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
def late(tmp_path: Path) -> Path:
    return write_unit(tmp_path / "late", all=LATE)


def test_a_circle_is_told_link_by_link_with_its_places(late: Path) -> None:
    ran = tidegate("graph", late)

    assert ran.returncode == 0, ran.stderr
    result = ran.stdout[ran.stdout.index("they wait for each other:") :].splitlines()
    assert result[1:5] == [
        f"  Job default/migrate waits for Secret default/db ({FIELD}), all.yaml:1:1",
        "  Secret default/db is applied in wave 2 of default/late, all.yaml:13:1",
        "  wave 2 of default/late starts when wave 1 of default/late is over",
        "  wave 1 of default/late is over when Job default/migrate is ready",
    ]
    assert "it comes later, in wave 2 of default/late" in ran.stdout


def test_no_form_shows_what_a_secret_holds(late: Path) -> None:
    for form in ("text", "json", "mermaid", "dot", "svg", "html"):
        ran = tidegate("graph", late, "-o", form)
        assert ran.returncode == 0, ran.stderr
        assert "hunter2" not in ran.stdout + ran.stderr


def test_the_document_has_nodes_edges_and_what_is_missing(tmp_path: Path) -> None:
    pods = LATE.partition("---\n")[0]
    ran = tidegate("graph", write_unit(tmp_path / "shop", job=pods), "-o", "json")

    document = json.loads(ran.stdout)
    names = {node["id"]: node["name"] for node in document["nodes"]}
    assert document["schema"] == "tidegate.dev/graph/v1"
    (lack,) = document["missing"]
    assert (lack["kind"], lack["name"]) == ("Secret", "Secret default/db")
    (asker,) = lack["neededBy"]
    assert (asker["name"], asker["place"], asker["effect"]) == (
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


def test_why_one_waits_for_another_and_that_it_does_not() -> None:
    words = ("graph", PLATFORM, "--why")

    there = tidegate(*words, "Job/shop/migrate", "StatefulSet/shop/db")
    back = tidegate(*words, "StatefulSet/shop/db", "Job/shop/migrate")
    nobody = tidegate(*words, "Job/shop/migrat", "metrics")
    assert there.stdout.splitlines()[0].startswith("Job shop/migrate needs Service shop/db (host)")
    assert back.stdout.startswith("it does not wait for it")
    assert nobody.returncode == 2
    assert "error[usage.node]: nothing here is called `Job/shop/migrat`" in nobody.stderr
    assert "did you mean `Job/shop/migrate`?" in nobody.stderr


def test_a_part_is_shown_and_all_of_it_is_known() -> None:
    whole = tidegate("graph", PLATFORM, "-o", "json")
    part = tidegate("graph", PLATFORM, "-o", "json", "--unit", "Application/argocd/shop")

    units = {node["unit"] for node in json.loads(part.stdout)["nodes"] if node["kind"] == "unit"}
    assert units == {"Application/argocd/root", "Application/argocd/shop"}
    assert json.loads(part.stdout)["missing"] == []
    assert len(part.stdout) < len(whole.stdout)


def test_units_that_depend_on_each_other_are_shown_all_the_same(tmp_path: Path) -> None:
    for unit_resource, other in (("first", "second"), ("second", "first")):
        write_unit(
            tmp_path / "clusters",
            **{unit_resource: FIRST_SECOND % (unit_resource, unit_resource, other)},
        )
        write_unit(
            tmp_path / unit_resource, settings=config_map(unit_resource, namespace="default")
        )
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
    assert f"{first} depends on {second}, clusters/first.yaml" in ran.stdout


def test_the_drawing_is_whole_and_needs_nothing_from_elsewhere() -> None:
    svg = tidegate("graph", PLATFORM, "-o", "svg").stdout
    html = tidegate("graph", PLATFORM, "-o", "html").stdout

    root = ET.fromstring(svg)  # noqa: S314 - it is our own
    titles = [item.text or "" for item in root.iter("{http://www.w3.org/2000/svg}title")]
    assert any(title.startswith("Job shop/migrate (hook)") for title in titles)
    assert "Job shop/migrate needs Service shop/db (host)" in titles
    assert not re.findall(r"(?:src|href)=|@import|url\(http", html)
    assert svg.strip() in html


def test_names_of_strangers_do_no_harm_in_a_drawing(tmp_path: Path) -> None:
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


def test_the_critical_path_names_what_is_waited_for() -> None:
    ran = tidegate("graph", PLATFORM, "--critical-path")

    assert "Application/argocd/shop: PreSync" in ran.stdout
    assert ran.stdout.splitlines()[-1].startswith("4 steps, about ")


def test_our_own_rules_obey_an_annotation(tmp_path: Path) -> None:
    wave = 'argocd.argoproj.io/sync-wave: "1"'
    late = LATE.replace('"2"', '"1"')
    late = late.replace(wave, f"{wave}, tidegate.dev/depends-on: Secret/db", 1)
    ran = tidegate("plan", write_unit(tmp_path / "noted", all=late))

    steps = [line for line in ran.stdout.splitlines() if line.startswith("  wave")]
    assert [line.split()[:3] for line in steps] == [
        ["wave", "1", "create"],
        ["wave", "1", "part"],
    ]
    assert ran.stdout.index("Secret default/db") < ran.stdout.index("Job default/migrate")
