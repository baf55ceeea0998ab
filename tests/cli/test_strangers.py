"""What public repositories have in common, and what `lint` must not report about it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.file_trees import (
    GIT_REPOSITORY,
    URL,
    application,
    config_map,
    kustomization,
    lint_codes,
    lint_report,
    unit_names,
    write_files,
)
from tests.support.tidegate_runs import tidegate

NAMESPACE = "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: web}\n"
INSTANCE = f"""\
---
apiVersion: fluxcd.controlplane.io/v1
kind: FluxInstance
metadata: {{name: flux}}
spec:
  distribution: {{version: "2.9", registry: ghcr.io/fluxcd}}
  sync: {{kind: GitRepository, url: "{URL}", ref: refs/heads/main, path: clusters/prod}}
"""
POLICY = """\
---
apiVersion: admissionregistration.k8s.io/v1beta1
kind: MutatingAdmissionPolicyBinding
metadata: {name: jitter}
spec: {policyName: jitter}
"""


def overlay(*resources: str, more: str = "") -> str:
    return f"""\
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [{", ".join(resources)}]
{more}"""


def test_a_flux_instance_that_its_own_cluster_deploys_starts_the_cluster(tmp_path: Path) -> None:
    root = write_files(
        tmp_path,
        {
            "clusters/prod/kustomization.yaml": overlay("apps.yaml"),
            "clusters/prod/apps.yaml": kustomization("apps", "./apps"),
            "apps/system/kustomization.yaml": overlay(
                "instance/sync.yaml", more="namespace: flux-system"
            ),
            "apps/system/instance/sync.yaml": kustomization(
                "instance", "./apps/system/instance/app"
            ),
            "apps/system/instance/app/kustomization.yaml": overlay(
                "instance.yaml", more="namespace: flux-system"
            ),
            "apps/system/instance/app/instance.yaml": INSTANCE,
        },
    )

    assert unit_names(root) == [
        "Kustomization/flux-system/flux-system",
        "Kustomization/flux-system/apps",
        "Kustomization/flux-system/instance",
    ]


def test_a_reference_to_a_key_is_no_damaged_key(tmp_path: Path) -> None:
    secret = """\
apiVersion: v1
kind: Secret
metadata: {name: sops-age, namespace: flux-system}
stringData: {age.agekey: "op://vault/sops/key"}
"""
    apps = kustomization(
        "apps", "./apps", more='decryption: {"provider": "sops", "secretRef": {"name": "sops-age"}}'
    )
    root = write_files(
        tmp_path,
        {
            "bootstrap/secret.yaml": secret,
            "clusters/prod/flux.yaml": GIT_REPOSITORY + apps,
            "apps/settings.yaml": config_map("settings", "default"),
        },
    )

    report = lint_report(root)

    assert [item.code for item in report.findings if item.code.startswith("render.")] == []
    assert report.objects == 1


def test_files_beside_a_broken_kustomization_are_not_deployed(tmp_path: Path) -> None:
    root = write_files(
        tmp_path,
        {
            "root.yaml": application("root", "apps", namespace="argocd"),
            "apps/kustomization.yaml": overlay("web.yaml", "gone.yaml"),
            "apps/web.yaml": application("web", "web"),
            "apps/disabled/web.yaml": application("web", "web"),
            "web/settings.yaml": NAMESPACE + config_map("settings"),
        },
    )

    assert lint_codes(root) == ["ORD049"]


def test_an_empty_kustomization_of_flux_is_applied(tmp_path: Path) -> None:
    later = kustomization("later", "./later", more='dependsOn: [{"name": "empty"}]')
    root = write_files(
        tmp_path,
        {
            "clusters/prod/flux.yaml": GIT_REPOSITORY + kustomization("empty", "./empty") + later,
            "empty/kustomization.yaml": overlay(),
            "later/settings.yaml": config_map("settings", "default"),
        },
    )

    assert lint_codes(root) == []
    simulated = tidegate("simulate", root, "--offline")
    assert "Kustomization/flux-system/later" in simulated.stdout
    assert simulated.returncode == 0


def test_a_beta_version_that_a_cluster_may_enable_is_a_note(tmp_path: Path) -> None:
    root = write_files(
        tmp_path,
        {"app.yaml": application("web", "web"), "web/policy.yaml": NAMESPACE + POLICY},
    )

    findings = lint_report(root).findings

    assert [item.severity for item in findings if item.code == "ORD062"] == ["note"]
    assert lint_codes(root) == []


def test_kubernetes_adds_the_keys_of_a_token_secret(tmp_path: Path) -> None:
    token = """\
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: reader, namespace: web}
---
apiVersion: v1
kind: Secret
metadata:
  name: reader-token
  namespace: web
  annotations: {kubernetes.io/service-account.name: reader}
type: kubernetes.io/service-account-token
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: shop/web:1
        env:
        - name: TOKEN
          valueFrom: {secretKeyRef: {name: reader-token, key: KEY}}
"""
    files = {"app.yaml": application("web", "web")}
    root = write_files(
        tmp_path, {**files, "web/all.yaml": NAMESPACE + token.replace("KEY", "token")}
    )
    assert lint_codes(root) == []

    (root / "web/all.yaml").write_text(NAMESPACE + token.replace("KEY", "tokens"))
    assert lint_codes(root) == ["ORD061"]


def test_an_object_with_the_name_of_a_custom_resource_is_no_misspelled_name(
    tmp_path: Path,
) -> None:
    """KServe creates the Service `<name>-predictor` of an InferenceService."""
    objects = """\
---
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: model-gpu, namespace: web}
spec: {predictor: {model: {modelFormat: {name: pytorch}}}}
---
apiVersion: v1
kind: Service
metadata: {name: model-cpu-predictor, namespace: web}
spec: {clusterIP: None, ports: [{port: 80}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: web}
spec:
  defaultBackend: {service: {name: model-gpu-predictor, port: {number: 80}}}
"""
    root = write_files(
        tmp_path, {"app.yaml": application("web", "web"), "web/all.yaml": NAMESPACE + objects}
    )

    assert "ORD061" not in lint_codes(root)


@pytest.mark.parametrize(
    "repository", ["git+https://github.com/x/charts@web?ref=main", "s3://charts/stable"]
)
def test_a_chart_that_needs_a_plugin_of_helm_is_unknown(repository: str, tmp_path: Path) -> None:
    chart = f"""\
apiVersion: v2
name: web
version: 1.0.0
dependencies: [{{name: queue, version: 1.0.0, repository: "{repository}"}}]
"""
    root = write_files(tmp_path, {"app.yaml": application("web", "web"), "web/Chart.yaml": chart})

    report = lint_report(root)

    assert [item.code for item in report.findings if item.severity == "error"] == []
    assert any("plugin" in item.message for item in report.unknown)


def test_a_word_instead_of_a_url_is_a_placeholder(tmp_path: Path) -> None:
    unit = application("web", "web").replace(f'"{URL}"', "patched-by-overlays")
    root = write_files(tmp_path, {"base/app.yaml": unit})

    report = lint_report(root)

    assert lint_codes(root) == []
    assert any("patched-by-overlays" in item.message for item in report.unknown)


PROJECT = f"""\
---
apiVersion: argoproj.io/v1alpha1
kind: AppProject
metadata: {{name: shop, namespace: openshift-gitops}}
spec:
  sourceRepos: ["{URL}"]
  destinations: [{{server: "*", namespace: "*"}}]
"""


def test_an_application_without_a_namespace_is_in_that_of_argocd(tmp_path: Path) -> None:
    unit = application("web", "web", namespace="default").replace(", namespace: argocd", "")
    unit = unit.replace("project: default", "project: shop")
    files = {"apps/project.yaml": PROJECT, "web/all.yaml": config_map("settings", "default")}
    root = write_files(tmp_path, {**files, "apps/web.yaml": unit})

    assert lint_codes(root) == []


def occurrences(root: Path, code: str) -> list[int]:
    """Return the number of places of each finding with a code."""
    ran = tidegate("lint", root, "--offline", "-o", "json")
    findings = json.loads(ran.stdout)["findings"]
    return [len(item["sameCause"]) + 1 for item in findings if item["code"] == code]


def test_what_a_project_forbids_to_several_applications_is_one_finding(tmp_path: Path) -> None:
    project = PROJECT.replace(URL, "https://github.com/x/other")
    units = "".join(
        application(name, name).replace("project: default", "project: shop")
        for name in ("one", "two", "three")
    ).replace("namespace: argocd", "namespace: openshift-gitops")
    files = {f"{name}/cm.yaml": config_map(name, "default") for name in ("one", "two", "three")}
    root = write_files(tmp_path, {**files, "apps/all.yaml": PROJECT + units})
    assert occurrences(root, "argo.project") == []

    (root / "apps/all.yaml").write_text(project + units)
    assert occurrences(root, "argo.project") == [3]


def test_applications_that_two_parents_create_are_one_finding(tmp_path: Path) -> None:
    parents = application("first", "apps", namespace="argocd") + application(
        "second", "apps", namespace="argocd"
    )
    files = {f"apps/{name}.yaml": application(name, "web") for name in ("one", "two", "three")}
    files |= {"web/all.yaml": NAMESPACE + config_map("settings")}
    files["root.yaml"] = application("root", "roots", namespace="argocd")
    root = write_files(tmp_path, {**files, "roots/all.yaml": parents})

    assert occurrences(root, "ORD014") == [3]


def test_missing_projects_and_an_option_in_several_applications_are_one_finding_each(
    tmp_path: Path,
) -> None:
    units = "".join(
        application(name, "web")
        .replace("project: default", f"project: {name}")
        .replace("automated: {}", "automated: {}, syncOptions: [Retry=true]")
        for name in ("one", "two")
    )
    project = PROJECT.replace("openshift-gitops", "argocd")
    used = application("used", "web").replace("project: default", "project: shop")
    files = {"web/all.yaml": NAMESPACE + config_map("settings")}
    root = write_files(tmp_path, {**files, "apps/all.yaml": project + used + units})

    assert occurrences(root, "argo.project-missing") == [2]
    assert occurrences(root, "ORD055") == [2]


def test_fields_with_one_wrong_indentation_are_one_finding(tmp_path: Path) -> None:
    job = """\
apiVersion: batch/v1
kind: Job
metadata: {name: clean, namespace: web}
spec:
  template:
    restartPolicy: Never
    serviceAccountName: default
    volumes: []
    spec:
      restartPolicy: Never
      containers: [{name: clean, image: "shop/clean:1"}]
"""
    root = write_files(
        tmp_path, {"app.yaml": application("web", "web"), "web/all.yaml": NAMESPACE + "---\n" + job}
    )

    assert occurrences(root, "preflight.invalid") == [3]


def test_a_required_field_in_a_wrong_place_is_one_finding(tmp_path: Path) -> None:
    appset = f"""\
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {{name: all, namespace: argocd}}
spec:
  generators: [{{list: {{elements: [{{name: web}}]}}}}]
  template:
    metadata: {{name: "{{{{name}}}}"}}
  spec:
    project: default
    source: {{repoURL: "{URL}", path: web}}
    destination: {{server: https://kubernetes.default.svc, namespace: web}}
"""
    root = write_files(tmp_path, {"apps/all.yaml": appset})

    assert [code for code in lint_codes(root) if code.startswith("schema.")] == ["schema.refused"]


def test_a_cluster_below_a_unit_that_nothing_deploys_is_read(tmp_path: Path) -> None:
    """A FluxInstance that is prepared, but that its kustomization does not include yet."""
    cluster = GIT_REPOSITORY + kustomization("cluster", "./flux")
    root = write_files(
        tmp_path,
        {
            "flux/config/cluster.yaml": cluster,
            "flux/apps.yaml": kustomization("apps", "./apps"),
            "apps/system/kustomization.yaml": overlay("settings.yaml"),
            "apps/system/settings.yaml": config_map("settings", "default"),
            "apps/system/instance.yaml": INSTANCE.replace("clusters/prod", "flux"),
        },
    )

    assert unit_names(root) == [
        "Kustomization/flux-system/cluster",
        "Kustomization/flux-system/apps",
    ]


def test_objects_that_were_exported_from_a_cluster_are_not_deployed(tmp_path: Path) -> None:
    exported = kustomization("apps", "./gone").replace(
        "namespace: flux-system}", "namespace: flux-system, uid: a-b-c, resourceVersion: '7'}", 1
    )
    root = write_files(
        tmp_path,
        {
            "backup.yaml": exported,
            "clusters/prod/flux.yaml": GIT_REPOSITORY + kustomization("apps", "./apps"),
            "apps/settings.yaml": config_map("settings", "default"),
        },
    )

    assert lint_codes(root) == []
    assert unit_names(root) == ["Kustomization/flux-system/apps"]


def test_an_operator_decrypts_a_sops_secret(tmp_path: Path) -> None:
    secret = """\
---
apiVersion: isindir.github.com/v1alpha3
kind: SopsSecret
metadata: {name: token, namespace: web}
spec:
  secretTemplates:
  - name: token
    stringData: {token: "ENC[AES256_GCM,data:aa,iv:bb,tag:cc,type:str]"}
sops:
  age: [{recipient: age1q, enc: abc}]
  lastmodified: "2026-01-01T00:00:00Z"
  mac: ENC[AES256_GCM,data:aa,iv:bb,tag:cc,type:str]
  version: 3.9.0
"""
    root = write_files(
        tmp_path, {"app.yaml": application("web", "web"), "web/all.yaml": NAMESPACE + secret}
    )

    assert lint_codes(root) == []


def test_a_migration_with_the_image_of_the_database_runs_after_the_database(
    tmp_path: Path,
) -> None:
    def pods(kind: str, name: str, image: str, more: str) -> str:
        return f"""\
---
apiVersion: {"batch/v1" if kind == "Job" else "apps/v1"}
kind: {kind}
metadata: {{name: {name}, namespace: web}}
spec:
  {"" if kind == "Job" else f"selector: {{matchLabels: {{app: {name}}}}}"}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      {"restartPolicy: OnFailure" if kind == "Job" else ""}
      containers: [{{name: {name}, image: "{image}"{more}}}]
"""

    def objects(image: str) -> str:
        migration = ", args: [migrate]"
        return NAMESPACE + pods("Deployment", "db", image, "") + pods("Job", "m", image, migration)

    root = write_files(
        tmp_path, {"app.yaml": application("web", "web"), "web/all.yaml": objects("postgres:17")}
    )
    assert "ORD020" not in lint_codes(root)

    (root / "web/all.yaml").write_text(objects("shop/web:1"))
    assert "ORD020" in lint_codes(root)


def test_a_certificate_is_no_secret(tmp_path: Path) -> None:
    secret = """\
---
apiVersion: v1
kind: Secret
metadata: {name: ca, namespace: web}
stringData:
  ca.crt: |
    -----BEGIN CERTIFICATE-----
    MIIBszCCAVmgAwIBAgIUO
    -----END CERTIFICATE-----
"""
    root = write_files(
        tmp_path, {"app.yaml": application("web", "web"), "web/all.yaml": NAMESPACE + secret}
    )
    assert lint_codes(root) == []

    key = secret.replace("CERTIFICATE", "PRIVATE KEY")
    (root / "web/all.yaml").write_text(NAMESPACE + key)
    assert lint_codes(root) == ["ORD044"]


def test_a_stateful_set_runs_without_its_service(tmp_path: Path) -> None:
    database = """\
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: web}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: "postgres:17"}]}
"""
    root = write_files(
        tmp_path, {"app.yaml": application("web", "web"), "web/all.yaml": NAMESPACE + database}
    )

    findings = lint_report(root).findings

    assert [item.severity for item in findings if item.code == "ORD061"] == ["note"]


def test_the_source_of_a_bootstrap_without_a_file_is_unknown(tmp_path: Path) -> None:
    """The artifact may contain a part of the repository only, so its paths are not these."""
    units = kustomization("one", "./apps/one") + kustomization("two", "./apps/two")
    root = write_files(
        tmp_path, {"kubernetes/clusters/prod/flux.yaml": units.replace("GitRepo", "OCIRepo")}
    )

    report = lint_report(root)

    assert lint_codes(root) == []
    assert any("OCIRepository/flux-system/flux-system" in item.message for item in report.unknown)


def test_a_release_with_values_of_a_secret_that_is_not_in_git_is_unknown(tmp_path: Path) -> None:
    release = """\
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: web, namespace: default}
spec:
  interval: 1h
  chart:
    spec:
      chart: ./chart
      sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}
  valuesFrom: [{kind: Secret, name: made-by-hand, valuesKey: token, targetPath: token}]
"""
    root = write_files(
        tmp_path,
        {
            "clusters/prod/flux.yaml": GIT_REPOSITORY + kustomization("apps", "./apps"),
            "apps/web.yaml": release,
            "chart/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
        },
    )

    assert lint_codes(root) == []
    assert any("made-by-hand" in item.message for item in lint_report(root).unknown)


def test_a_variable_that_several_units_lack_is_one_finding(tmp_path: Path) -> None:
    def unit(name: str) -> str:
        return kustomization(name, f"./{name}", more='postBuild: {"substitute": {"A": "1"}}')

    def settings(name: str) -> str:
        return config_map(name, "default") + 'data: {client: "${CLIENT}"}\n'

    root = write_files(
        tmp_path,
        {
            "clusters/prod/flux.yaml": GIT_REPOSITORY + unit("one") + unit("two"),
            "one/settings.yaml": settings("one"),
            "two/settings.yaml": settings("two"),
        },
    )

    assert occurrences(root, "render.substitute.missing") == [2]


def test_kinds_that_one_operator_defines_later_are_one_finding(tmp_path: Path) -> None:
    unit = application("cilium", "cilium", namespace="kube-system")
    operator = """\
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: cilium-operator
  namespace: kube-system
  labels: {io.cilium/app: operator, name: cilium-operator}
spec:
  selector: {matchLabels: {io.cilium/app: operator, name: cilium-operator}}
  template:
    metadata: {labels: {io.cilium/app: operator, name: cilium-operator}}
    spec: {containers: [{name: cilium-operator, image: "quay.io/cilium/operator-generic:v1.18.0"}]}
---
apiVersion: cilium.io/v2
kind: CiliumLoadBalancerIPPool
metadata: {name: pool}
spec: {blocks: [{cidr: 10.0.0.0/24}]}
---
apiVersion: cilium.io/v2
kind: CiliumBGPAdvertisement
metadata: {name: bgp}
spec: {advertisements: [{advertisementType: PodCIDR}]}
"""
    root = write_files(tmp_path, {"app.yaml": unit, "cilium/all.yaml": operator})

    assert occurrences(root, "ORD009") == [2]


def test_a_claim_beside_a_release_that_is_not_rendered_is_not_judged(tmp_path: Path) -> None:
    """Pods of the release may use the claim."""
    storage = """\
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: local}
provisioner: example.com/local
volumeBindingMode: WaitForFirstConsumer
"""
    claim = """\
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: default}
spec:
  storageClassName: local
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
"""
    release = """\
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: charts, namespace: default}
spec: {interval: 1h, url: https://charts.example.com}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: web, namespace: default}
spec:
  interval: 1h
  chart: {spec: {chart: web, sourceRef: {kind: HelmRepository, name: charts}}}
"""
    later = kustomization("later", "./later", more='dependsOn: [{"name": "apps"}]')
    units = kustomization("apps", "./apps", more='"wait": true')
    root = write_files(
        tmp_path,
        {
            "clusters/prod/flux.yaml": GIT_REPOSITORY + units + later,
            "apps/all.yaml": storage + claim + release,
            "later/settings.yaml": config_map("settings", "default"),
        },
    )
    assert "ORD007" not in lint_codes(root)

    (root / "apps/all.yaml").write_text(storage + claim)
    assert "ORD007" in lint_codes(root)


def test_waves_in_a_chart_of_applications_are_not_called_useless(tmp_path: Path) -> None:
    """Another chart, or `helm install`, deploys it."""
    templates = application("one", "web") + application("two", "web", wave="3")
    files = {
        "charts/apps/Chart.yaml": "apiVersion: v2\nname: apps\nversion: 1.0.0\n",
        "charts/apps/templates/all.yaml": templates,
        "web/all.yaml": NAMESPACE + config_map("settings"),
    }
    root = write_files(tmp_path, files)
    assert "ORD011" not in lint_codes(root)


def test_a_missing_entry_below_a_path_without_a_kustomization_is_an_error(tmp_path: Path) -> None:
    root = write_files(
        tmp_path,
        {
            "clusters/prod/flux.yaml": GIT_REPOSITORY + kustomization("apps", "./apps"),
            "apps/web/kustomization.yaml": overlay("settings.yaml", "gone.yaml"),
            "apps/web/settings.yaml": config_map("settings", "default"),
        },
    )

    findings = lint_report(root).findings

    assert [item.severity for item in findings if item.code == "ORD049"] == ["error"]


def test_jobs_that_flux_runs_again_are_one_finding(tmp_path: Path) -> None:
    jobs = "".join(
        f"""\
---
apiVersion: batch/v1
kind: Job
metadata: {{name: {name}, namespace: default}}
spec:
  ttlSecondsAfterFinished: 300
  template: {{spec: {{restartPolicy: Never, containers: [{{name: a, image: "a:1"}}]}}}}
"""
        for name in ("one", "two", "three")
    )
    root = write_files(
        tmp_path,
        {
            "clusters/prod/flux.yaml": GIT_REPOSITORY + kustomization("apps", "./apps"),
            "apps/jobs.yaml": jobs,
        },
    )

    assert occurrences(root, "ORD019") == [3]
