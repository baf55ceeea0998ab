"""`lint` and `simulate` know what Argo CD, Flux and Kubernetes do, and do not do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.rule_pages import write_files
from tests.support.tidegate_runs import tidegate, tidegate_in

URL = "https://git.example.com/shop/platform.git"
GIT_REPOSITORY = f"""apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {{name: flux-system, namespace: flux-system}}
spec: {{interval: 1m, url: "{URL}", ref: {{branch: main}}}}
"""
STORAGE_CLASS = """apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: local}
provisioner: rancher.io/local-path
volumeBindingMode: WaitForFirstConsumer
"""
CLAIM = """apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: default}
spec: {accessModes: [ReadWriteOnce], storageClassName: local, resources: {requests: {storage: 1Gi}}}
"""
ROUTE = """apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: default}
spec: {parentRefs: [{name: edge}]}
"""
GATEWAY = """apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: default}
spec: {gatewayClassName: x, listeners: [{name: http, port: 80, protocol: HTTP}]}
"""
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: default}\n"


def flux_kustomization(name: str, **spec: object) -> str:
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


def application(name: str = "shop", path: str = "shop", source: str = "", spec: str = "") -> str:
    extra = f", {source}" if source else ""
    return (
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\n"
        f"metadata: {{name: {name}, namespace: argocd}}\n"
        "spec:\n  project: default\n"
        f'  source: {{repoURL: "{URL}", targetRevision: main, path: {path}{extra}}}\n'
        "  destination: {server: https://kubernetes.default.svc, namespace: default}\n"
        f"  syncPolicy: {{automated: {{}}}}\n{spec}"
    )


def lint_codes(folder: Path, files: dict[str, str], *options: str) -> dict[str, str]:
    """Return the severities by code."""
    write_files(folder, files)
    ran = tidegate_in(folder, "lint", "-o", "json", *options)
    return {finding["code"]: finding["severity"] for finding in json.loads(ran.stdout)["findings"]}


NAMESPACE_AND_HOOK = """apiVersion: v1
kind: Namespace
metadata: {name: shop, annotations: {argocd.argoproj.io/sync-wave: "-1"}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: migrate, namespace: shop, annotations: {argocd.argoproj.io/hook: PreSync}}
spec:
  template: {spec: {restartPolicy: Never, containers: [{name: a, image: "busybox:1"}]}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
"""


def test_a_namespace_moves_to_the_first_phase_that_needs_it(tmp_path: Path) -> None:
    write_files(tmp_path, {"cd/app.yaml": application(), "shop/all.yaml": NAMESPACE_AND_HOOK})

    plan = json.loads(tidegate("plan", tmp_path, "-o", "json").stdout)
    graph = json.loads(tidegate("graph", tmp_path, "-o", "json").stdout)
    simulated = tidegate("simulate", tmp_path, "--empty-cluster", "-o", "json")

    phases = {step["id"]: step["name"] for step in plan["steps"]}
    placed = {item["kind"]: phases[item["step"]] for item in plan["objects"]}
    assert placed == {"Namespace": "PreSync", "Job": "PreSync", "ConfigMap": "wave 0"}
    step_of = {step["id"]: step["phase"] for step in graph["steps"]}
    nodes = {node["ref"]["kind"]: node for node in graph["nodes"] if node["ref"]}
    assert step_of[nodes["Namespace"]["step"]] == "presync"
    events = [json.loads(line) for line in simulated.stdout.splitlines()]
    written = [event["kind"] for event in events if event["event"] == "object.written"]
    assert (simulated.returncode, written) == (0, ["Namespace", "Job", "ConfigMap"])
    assert set(lint_codes(tmp_path, {})) == {"units.repository-assumed"}


@pytest.mark.parametrize(
    ("directory", "code"),
    [("{}", ""), ("{recurse: false}", ""), ("{recurse: true}", "ORD053")],
)
def test_argo_cd_erases_an_empty_directory_block(tmp_path: Path, directory: str, code: str) -> None:
    files = {
        "cd/app.yaml": application(source=f"directory: {directory}"),
        "shop/kustomization.yaml": "namePrefix: web-\nresources: [settings.yaml]\n",
        "shop/settings.yaml": CONFIG_MAP,
    }

    codes = lint_codes(tmp_path, files)
    plan = json.loads(tidegate("plan", tmp_path, "-o", "json").stdout)

    assert [item for item in codes if item == "ORD053"] == ([code] if code else [])
    prefixed = any(item["name"] == "web-settings" for item in plan["objects"])
    assert prefixed is not bool(code)


@pytest.mark.parametrize(("gates", "code"), [({}, ""), ({"wait": True}, "ORD007")])
def test_a_kustomization_without_gates_does_not_wait_for_a_claim(
    tmp_path: Path, gates: dict[str, bool], code: str
) -> None:
    files = {
        "clusters/prod/flux.yaml": "---\n".join(
            (
                GIT_REPOSITORY,
                flux_kustomization("infra", **gates),
                flux_kustomization("apps", dependsOn=[{"name": "infra"}]),
            )
        ),
        "infra/claim.yaml": f"{STORAGE_CLASS}---\n{CLAIM}",
        "apps/settings.yaml": CONFIG_MAP,
    }

    codes = lint_codes(tmp_path, files)

    assert [item for item in codes if item == "ORD007"] == ([code] if code else [])


def test_kstatus_does_not_read_the_parents_of_a_route(tmp_path: Path) -> None:
    """The route is Current at once: nothing waits for its Gateway, and `wait` changes nothing."""
    gated = {
        "clusters/prod/flux.yaml": "---\n".join(
            (
                GIT_REPOSITORY,
                flux_kustomization("infra", wait=True),
                flux_kustomization("apps", dependsOn=[{"name": "infra"}]),
            )
        ),
        "infra/route.yaml": ROUTE,
        "apps/gateway.yaml": GATEWAY,
    }
    ungated = {**gated, "clusters/prod/flux.yaml": gated["clusters/prod/flux.yaml"]}
    ungated["clusters/prod/flux.yaml"] = ungated["clusters/prod/flux.yaml"].replace(
        '"wait": true', '"wait": false'
    )

    codes = lint_codes(tmp_path / "gated", gated)
    codes_without_wait = lint_codes(tmp_path / "ungated", ungated)

    assert "ORD006" not in codes
    assert "ORD016" not in codes_without_wait


def migration(environment: str) -> str:
    return f"""apiVersion: batch/v1
kind: Job
metadata: {{name: migrate, namespace: default, annotations: {{argocd.argoproj.io/sync-wave: "1"}}}}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: a
        image: "a:1"
        command: [python, manage.py, migrate]
        {environment}
"""


PLUGINS = """apiVersion: v1
kind: Service
metadata: {name: plugins, namespace: default}
spec: {selector: {app: plugins}, ports: [{port: 6738}]}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: plugins
  namespace: default
  annotations: {argocd.argoproj.io/sync-wave: "2"}
spec:
  selector: {matchLabels: {app: plugins}}
  template:
    metadata: {labels: {app: plugins}}
    spec: {containers: [{name: a, image: "a:1"}]}
"""
SHARED = "envFrom: [{configMapRef: {name: env}}]"


@pytest.mark.parametrize(
    ("environment", "setting", "fails"),
    [
        (SHARED, 'API_URL: "http://plugins:6738"', False),
        (SHARED, 'DATABASE_URL: "postgres://plugins:6738/a"', True),
        ('env: [{name: API_URL, value: "http://plugins:6738"}]', "a: b", True),
    ],
)
def test_a_variable_of_shared_settings_is_no_call_unless_it_is_the_database(
    tmp_path: Path, environment: str, setting: str, *, fails: bool
) -> None:
    settings = (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: env, namespace: default}\n"
        f"data: {{{setting}}}\n"
    )
    files = {"all.yaml": "---\n".join((settings, migration(environment), PLUGINS))}

    severities = lint_codes(tmp_path, files)
    simulated = tidegate("simulate", tmp_path)

    assert ("error" in severities.values()) is fails
    assert simulated.returncode == (4 if fails else 0)


def test_an_alert_can_refer_to_kinds_of_other_controllers(tmp_path: Path) -> None:
    def alert(kind: str) -> str:
        return (
            "apiVersion: notification.toolkit.fluxcd.io/v1beta3\nkind: Alert\n"
            "metadata: {name: all, namespace: flux-system}\n"
            f'spec: {{providerRef: {{name: x}}, eventSources: [{{kind: {kind}, name: "*"}}]}}\n'
        )

    flux = f"{GIT_REPOSITORY}---\n{flux_kustomization('infra')}"
    added = {"clusters/prod/flux.yaml": flux, "infra/a.yaml": alert("FluxInstance")}
    misspelt = {"clusters/prod/flux.yaml": flux, "infra/a.yaml": alert("HelmReleases")}

    assert "schema.refused" not in lint_codes(tmp_path / "added", added)
    assert lint_codes(tmp_path / "misspelt", misspelt)["schema.refused"] == "error"


HEALTH_LUA = "return {status = obj.status.sync.status, operationState = 1}"
CHILDREN = {
    "cd/root.yaml": application("root", "children"),
    "children/a.yaml": application("a", "a").replace(
        "namespace: argocd}", 'namespace: argocd, annotations: {argocd.argoproj.io/sync-wave: "0"}}'
    ),
    "children/b.yaml": application("b", "b").replace(
        "namespace: argocd}", 'namespace: argocd, annotations: {argocd.argoproj.io/sync-wave: "1"}}'
    ),
    "a/a.yaml": CONFIG_MAP,
    "b/b.yaml": CONFIG_MAP.replace("settings", "other"),
}
HEALTH_KEY = "resource.customizations.health.argoproj.io_Application"
SETTINGS = {
    "values of the chart": (
        "bootstrap/values-argocd.yaml",
        f"configs:\n  cm:\n    {HEALTH_KEY}: |\n      {HEALTH_LUA}\n",
    ),
    "values of a chart around it": (
        "charts/argo/values.yaml",
        f"argo-cd:\n  configs:\n    cm:\n      {HEALTH_KEY}: |\n        {HEALTH_LUA}\n",
    ),
    "values as text": (
        "bootstrap/release.yaml",
        (
            "kind: Release\nspec:\n  helm:\n    values: |\n      configs:\n        cm:\n"
            f"          {HEALTH_KEY}: |\n            {HEALTH_LUA}\n"
        ),
    ),
    "object of the operator": (
        "openshift/argocd.yaml",
        (
            "apiVersion: argoproj.io/v1beta1\nkind: ArgoCD\n"
            "metadata: {name: gitops, namespace: argocd}\nspec:\n  resourceHealthChecks:\n"
            f"  - group: argoproj.io\n    kind: Application\n    check: |\n      {HEALTH_LUA}\n"
        ),
    ),
    "further settings of the operator": (
        "openshift/argocd.yaml",
        (
            "apiVersion: argoproj.io/v1beta1\nkind: ArgoCD\n"
            "metadata: {name: gitops, namespace: argocd}\nspec:\n  extraConfig:\n"
            f"    {HEALTH_KEY}: |\n      {HEALTH_LUA}\n"
        ),
    ),
}


@pytest.mark.parametrize(("name", "text"), SETTINGS.values(), ids=SETTINGS)
def test_a_health_check_for_applications_is_found_where_people_write_it(
    tmp_path: Path, name: str, text: str
) -> None:
    without, with_check = tmp_path / "without", tmp_path / "with"

    assert lint_codes(without, CHILDREN)["ORD011"] == "warning"
    assert "ORD011" not in lint_codes(with_check, {**CHILDREN, name: text})


ROUTE_OF_OPENSHIFT = """apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: web, namespace: shop}
spec: {to: {kind: Service, name: web}}
---
"""
WORKLOAD_OF_OPENSHIFT = """apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      serviceAccountName: deployer
      containers: [{name: a, image: "a:1", volumeMounts: [{name: ca, mountPath: /ca}]}]
      volumes: [{name: ca, configMap: {name: openshift-service-ca.crt}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: shared, namespace: openshift-config}
"""


def test_a_cluster_has_what_its_distribution_has(tmp_path: Path) -> None:
    """The Route shows that the cluster is OpenShift; without it, nothing does."""
    plain = write_files(tmp_path / "plain", {"all.yaml": WORKLOAD_OF_OPENSHIFT})
    shown = {"all.yaml": ROUTE_OF_OPENSHIFT + WORKLOAD_OF_OPENSHIFT}
    openshift = write_files(tmp_path / "openshift", shown)

    missing = [
        json.loads(tidegate("lint", folder, "--empty-cluster", "-o", "json").stdout)["emptyCluster"]
        for folder in (plain, openshift)
    ]
    codes = [
        tidegate("simulate", folder, "--until", "30m").returncode for folder in (plain, openshift)
    ]

    assert [len(item["assumed"]) for item in missing] == [3, 0]
    assert codes == [4, 0]
