"""`tidegate lint` reports references to objects that nothing in the repository creates (ORD061)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.in_process_command import run_in_process
from tests.support.manifest_texts import (
    SOURCE,
    URL,
    application,
    config_map,
    kustomization,
    pods,
)
from tests.support.rule_pages import write_files

NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: other}\n"
READER = pods("Deployment", "web", maps=("settings",))


class Reported(NamedTuple):
    code: str
    severity: str
    message: str
    why: str
    file: str


def lint(folder: Path, *args: str) -> list[Reported]:
    ran = run_in_process(folder, os.environ, ("lint", "--offline", *args, "-o", "json", "."))
    return [
        Reported(*(finding[field] for field in Reported._fields))
        for finding in json.loads(ran.stdout)["findings"]
        if finding["code"] in {"ORD001", "ORD061"}
    ]


def lint_of_shop(folder: Path, *texts: str, **files: str) -> list[Reported]:
    shop = {f"shop/{at}.yaml": text for at, text in enumerate(texts)}
    return lint(write_files(folder, {"app.yaml": application(), **shop, **files}))


def with_field(text: str, field: str) -> str:
    """The manifest of a workload with a field in the spec of its pods."""
    return text.replace("      containers:", f"      {field}\n      containers:")


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        (with_field(pods("Deployment", "web"), "serviceAccountName: robot"), "ServiceAccount"),
        (READER, "ConfigMap"),
        (pods("Deployment", "web", secrets=("password",)), "Secret"),
        (
            with_field(
                pods("Deployment", "web"),
                "volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]",
            ),
            "PersistentVolumeClaim",
        ),
        (
            """apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: shop}
spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}
""",
            "Service",
        ),
        (
            """apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: shop}
spec: {rules: [{backendRefs: [{name: web, port: 80}]}]}
""",
            "Service",
        ),
    ],
    ids=["account", "map", "secret", "claim", "ingress", "route"],
)
def test_a_reference_to_an_object_that_nothing_creates_is_a_warning(
    text: str, missing: str, tmp_path: Path
) -> None:
    findings = lint_of_shop(tmp_path, text)

    assert [finding.severity for finding in findings] == ["warning"]
    assert f"refers to {missing} `shop/" in findings[0].message


@pytest.mark.parametrize(
    ("provided", "severity"),
    [("", "note"), ("metadata: {name: own}\n", "warning")],
    ids=["of the cluster", "of the repository"],
)
@pytest.mark.parametrize(
    ("kind", "user"),
    [
        (
            "storage.k8s.io/v1 StorageClass",
            """apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: shop}
spec: {storageClassName: fast, accessModes: [ReadWriteOnce]}
""",
        ),
        (
            "networking.k8s.io/v1 IngressClass",
            """apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: shop}
spec: {ingressClassName: fast}
""",
        ),
    ],
    ids=["storage", "ingress"],
)
def test_a_class_is_missing_only_in_a_repository_that_deploys_classes(
    kind: str, user: str, provided: str, severity: str, tmp_path: Path
) -> None:
    version, _, name = kind.partition(" ")
    classes = f"apiVersion: {version}\nkind: {name}\n{provided}" if provided else ""

    (finding,) = lint_of_shop(tmp_path, user, *filter(None, (classes,)))

    assert f"{name} `fast`" in finding.message
    assert finding.severity == severity


def test_a_missing_namespace_is_a_warning_if_others_exist(tmp_path: Path) -> None:
    app = application().replace(", syncOptions: [CreateNamespace=true]", "")
    shop = {"shop/settings.yaml": config_map("settings"), "shop/other.yaml": NAMESPACE}
    write_files(tmp_path, {"app.yaml": app, **shop})

    (finding,) = lint(tmp_path)

    assert finding.severity == "warning"
    assert "Namespace `shop`" in finding.message


def test_a_repository_that_creates_no_namespace_has_one_finding_about_it(tmp_path: Path) -> None:
    create = ", syncOptions: [CreateNamespace=true]"
    other = application("other", "other").replace("namespace: shop}", "namespace: other}")
    files = {
        "app.yaml": application().replace(create, ""),
        "other.yaml": other.replace(create, ""),
        "shop/settings.yaml": config_map("settings"),
        "other/settings.yaml": config_map("settings", inside="other"),
    }
    write_files(tmp_path, files)

    (finding,) = lint(tmp_path)

    assert finding.severity == "warning"


SERVICE = """apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {selector: {app: web}, ports: [{name: http, port: 80}]}
"""
BACKENDS = {
    "Ingress": """apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: shop}
spec: {defaultBackend: {service: {name: web, port: %s}}}
""",
    "HTTPRoute": """apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: shop}
spec: {rules: [{backendRefs: [{name: web, port: %s}]}]}
""",
}


@pytest.mark.parametrize(
    ("kind", "port", "expected"),
    [
        ("Ingress", "{number: 81}", ["warning"]),
        ("Ingress", "{name: https}", ["warning"]),
        ("Ingress", "{number: 80}", []),
        ("Ingress", "{name: http}", []),
        ("HTTPRoute", "81", ["warning"]),
        ("HTTPRoute", "80", []),
    ],
)
def test_a_backend_has_a_port_of_its_service(
    kind: str, port: str, expected: list[str], tmp_path: Path
) -> None:
    findings = lint_of_shop(tmp_path, SERVICE, BACKENDS[kind] % port)

    assert [finding.severity for finding in findings] == expected


def test_a_headless_service_may_have_any_port(tmp_path: Path) -> None:
    headless = SERVICE.replace("spec: {", "spec: {clusterIP: None, ")

    assert lint_of_shop(tmp_path, headless, BACKENDS["HTTPRoute"] % "81") == []


@pytest.mark.parametrize(
    ("selector", "expected"), [("wbe", ["warning"]), ("other", []), ("web", [])]
)
def test_a_service_selects_pods_by_a_misspelled_label(
    selector: str, expected: list[str], tmp_path: Path
) -> None:
    service = SERVICE.replace("{app: web}", f"{{app: {selector}}}")

    findings = lint_of_shop(tmp_path, service, pods("Deployment", "web"))

    assert [finding.severity for finding in findings] == expected


def test_swapped_letters_are_a_misspelling_whatever_may_create_the_object(tmp_path: Path) -> None:
    web = pods("Deployment", "web", maps=("wbe",))

    (finding,) = lint_of_shop(tmp_path, web, config_map("web"), GENERATOR)

    assert finding.severity == "warning"


def test_an_optional_reference_is_no_finding(tmp_path: Path) -> None:
    optional = READER.replace("{name: settings}", "{name: settings, optional: true}")

    assert lint_of_shop(tmp_path, optional) == []


GENERATOR = """apiVersion: generators.example.com/v1
kind: Password
metadata: {name: settings, namespace: shop}
"""
JOB = with_field(pods("Job", "setup"), "serviceAccountName: default-writer").replace(
    "default-writer", "writer"
)
ACCOUNT = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: writer, namespace: shop}\n"
ROLE = """apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: writer, namespace: shop}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [create]}]
"""
BINDING = """apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: writer, namespace: shop}
subjects: [{kind: ServiceAccount, name: writer, namespace: shop}]
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: writer}
"""
COPIED = config_map(
    "settings",
    ', annotations: {reflector.v1.k8s.emberstack.com/reflection-allowed: "true"}',
    inside="other",
)
CHART = application("chart").replace(
    f"repoURL: {URL}, path: shop", "repoURL: https://charts.example.com, chart: web"
)


@pytest.mark.parametrize(
    ("texts", "files", "reason"),
    [
        ((GENERATOR,), {}, "Password `shop/settings`"),
        ((JOB, ACCOUNT, ROLE, BINDING), {}, "Job `shop/setup`"),
        ((COPIED, NAMESPACE), {}, "other/settings"),
        ((), {"chart.yaml": CHART}, "`Application/argocd/chart`"),
        ((), {"bootstrap/settings.yaml": config_map("settings")}, "`bootstrap/settings.yaml`"),
        (
            (),
            {"bootstrap/run.sh": "kubectl -n shop create configmap settings --from-file=a\n"},
            "`bootstrap/run.sh`",
        ),
    ],
    ids=["operator", "Job", "copied", "unrendered chart", "manifest", "script"],
)
def test_an_object_that_an_unknown_source_may_create_is_a_note(
    texts: tuple[str, ...], files: dict[str, str], reason: str, tmp_path: Path
) -> None:
    findings = lint_of_shop(tmp_path, READER, *texts, **files)

    (finding,) = [item for item in findings if "ConfigMap `shop/settings`" in item.message]
    assert finding.severity == "note"
    assert reason in finding.why


def test_a_secret_that_a_volume_creates_is_a_note(tmp_path: Path) -> None:
    provider = """apiVersion: secrets-store.csi.x-k8s.io/v1
kind: SecretProviderClass
metadata: {name: vault, namespace: shop}
spec: {provider: vault, secretObjects: [{secretName: password, type: Opaque}]}
"""
    web = pods("Deployment", "web", secrets=("password",))

    findings = lint_of_shop(tmp_path, web, provider)

    assert "warning" not in {finding.severity for finding in findings}


def test_a_chart_of_another_namespace_creates_nothing_here(tmp_path: Path) -> None:
    chart = CHART.replace("namespace: shop}", "namespace: elsewhere}")

    (finding,) = lint_of_shop(tmp_path, READER, **{"chart.yaml": chart})

    assert finding.severity == "warning"


def test_a_repository_without_secrets_gets_them_from_elsewhere(tmp_path: Path) -> None:
    web = pods("Deployment", "web", secrets=("one", "two", "three"))

    assert {finding.severity for finding in lint_of_shop(tmp_path, web)} == {"note"}


def test_a_job_without_permissions_creates_nothing(tmp_path: Path) -> None:
    (finding,) = lint_of_shop(tmp_path, READER, JOB, ACCOUNT)

    assert finding.severity == "warning"


def cluster(name: str) -> str:
    return f"{SOURCE}---\n{kustomization('apps')}".replace("./apps", f"./apps/{name}")


@pytest.mark.parametrize(
    ("settings", "severity"), [("", "warning"), (config_map("settings"), "note")]
)
def test_an_object_that_another_cluster_of_the_repository_has(
    settings: str, severity: str, tmp_path: Path
) -> None:
    namespace = NAMESPACE.replace("other", "shop")
    files = {
        "clusters/staging/flux.yaml": cluster("staging"),
        "clusters/production/flux.yaml": cluster("production"),
        "apps/staging/all.yaml": f"{namespace}---\n{READER}",
        "apps/production/all.yaml": f"{namespace}---\n{settings}",
    }
    write_files(tmp_path, files)

    findings = [item for item in lint(tmp_path) if "settings" in item.message]

    assert [finding.severity for finding in findings] == [severity]


def test_a_part_of_a_repository_is_not_enough_to_know(tmp_path: Path) -> None:
    files = {
        "app.yaml": application(),
        "other.yaml": application("other", "other"),
        "shop/web.yaml": READER,
        "other/settings.yaml": config_map("settings"),
    }
    write_files(tmp_path, files)

    assert lint(tmp_path) == []
    assert [finding.severity for finding in lint(tmp_path, "--unit", "shop")] == ["note"]


def test_several_users_of_a_missing_object_are_one_finding(tmp_path: Path) -> None:
    other = pods("Deployment", "other", maps=("settings",))

    assert len(lint_of_shop(tmp_path, READER, other)) == 1


GONE = "{apiVersion: apps/v1, kind: Deployment, name: gone, namespace: default}"
HELM = """apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: jetstack, namespace: flux-system}
spec: {interval: 1h, url: https://charts.jetstack.io}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: certs, namespace: flux-system}
spec:
  interval: 10m
  install: {crds: Skip}
  chart:
    spec: {chart: cert-manager, version: 1.x, sourceRef: {kind: HelmRepository, name: jetstack}}
"""
INTO_DEFAULT = HELM.replace("interval: 10m", "interval: 10m\n  targetNamespace: default")
ISSUER = """apiVersion: cert-manager.io/v1
kind: ClusterIssuer
metadata: {name: own}
spec: {selfSigned: {}}
"""


@pytest.mark.parametrize(("crds", "count"), [("Skip", 1), ("Create", 0)])
def test_crds_that_a_release_skips_are_missing(crds: str, count: int, tmp_path: Path) -> None:
    files = {
        "clusters/source.yaml": SOURCE,
        "clusters/units.yaml": f"{kustomization('certs')}---\n{kustomization('web', 'certs')}",
        "certs/release.yaml": HELM.replace("Skip", crds),
        "web/issuer.yaml": ISSUER,
    }
    write_files(tmp_path, files)

    findings = lint(tmp_path)

    assert [(item.severity, item.file) for item in findings] == [
        ("warning", "certs/release.yaml")
    ] * count


@pytest.mark.parametrize(
    ("deployed", "severity"),
    [(config_map("settings", inside="default"), "warning"), (INTO_DEFAULT, "note")],
    ids=["all objects known", "a chart is unknown"],
)
def test_a_health_check_of_an_object_that_nothing_deploys(
    deployed: str, severity: str, tmp_path: Path
) -> None:
    files = {
        "clusters/source.yaml": SOURCE,
        "clusters/web.yaml": f"{kustomization('web')}  healthChecks: [{GONE}]\n",
        "web/all.yaml": deployed,
    }
    write_files(tmp_path, files)

    (finding,) = lint(tmp_path)

    assert (finding.code, finding.severity) == ("ORD001", severity)


def test_lint_graph_and_simulate_name_the_same_missing_objects(tmp_path: Path) -> None:
    web = with_field(
        pods("Deployment", "web", maps=("settings",), secrets=("password",)),
        "serviceAccountName: robot",
    )
    write_files(tmp_path, {"web.yaml": web.replace("namespace: shop", "namespace: default")})
    names = ("default/settings", "default/password", "default/robot")

    graph = run_in_process(tmp_path, os.environ, ("graph", ".")).stdout
    simulated = run_in_process(tmp_path, os.environ, ("simulate", ".")).stdout
    linted = " ".join(finding.message for finding in lint(tmp_path))

    assert all(name in text for text in (graph, simulated, linted) for name in names)
