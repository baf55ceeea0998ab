"""Repositories of whole clusters: what starts a cluster, what it reaches, and what it leaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.file_trees import (
    GIT_REPOSITORY,
    URL,
    config_map,
    kustomization,
    lint_codes,
    lint_report,
    unit_names,
    write_files,
)

CLUSTER = GIT_REPOSITORY + kustomization("flux-system", "./clusters/prod")
APPS = kustomization("apps", "./apps")


def flux_instance(path: str, *, version: str = "2.x", url: str = URL) -> str:
    return f"""\
---
apiVersion: fluxcd.controlplane.io/v1
kind: FluxInstance
metadata: {{name: flux, namespace: flux-system}}
spec:
  distribution: {{version: "{version}", registry: ghcr.io/fluxcd}}
  sync: {{kind: GitRepository, url: "{url}", ref: refs/heads/main, path: {path}}}
"""


def release(name: str, namespace: str = "web", *, source: str = "charts") -> str:
    return f"""\
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  interval: 1h
  chart: {{spec: {{chart: {name}, sourceRef: {{kind: HelmRepository, name: {source}}}}}}}
"""


def notes(root: Path) -> dict[str, str]:
    findings = lint_report(root).findings
    return {finding.code: finding.message for finding in findings if finding.severity == "note"}


def test_a_flux_instance_starts_its_cluster(tmp_path: Path) -> None:
    files = {
        f"clusters/{name}/flux-system/flux-instance.yaml": flux_instance(f"clusters/{name}")
        for name in ("prod", "staging")
    }
    files |= {"clusters/prod/apps.yaml": APPS, "clusters/staging/apps.yaml": APPS}
    root = write_files(tmp_path, {**files, "apps/cm.yaml": config_map("settings", "default")})

    cluster = ["Kustomization/flux-system/flux-system", "Kustomization/flux-system/apps"]
    assert unit_names(root) == [*cluster, *cluster]
    assert lint_codes(root) == []


def test_directories_with_the_layout_of_other_repositories_do_not_stop_a_command(
    tmp_path: Path,
) -> None:
    other = GIT_REPOSITORY.replace("flux-system, ", "other, ").replace("/y.git", "/other.git")
    unit = kustomization("web", "./components/web").replace("name: flux-system,", "name: other,")
    root = write_files(
        tmp_path,
        {
            "clusters/prod/apps.yaml": APPS,
            "apps/components/web/sync.yaml": other + unit,
            "infra/components/web/sync.yaml": other + unit.replace("name: web", "name: infra"),
        },
    )

    assert "Kustomization/flux-system/apps" in unit_names(root)


@pytest.mark.parametrize(
    "file", ["archive/web/release.yaml", "clusters/old/web.yaml", "apps/unused/release.yaml"]
)
def test_a_release_that_no_cluster_reaches_is_not_judged(tmp_path: Path, file: str) -> None:
    root = write_files(
        tmp_path,
        {
            "clusters/prod/flux-system/sync.yaml": CLUSTER,
            "clusters/prod/apps.yaml": APPS,
            "apps/kustomization.yaml": "resources: [cm.yaml]\n",
            "apps/cm.yaml": config_map("settings", "default"),
            file: release("web", source="gone"),
        },
    )

    assert lint_codes(root) == []
    assert "HelmRelease/web/web" not in unit_names(root)
    assert file in notes(root)["units.left-out"]


def test_a_kustomization_outside_of_the_directories_of_clusters_is_not_judged(
    tmp_path: Path,
) -> None:
    root = write_files(
        tmp_path,
        {
            "clusters/prod/flux-system/sync.yaml": CLUSTER,
            "clusters/prod/cm.yaml": config_map("settings", "default"),
            "archive/ks.yaml": kustomization("web", "./clusters/prod/gone"),
            "clusters/other/ks.yaml": kustomization("other", "./clusters/other/gone"),
        },
    )

    (error,) = [item for item in lint_report(root).findings if item.severity != "note"]
    assert (error.code, error.location and error.location.split(":")[0]) == (
        "source.path",
        "clusters/other/ks.yaml",
    )


def test_a_commented_entry_below_a_directory_without_kustomization_is_left_out(
    tmp_path: Path,
) -> None:
    root = write_files(
        tmp_path,
        {
            "flux/ks.yaml": GIT_REPOSITORY + kustomization("cluster", "./apps"),
            "apps/web/kustomization.yaml": "resources:\n- ./cm.yaml\n# - ./db/ks.yaml\n",
            "apps/web/cm.yaml": config_map("settings", "default"),
            "apps/web/db/ks.yaml": kustomization("db", "./apps/web/db/app"),
        },
    )

    assert unit_names(root) == ["Kustomization/flux-system/cluster"]
    assert lint_codes(root) == []


def test_units_below_a_cluster_that_cannot_be_read_are_not_judged(tmp_path: Path) -> None:
    root = write_files(
        tmp_path,
        {
            "clusters/prod/flux-system/sync.yaml": CLUSTER,
            "clusters/prod/kustomization.yaml": "resources: [flux-system/sync.yaml, broken.yaml]\n",
            "clusters/prod/broken.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: *name\n",
            "apps/web/release.yaml": release("web", source="gone"),
        },
    )

    assert "source.object" not in lint_codes(root)
    assert "source.undeclared" not in lint_codes(root)


def test_the_source_of_a_cluster_is_not_that_of_another_one(tmp_path: Path) -> None:
    branch = CLUSTER.replace("clusters/prod", "clusters/dev").replace("branch: main", "branch: dev")
    root = write_files(
        tmp_path,
        {
            "clusters/dev/config/cluster.yaml": branch,
            "clusters/prod/infra/web.yaml": kustomization("web", "./web"),
            "web/cm.yaml": config_map("settings", "default"),
        },
    )

    assert "Kustomization/flux-system/web" in notes(root)["units.checkout"]


def test_a_cluster_that_depends_on_the_flux_beside_it_is_no_cycle(tmp_path: Path) -> None:
    cluster = kustomization("cluster", "./cluster", more="dependsOn: [{name: flux}]")
    root = write_files(
        tmp_path,
        {
            "cluster/config/cluster.yaml": GIT_REPOSITORY + cluster,
            "cluster/config/flux.yaml": kustomization("flux", "./flux"),
            "flux/cm.yaml": config_map("settings", "default"),
        },
    )

    assert lint_codes(root) == []
    assert "Kustomization/flux-system/flux" in notes(root)["units.bootstrap"]


VARIABLES = "postBuild: {substituteFrom: [{kind: ConfigMap, name: settings}]}"
SETTINGS = config_map("settings", "flux-system") + "data: {zone: a}\n"


@pytest.mark.parametrize(
    ("script", "codes"),
    [
        ({}, ["ORD006"]),
        ({"Taskfile.yml": "tasks:\n  up: kubectl apply -f vars/settings.yaml\n"}, []),
        ({"Taskfile.yml": "tasks:\n  up: kubectl apply -f vars/other.yaml\n"}, ["ORD006"]),
    ],
)
def test_variables_that_a_script_applies_are_no_deadlock(
    tmp_path: Path, script: dict[str, str], codes: list[str]
) -> None:
    cluster = GIT_REPOSITORY + kustomization("cluster", "./flux", more=VARIABLES)
    root = write_files(
        tmp_path, {"flux/cluster.yaml": cluster, "flux/vars/settings.yaml": SETTINGS, **script}
    )

    assert lint_codes(root) == codes


@pytest.mark.parametrize(
    ("version", "codes"), [("2.8.x", []), ("2.9.1", ["render.substitute.missing"])]
)
def test_an_unset_variable_is_an_error_from_flux_2_9_on(
    tmp_path: Path, version: str, codes: list[str]
) -> None:
    apps = kustomization("apps", "./apps", more='postBuild: {substitute: {zone: "a"}}')
    root = write_files(
        tmp_path,
        {
            "clusters/prod/flux.yaml": flux_instance("clusters/prod", version=version),
            "clusters/prod/apps.yaml": apps,
            "apps/cm.yaml": config_map("web", "default") + 'data: {zone: "${zones}"}\n',
        },
    )

    assert lint_codes(root) == codes


@pytest.mark.parametrize(("version", "codes"), [("2.7.2", []), ("2.8.0", ["flux.version"])])
def test_an_api_version_that_the_flux_of_the_repository_serves_is_a_note(
    tmp_path: Path, version: str, codes: list[str]
) -> None:
    old = APPS.replace("fluxcd.io/v1", "fluxcd.io/v1beta2")
    root = write_files(
        tmp_path,
        {
            "clusters/prod/flux.yaml": flux_instance("clusters/prod", version=version),
            "clusters/prod/apps.yaml": old,
            "apps/cm.yaml": config_map("web", "default"),
        },
    )

    assert lint_codes(root) == codes


CLUSTER_ISSUER = """\
---
apiVersion: cert-manager.io/v1
kind: ClusterIssuer
metadata: {name: ca}
spec: {selfSigned: {}}
"""


@pytest.mark.parametrize(
    ("base", "codes"),
    [
        ("https://example.com/cert-manager/cert-manager/releases/cert-manager.crds.yaml", []),
        ("https://example.com/other/dashboards/all.yaml", ["ORD008"]),
    ],
)
def test_a_crd_that_may_be_in_a_base_that_was_not_fetched_is_not_reported(
    tmp_path: Path, base: str, codes: list[str]
) -> None:
    files = "\n".join(f"- {name}" for name in (base, "issuer.yaml", "release.yaml", "repo.yaml"))
    repository = """\
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: charts, namespace: web}
spec: {interval: 1h, url: "https://charts.example.com"}
"""
    root = write_files(
        tmp_path,
        {
            "clusters/prod/apps.yaml": GIT_REPOSITORY + APPS,
            "apps/kustomization.yaml": f"resources:\n{files}\n",
            "apps/issuer.yaml": CLUSTER_ISSUER,
            "apps/release.yaml": release("cert-manager"),
            "apps/repo.yaml": repository,
        },
    )

    assert [code for code in lint_codes(root) if code == "ORD008"] == codes


def single_cluster(spec: str = "", app: str = "") -> dict[str, str]:
    apps = kustomization("apps", "./apps", more=spec)
    files = {"clusters/prod/apps.yaml": GIT_REPOSITORY + apps}
    return {**files, "apps/app.yaml": app or config_map("settings", "default")}


@pytest.mark.parametrize(
    ("expression", "severity"),
    [
        ("status.conditions.filter(e, e.type == 'Ready').all(e, e.status == 'True')", "note"),
        ("status.conditions.all(e, e.status == 'True')", "warning"),
    ],
)
def test_an_expression_without_a_status_fails_instead_of_passing(
    tmp_path: Path, expression: str, severity: str
) -> None:
    check = f'{{apiVersion: example.com/v1, kind: Widget, current: "{expression}"}}'
    root = write_files(tmp_path, single_cluster(f"wait: true, healthCheckExprs: [{check}]"))

    (finding,) = [item for item in lint_report(root).findings if item.code == "ORD017"]
    assert finding.severity == severity


def test_a_field_without_effect_is_one_finding_for_all_releases(tmp_path: Path) -> None:
    releases = [
        release(name).replace("interval: 1h", "interval: 1h\n  rollback: {recreate: true}")
        for name in ("web", "db")
    ]
    root = write_files(tmp_path, single_cluster(app="".join(releases)))

    (finding,) = [item for item in lint_report(root).findings if item.code == "flux.ignored"]
    assert finding.severity == "note"


def test_what_only_tidegate_does_not_support_is_a_note(tmp_path: Path) -> None:
    source = GIT_REPOSITORY.replace("interval: 1m,", "interval: 1m, provider: azure,")
    root = write_files(tmp_path, single_cluster(app=source.replace("flux-system", "default")))

    assert lint_codes(root) == []
    assert "flux.unsupported" in notes(root)


def test_a_health_check_of_a_release_of_another_unit_is_possible(tmp_path: Path) -> None:
    check = "{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, name: web, namespace: web}"
    other = kustomization("other", "./other", more=f"healthChecks: [{check}]")
    root = write_files(
        tmp_path,
        {
            **single_cluster(app=release("web")),
            "clusters/prod/other.yaml": other,
            "other/cm.yaml": config_map("other", "default"),
        },
    )

    assert "flux.uncheckable" not in lint_codes(root)


ENCRYPTED = """\
apiVersion: v1
kind: Secret
metadata: {name: token, namespace: default}
data: {token: "ENC[AES256_GCM,data:AAAA,iv:AAAA,tag:AAAA,type:str]"}
sops:
  azure_kv:
  - {vault_url: "https://vault.example.com", name: sops, version: a, enc: AAAA}
  lastmodified: "2026-01-01T00:00:00Z"
  mac: ENC[AES256_GCM,data:AAAA,iv:AAAA,tag:AAAA,type:str]
  encrypted_regex: ^data$
  version: 3.9.0
"""


def test_a_secret_that_only_a_cloud_can_decrypt_is_no_finding(tmp_path: Path) -> None:
    root = write_files(tmp_path, single_cluster("decryption: {provider: sops}", ENCRYPTED))

    assert [item.code for item in lint_report(root).findings if "sops" in item.code] == []


@pytest.mark.parametrize(
    ("data", "codes"),
    [
        ('{AZURE_CLIENT_ID: "04561461-0f92-42b3-9328-8b0c1bba4641", SYNC: 12h, RETRY: "3"}', []),
        ('{AZURE_CLIENT_SECRET: "04561461-0f92-42b3-9328-8b0c1bba4641"}', ["ORD044"]),
    ],
)
def test_identifiers_and_switches_in_a_secret_are_not_secret(
    tmp_path: Path, data: str, codes: list[str]
) -> None:
    secret = f"""\
apiVersion: v1
kind: Secret
metadata: {{name: settings, namespace: default}}
stringData: {data}
"""
    root = write_files(tmp_path, single_cluster(app=secret))

    assert lint_codes(root) == codes
