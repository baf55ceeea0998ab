"""Which repository a directory is, by what its units ask of it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.tidegate_runs import config_map, tidegate, write_unit

APPS_CHART = """\
{{- range .Values.apps }}
---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: {{ . }}, namespace: argocd}
spec:
  project: default
  source: {repoURL: https://git.example.com/shop/apps.git, path: apps/{{ . }}}
  destination: {server: https://kubernetes.default.svc, namespace: default}
{{- end }}
"""


def test_the_applications_of_a_chart_identify_their_repository(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "templates").mkdir(parents=True)
    (root / "Chart.yaml").write_text("apiVersion: v2\nname: root\nversion: 1.0.0\n")
    (root / "values.yaml").write_text("apps: [web, database]\n")
    (root / "templates" / "apps.yaml").write_text(APPS_CHART)
    for name in ("web", "database"):
        write_unit(tmp_path / "apps" / name, config=config_map(name))
    (tmp_path / ".git").mkdir()

    ran = tidegate("plan", root, "-o", "json")

    assert ran.returncode == 0, ran.stderr
    assert "ConfigMap" in ran.stdout
    findings = [json.loads(line) for line in ran.stderr.splitlines()]
    (note,) = [finding for finding in findings if finding["severity"] == "note"]
    assert note["code"] == "units.repository-assumed"
    assert "`https://git.example.com/shop/apps.git`" in note["message"]


SOURCE_OF = """\
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {{name: flux-system, namespace: flux-system}}
spec: {{interval: 1m, url: "https://git.example.com/{name}.git", ref: {{branch: main}}}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {{name: flux-system, namespace: flux-system}}
spec:
  interval: 10m
  prune: true
  path: ./clusters/home
  sourceRef: {{kind: GitRepository, name: flux-system}}
"""


def test_a_source_next_to_its_unit_takes_precedence_over_one_with_the_same_name(
    tmp_path: Path,
) -> None:
    for name in ("ours", "theirs"):
        user_home = write_unit(
            tmp_path / name / "clusters" / "home", sync=SOURCE_OF.format(name=name)
        )
        write_unit(user_home, config=config_map(name))
    (tmp_path / ".git").mkdir()

    ran = tidegate("units", tmp_path / "ours", "--offline")

    assert ran.returncode == 0, ran.stderr
    assert any(
        "note[units.repository-assumed]" in line and "`https://git.example.com/ours.git`" in line
        for line in ran.stderr.splitlines()
    )
