"""Units that cannot be rendered, and variables that are not in Git: the rest is read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.file_trees import (
    GIT_REPOSITORY,
    application,
    config_map,
    kustomization,
    lint_codes,
    lint_report,
    unit_names,
    write_files,
)
from tests.support.tidegate_runs import tidegate

SECRET = "postBuild: {substituteFrom: [{kind: Secret, name: cluster-secrets}]}"
APPS = {
    "apps/web/kustomization.yaml": "namespace: web\nresources: [./ks.yaml]\n",
    "apps/web/ks.yaml": kustomization(
        "web",
        "./apps/web/app",
        namespace="x",
        more="targetNamespace: web, dependsOn: [{name: db, namespace: db}]",
    ),
    "apps/web/app/cm.yaml": config_map("web"),
    "apps/db/kustomization.yaml": "namespace: db\nresources: [./ks.yaml]\n",
    "apps/db/ks.yaml": kustomization(
        "db", "./apps/db/app", namespace="x", more="targetNamespace: db, wait: true"
    ),
    "apps/db/app/cm.yaml": config_map("db", "db"),
}
CLUSTER = GIT_REPOSITORY + kustomization("cluster-apps", "./flux", more=SECRET)
UPWARDS = {
    **APPS,
    "flux/ks.yaml": CLUSTER,
    "flux/kustomization.yaml": "resources: [../apps/web, ../apps/db, ks.yaml]\n",
}
VERBS = ("units", "waves", "plan", "graph", "simulate", "lint")


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_reads_files_above_a_kustomization_that_flux_builds(
    tmp_path: Path, verb: str
) -> None:
    # flux/kustomization.yaml names files, not directories, above its own one
    upwards = "resources: [../apps/web/ks.yaml, ../apps/db/ks.yaml, ks.yaml]\n"
    root = write_files(tmp_path, {**UPWARDS, "flux/kustomization.yaml": upwards})

    ran = tidegate(verb, root, "--offline")

    assert "render.kustomize.restricted" not in ran.stderr + ran.stdout
    assert "web" in ran.stdout


def test_an_assumed_parent_of_flux_units_may_name_any_file(tmp_path: Path) -> None:
    overlay = "resources: [../apps/web/ks.yaml, ../apps/db/ks.yaml]\n"
    apps = {name: text for name, text in APPS.items() if "kustomization" not in name}
    root = write_files(
        tmp_path, {**apps, "flux/kustomization.yaml": overlay, "flux/source.yaml": GIT_REPOSITORY}
    )

    assert unit_names(root) == ["flux", "Kustomization/x/db", "Kustomization/x/web"]


def test_an_assumed_parent_that_cannot_be_rendered_is_one_finding(tmp_path: Path) -> None:
    files = {**APPS, "source.yaml": GIT_REPOSITORY}
    files["apps/kustomization.yaml"] = "resources: [web/ks.yaml, gone.yaml]\n"
    root = write_files(tmp_path, files)

    findings = lint_report(root).findings

    codes = [finding.code for finding in findings if finding.severity == "error"]
    assert set(codes) <= {"ORD049", "render.kustomize.missing"}
    assert "Kustomization/db/db" in unit_names(root)


def test_variables_of_a_secret_that_is_not_in_git_are_reported_once(tmp_path: Path) -> None:
    files = {**UPWARDS, "flux/more.yaml": kustomization("other", "./apps/db/app", more=SECRET)}
    files["flux/kustomization.yaml"] = "resources: [../apps/web, ../apps/db, ks.yaml, more.yaml]\n"
    root = write_files(tmp_path, files)

    report = lint_report(root)

    assert [entry for entry in report.unknown if "cluster-secrets" in entry.message] != []
    assert len(report.unknown) == 1
    assert unit_names(root) == [
        "Kustomization/flux-system/cluster-apps",
        "Kustomization/web/web",
        "Kustomization/db/db",
        "Kustomization/flux-system/other",
    ]


WORKLOAD = """\
apiVersion: v1
kind: Namespace
metadata: {name: web}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: web}
spec:
  replicas: ${REPLICAS}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: "nginx:${TAG:=1}"
        ports:
        - containerPort: ${PORT}
        envFrom:
        - configMapRef: {name: "${APP}-settings"}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: web}
spec:
  loadBalancerIP: ${LB_IP}
  selector: {app: web}
  ports:
  - port: ${PORT}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: web}
spec:
  rules:
  - host: web.${SECRET_DOMAIN}
    http:
      paths:
      - {path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}
"""


def test_fields_with_variables_that_are_unknown_are_not_judged(tmp_path: Path) -> None:
    flux = GIT_REPOSITORY + kustomization("apps", "./apps", more=SECRET)
    root = write_files(tmp_path, {"flux/ks.yaml": flux, "apps/all.yaml": WORKLOAD})

    linted, simulated = lint_codes(root), tidegate("simulate", root, "--offline")

    assert linted == []
    assert simulated.returncode == 0, simulated.stdout + simulated.stderr


def test_a_mistake_next_to_an_unknown_variable_is_found(tmp_path: Path) -> None:
    flux = GIT_REPOSITORY + kustomization("apps", "./apps", more=SECRET)
    broken = WORKLOAD.replace("pathType: Prefix", "pathType: Prefx")
    root = write_files(tmp_path, {"flux/ks.yaml": flux, "apps/all.yaml": broken})

    assert lint_codes(root) == ["preflight.invalid"]


def test_a_rollout_does_not_use_made_up_variables(tmp_path: Path) -> None:
    flux = GIT_REPOSITORY + kustomization("apps", "./apps", more=SECRET)
    root = write_files(tmp_path, {"flux/ks.yaml": flux, "apps/all.yaml": WORKLOAD})

    ran = tidegate("sync", root, "--sandbox", "--empty-cluster", "--offline")

    assert ran.returncode != 0
    assert "render.secret" in ran.stderr


BROKEN = {
    "flux/ks.yaml": GIT_REPOSITORY
    + kustomization("cluster-apps", "./apps")
    + kustomization("after", "./after", more="dependsOn: [{name: db, namespace: db}]"),
    "apps/kustomization.yaml": "resources: [./web, ./db, ./gone]\n",
    "after/cm.yaml": config_map("after"),
    **{name: text.replace(", namespace: x", "") for name, text in APPS.items()},
}


def test_children_of_a_unit_that_was_not_rendered_are_not_judged(tmp_path: Path) -> None:
    root = write_files(tmp_path, BROKEN)

    report = lint_report(root)

    errors = [finding for finding in report.findings if finding.severity == "error"]
    assert {error.code for error in errors} <= {"ORD049", "render.kustomize.missing"}
    assert [finding for finding in report.findings if finding.code == "ORD001"] == []


def test_a_child_whose_namespace_only_its_parent_sets_is_not_a_unit(tmp_path: Path) -> None:
    root = write_files(tmp_path, BROKEN)

    assert sorted(unit_names(root)) == [
        "Kustomization/flux-system/after",
        "Kustomization/flux-system/cluster-apps",
        "flux",
    ]


def test_another_repository_that_cannot_be_fetched_creates_no_units_of_this_one(
    tmp_path: Path,
) -> None:
    elsewhere = GIT_REPOSITORY.replace("flux-system", "elsewhere").replace("x/y", "other/z")
    unit = (
        kustomization("far", "./apps")
        .replace("GitRepository, name: flux-system", "GitRepository, name: elsewhere")
        .replace("namespace: flux-system}}}}", "namespace: elsewhere}}}}")
    )
    files = {"flux/ks.yaml": elsewhere + unit, "apps/web.yaml": kustomization("web", "./web")}
    files["flux/source.yaml"] = GIT_REPOSITORY
    files["web/cm.yaml"] = config_map("web")
    root = write_files(tmp_path, files)

    units = json.loads(tidegate("units", root, "--offline", "-o", "json").stdout)["units"]

    parents = {unit["name"]: unit["parent"] for unit in units}
    assert parents["web"] != "Kustomization/flux-system/far"


def test_the_children_of_a_unit_with_an_unset_variable_are_read(tmp_path: Path) -> None:
    inline = "postBuild: {substitute: {A: b}}"
    flux = GIT_REPOSITORY + kustomization("cluster", "./cluster", more=inline)
    unset = config_map("x").rstrip() + "\ndata: {one: '${ONE}', two: '${TWO}'}\n"
    child = kustomization("web", "./web")
    files = {"flux/ks.yaml": flux, "cluster/ks.yaml": child + unset, "web/cm.yaml": config_map("w")}
    root = write_files(tmp_path, files)

    errors = [finding for finding in lint_report(root).findings if finding.severity == "error"]

    assert [error.code for error in errors] == ["render.substitute.missing"]
    assert "Kustomization/flux-system/web" in unit_names(root)


REMOTE_BASE = """\
resources:
- https://github.com/argoproj/argo-cd//manifests/base?ref=v3.0.0
- web.yaml
patches:
- path: patch.yaml
configMapGenerator:
- {name: argocd-cm, behavior: merge, literals: [a=b]}
"""
PATCH = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: argocd-server}
spec: {replicas: 2}
"""


def test_the_rest_of_an_overlay_is_read_without_a_remote_base_that_it_patches(
    tmp_path: Path,
) -> None:
    files = {
        "root.yaml": application("root", "cd", namespace="argocd"),
        "cd/kustomization.yaml": REMOTE_BASE,
        "cd/patch.yaml": PATCH,
        "cd/web.yaml": application("web", "web"),
        "web/cm.yaml": config_map("web"),
    }
    root = write_files(tmp_path, files)

    rendered = tidegate("render", root, "--offline", "-o", "names")

    assert unit_names(root) == ["Application/argocd/root", "Application/argocd/web"]
    assert "argocd-server" not in rendered.stdout


def test_a_patch_without_a_target_is_an_error_where_all_bases_are_here(tmp_path: Path) -> None:
    overlay = "resources: [web.yaml]\npatches: [{path: patch.yaml}]\n"
    files = {
        "root.yaml": application("root", "cd", namespace="argocd"),
        "cd/kustomization.yaml": overlay,
        "cd/patch.yaml": PATCH,
        "cd/web.yaml": application("web", "web"),
        "web/cm.yaml": config_map("web"),
    }
    root = write_files(tmp_path, files)

    codes = [finding.code for finding in lint_report(root).findings]

    assert "render.kustomize.target" in codes


def test_the_rest_of_an_overlay_is_read_without_a_chart_that_it_inflates(tmp_path: Path) -> None:
    chart = "{name: argo-cd, repo: https://charts.example.com, version: 1.0.0}"
    files = {
        "cd/kustomization.yaml": f"resources: [web.yaml]\nhelmCharts: [{chart}]\n",
        "cd/web.yaml": application("web", "web"),
        "web/all.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: web}\n"
        + config_map("web"),
    }
    root = write_files(tmp_path, files)

    assert unit_names(root) == ["cd", "Application/argocd/web"]
    assert lint_codes(root) == []
