"""Mistakes that `lint` names, each in the smallest repository that has it, and what is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.rule_pages import write_files
from tests.support.tidegate_runs import tidegate_in

URL = "https://git.example.com/shop/platform.git"
GIT_REPOSITORY = f"""apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {{name: flux-system, namespace: flux-system}}
spec: {{interval: 1m, url: "{URL}", ref: {{branch: main}}}}
"""
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: default}\n"


def application(name: str, path: str, *, source: str = "", policy: str = "automated: {}") -> str:
    extra = f", {source}" if source else ""
    return f"""apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {{name: {name}, namespace: argocd}}
spec:
  project: default
  source: {{repoURL: "{URL}", targetRevision: main, path: {path}{extra}}}
  destination: {{server: https://kubernetes.default.svc, namespace: default}}
  syncPolicy: {{{policy}}}
"""


def kustomization(name: str, **spec: object) -> str:
    fields = {
        "interval": "1m",
        "path": f"./{name}",
        "prune": True,
        "sourceRef": {"kind": "GitRepository", "name": "flux-system"},
        **spec,
    }
    return (
        "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n"
        f"metadata: {{name: {name}, namespace: flux-system}}\nspec: {json.dumps(fields)}\n"
    )


def flux(*kustomizations: str) -> str:
    return "---\n".join((GIT_REPOSITORY, *kustomizations))


def job(annotations: str = "", spec: str = "", command: str = "[migrate]") -> str:
    return f"""apiVersion: batch/v1
kind: Job
metadata: {{name: migrate, namespace: default, annotations: {{{annotations}}}}}
spec:
  {spec or "backoffLimit: 6"}
  template:
    spec:
      restartPolicy: Never
      containers: [{{name: a, image: "shop:1", command: {command}}}]
"""


def deployment(container: str = "", annotations: str = "") -> str:
    extra = f", {container}" if container else ""
    return f"""apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, namespace: default, annotations: {{{annotations}}}}}
spec:
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec: {{containers: [{{name: a, image: "shop:1"{extra}}}]}}
"""


def severities_of(folder: Path, files: dict[str, str], code: str) -> list[str]:
    """Return the severities of the findings with a code."""
    write_files(folder, files)
    ran = tidegate_in(folder, "lint", "-o", "json")
    findings = json.loads(ran.stdout)["findings"]
    return [finding["severity"] for finding in findings if finding["code"] == code]


HOOK = "argocd.argoproj.io/hook: Sync, argocd.argoproj.io/hook-delete-policy: BeforeHookCreation"
FORCE = 'argocd.argoproj.io/sync-options: "Replace=true,Force=true"'


@pytest.mark.parametrize(
    ("text", "severities"),
    [
        (job(), ["warning"]),
        (job(command="[backup]").replace("migrate", "backup"), ["note"]),
        (job(HOOK), []),
        (job(FORCE), []),
        (job(spec="ttlSecondsAfterFinished: 600"), []),
    ],
    ids=["migration", "other task", "hook", "forced", "removed"],
)
def test_a_plain_job_fails_the_sync_of_its_next_template(
    tmp_path: Path, text: str, severities: list[str]
) -> None:
    files = {"cd/app.yaml": application("shop", "shop"), "shop/job.yaml": text}

    assert severities_of(tmp_path, files, "ORD019") == severities


@pytest.mark.parametrize(
    ("spec", "annotations", "severities"),
    [
        ({}, "", ["warning"]),
        ({"force": True}, "", []),
        ({}, "kustomize.toolkit.fluxcd.io/force: Enabled", []),
    ],
    ids=["plain", "forced unit", "forced Job"],
)
def test_a_plain_job_fails_the_kustomization_of_its_next_template(
    tmp_path: Path, spec: dict[str, object], annotations: str, severities: list[str]
) -> None:
    files = {
        "clusters/prod/flux.yaml": flux(kustomization("shop", **spec)),
        "shop/job.yaml": job(annotations),
    }

    assert severities_of(tmp_path, files, "ORD019") == severities


def test_flux_runs_a_job_again_that_its_ttl_has_removed(tmp_path: Path) -> None:
    files = {
        "clusters/prod/flux.yaml": flux(kustomization("shop")),
        "shop/job.yaml": job(spec="ttlSecondsAfterFinished: 600"),
    }

    assert severities_of(tmp_path, files, "ORD019") == ["warning"]


WAVE = 'argocd.argoproj.io/sync-wave: "{}"'
POST_SYNC = "argocd.argoproj.io/hook: PostSync"


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [(WAVE.format(1), 1), (POST_SYNC, 1), (WAVE.format(0), 1), (WAVE.format(-1), 0)],
    ids=["later wave", "after the sync", "same wave", "earlier wave"],
)
def test_a_migration_runs_before_its_application(
    tmp_path: Path, annotations: str, expected: int
) -> None:
    files = {
        "cd/app.yaml": application("shop", "shop"),
        "shop/job.yaml": job(annotations),
        "shop/web.yaml": deployment(),
    }

    assert severities_of(tmp_path, files, "ORD020") == ["warning"] * expected


SLOW = "startupProbe: {httpGet: {port: 80}, periodSeconds: 10, failureThreshold: 20}"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"wait": True}, 1),
        ({"wait": True, "interval": "10m"}, 0),
        ({"wait": True, "timeout": "5m"}, 0),
        ({"wait": True, "timeout": "2m"}, 1),
        ({}, 0),
    ],
    ids=["from the interval", "long interval", "long enough", "too short", "no gate"],
)
def test_the_timeout_is_derived_from_the_interval(
    tmp_path: Path, spec: dict[str, object], expected: int
) -> None:
    """kustomize-controller: without `timeout`, the interval less 30 s, and at least 30 s."""
    files = {
        "clusters/prod/flux.yaml": flux(kustomization("shop", **spec)),
        "shop/web.yaml": deployment(SLOW),
    }

    assert severities_of(tmp_path, files, "ORD018") == ["warning"] * expected


def test_a_timeout_counts_only_for_what_is_checked(tmp_path: Path) -> None:
    checks = [
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": "api", "namespace": "default"}
    ]
    files = {
        "clusters/prod/flux.yaml": flux(kustomization("shop", timeout="1m", healthChecks=checks)),
        "shop/web.yaml": deployment(SLOW),
        "shop/api.yaml": deployment().replace("name: web", "name: api"),
    }

    assert severities_of(tmp_path, files, "ORD018") == []


def test_a_chain_has_as_many_links_as_it_prints(tmp_path: Path) -> None:
    """A cluster directory is the parent of all of them and no link of the chain."""
    names = [f"unit-{number:02}" for number in range(16)]
    before = [None, *names]
    chained = [
        kustomization(name, wait=True, **({"dependsOn": [{"name": last}]} if last else {}))
        for last, name in zip(before, names, strict=False)
    ]
    objects = {f"{name}/a.yaml": CONFIG_MAP.replace("settings", name) for name in names}
    write_files(tmp_path, {"clusters/prod/flux.yaml": flux(*chained), **objects})

    ran = tidegate_in(tmp_path, "lint", "-o", "json", "--select", "ORD027")

    (finding,) = json.loads(ran.stdout)["findings"]
    assert finding["message"].startswith("15 ")
    assert len(finding["story"]) == 15


@pytest.mark.parametrize(
    ("source", "expected"), [("", 1), ("directory: {recurse: true}", 0)], ids=["flat", "recursive"]
)
def test_an_application_in_a_subdirectory_is_not_included(
    tmp_path: Path, source: str, expected: int
) -> None:
    files = {
        "root.yaml": application("root", "apps", source=source),
        "apps/a.yaml": application("a", "a"),
        "apps/team/b.yaml": application("b", "b"),
        "a/a.yaml": CONFIG_MAP,
        "b/b.yaml": CONFIG_MAP.replace("settings", "other"),
    }

    assert severities_of(tmp_path, files, "ORD048") == ["warning"] * expected


@pytest.mark.parametrize(
    ("retry", "expected"),
    [("{limit: -1}", 1), ("{limit: -1, refresh: true}", 0), ("{limit: 5}", 0)],
)
def test_endless_retries_keep_the_revision(tmp_path: Path, retry: str, expected: int) -> None:
    files = {
        "root.yaml": application("root", "apps", policy=f"automated: {{}}, retry: {retry}"),
        "apps/a.yaml": CONFIG_MAP,
    }

    assert severities_of(tmp_path, files, "argo.retry") == ["warning"] * expected


ANNOTATION = 'annotations: {{argocd.argoproj.io/sync-wave: "{{{{ .Values.{}.syncWave }}}}"}}'


@pytest.mark.parametrize(
    ("annotation", "source", "expected"),
    [
        ("", "", 1),
        (ANNOTATION.format("worker"), "", 0),
        ("", "helm: {valuesObject: {worker: {syncWave: 1}}}", 0),
    ],
    ids=["forgotten", "rendered", "own values"],
)
def test_each_wave_in_values_is_rendered(
    tmp_path: Path, annotation: str, source: str, expected: int
) -> None:
    def template(name: str, extra: str) -> str:
        return f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  {extra}\n"

    files = {
        "cd/app.yaml": application("shop", "shop", source=source),
        "shop/Chart.yaml": "apiVersion: v2\nname: shop\nversion: 1.0.0\n",
        "shop/values.yaml": "web: {syncWave: 1}\nworker: {syncWave: 2}\n",
        "shop/templates/web.yaml": template("web", ANNOTATION.format("web")),
        "shop/templates/worker.yaml": template("worker", annotation),
    }

    assert severities_of(tmp_path, files, "ORD047") == ["warning"] * expected


@pytest.mark.parametrize(
    ("entry", "severity"), [("../baes", "warning"), ("generated", "note")], ids=["typo", "other"]
)
def test_a_misspelled_entry_of_a_kustomization_that_no_unit_deploys(
    tmp_path: Path, entry: str, severity: str
) -> None:
    files = {
        "cd/app.yaml": application("shop", "shop"),
        "shop/settings.yaml": CONFIG_MAP,
        "bootstrap/base/kustomization.yaml": "namePrefix: a-\n",
        "bootstrap/lab/kustomization.yaml": f"resources: [{entry}]\n",
    }

    assert severities_of(tmp_path, files, "ORD049") == [severity]


def test_a_misspelled_path_of_one_of_two_clusters(tmp_path: Path) -> None:
    files = {}
    for cluster in ("east", "west"):
        root = kustomization("flux-system", path=f"./clusters/{cluster}")
        files[f"clusters/{cluster}/flux-system/gotk-sync.yaml"] = flux(root)
        files[f"clusters/{cluster}/flux-system/kustomization.yaml"] = "resources: [gotk-sync.yaml]"
        files[f"clusters/{cluster}/settings.yaml"] = CONFIG_MAP
    sync = "clusters/east/flux-system/gotk-sync.yaml"
    files[sync] = files[sync].replace("clusters/east", "clusters/eats")

    assert severities_of(tmp_path, files, "source.path") == ["error"]


@pytest.mark.parametrize(
    ("path", "severities"), [("shop", ["warning"]), ("other", [])], ids=["same", "another source"]
)
def test_an_application_in_two_files_of_a_directory(
    tmp_path: Path, path: str, severities: list[str]
) -> None:
    files = {
        "cd/one.yaml": application("shop", "shop"),
        "cd/two.yaml": application("shop", path, policy=""),
        "shop/settings.yaml": CONFIG_MAP,
        "other/settings.yaml": CONFIG_MAP,
    }

    assert severities_of(tmp_path, files, "ORD014") == severities
