"""Clusters that a repository registers in Argo CD, and ApplicationSets that select them."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.repositories import URL, Repository, application, setting
from tests.support.tidegate_runs import tidegate
from tidegate.model.k8s.objects import JsonObject

SECRETS = """\
{{- range list "east" "west" }}
---
apiVersion: v1
kind: Secret
metadata:
  name: {{ . }}
  namespace: argocd
  labels: {argocd.argoproj.io/secret-type: cluster, tier: edge}
stringData: {name: {{ . }}, server: "https://{{ . }}.example", config: "{}"}
{{- end }}
"""


def repository(root: Path) -> Repository:
    """A chart with cluster Secrets, and an ApplicationSet in the next wave that uses them."""
    made = Repository(root)
    made.put("apps/fleet.yaml", application("fleet", "fleet", into="argocd"))
    template = application("web-{{name}}", "web", cluster="{{name}}")
    template["metadata"] = {"name": "web-{{name}}"}
    template.pop("apiVersion")
    template.pop("kind")
    item: JsonObject = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "ApplicationSet",
        "metadata": {
            "name": "web",
            "namespace": "argocd",
            "annotations": {"argocd.argoproj.io/sync-wave": "1"},
        },
        "spec": {
            "generators": [{"clusters": {"selector": {"matchLabels": {"tier": "edge"}}}}],
            "template": template,
        },
    }
    made.put("apps/set.yaml", item)
    made.put("web/all.yaml", setting("web"))
    chart = root / "fleet" / "templates"
    chart.mkdir(parents=True)
    (chart.parent / "Chart.yaml").write_text("apiVersion: v2\nname: fleet\nversion: 1.0.0\n")
    (chart / "clusters.yaml").write_text(SECRETS)
    return made


def test_a_set_generates_for_the_clusters_that_a_chart_makes_known(tmp_path: Path) -> None:
    made = repository(tmp_path / "platform")
    here = ("--offline", "--repo-map", f"{URL}={made.root}")

    units = tidegate("units", made.root, *here)
    played = tidegate("simulate", made.root, "--engine", "tidegate,argocd", *here)

    assert "Application/argocd/web-east" in units.stdout, units.stderr
    assert "Application/argocd/web-west" in units.stdout
    assert "appset.no-results" not in units.stderr
    assert played.returncode == 0, played.stderr
    assert "east/Application/argocd/web-east: wave 0" in played.stdout
    lines = [line.split(":")[0] for line in played.stdout.splitlines()]
    fleet = lines.index("Application/argocd/fleet")
    assert fleet < lines.index("west/Application/argocd/web-west"), "its set comes first"


def test_a_set_for_unknown_clusters_makes_lint_incomplete(tmp_path: Path) -> None:
    made = repository(tmp_path / "platform")
    made.drop("fleet/templates/clusters.yaml")

    ran = tidegate("lint", made.root, "--offline", "-o", "json")

    report = json.loads(ran.stdout)
    (gap,) = [gap for gap in report["coverage"]["gaps"] if "cluster" in gap["problem"]]
    assert [unit.partition("/")[0] for unit in gap["units"]] == ["ApplicationSet"]
    assert "appset.no-results" not in {finding["code"] for finding in report["findings"]}
