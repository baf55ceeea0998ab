"""Simulated objects behave as they would in a real cluster, case by case."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.recorded_wording import RecordedWording
from tidegate.cli.main import cli

JOB = """
apiVersion: batch/v1
kind: Job
metadata: {{name: task}}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers: [{container}]
      volumes: [{{name: scripts, configMap: {{name: scripts}}}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: scripts, annotations: {{argocd.argoproj.io/sync-wave: "-1"}}}}
data:
  ask.sh: "curl -fsS http://api:8080/healthz"
  wait.sh: "until curl -fsS http://api:8080/healthz; do sleep 2; done"
  comment.sh: "# curl http://api:8080/healthz\\necho done"
  make.sh: "echo http://api\\ncat <<END | kubectl apply -f -\\n  host: api.default.svc\\nEND"
"""
API = """
---
apiVersion: v1
kind: Service
metadata: {name: api, annotations: {argocd.argoproj.io/sync-wave: "-1"}}
spec: {selector: {app: api}, ports: [{port: 8080}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: api}
spec:
  selector: {matchLabels: {app: api}}
  template: {metadata: {labels: {app: api}}, spec: {containers: [{name: api, image: "api:1"}]}}
"""
MOUNTS = "volumeMounts: [{name: scripts, mountPath: /scripts}]"


def tidegate(verb: str, folder: Path, text: str, *args: str) -> tuple[int, str, str]:
    """The exit code and both outputs of a verb on a directory with this text."""
    folder.mkdir(exist_ok=True)
    (folder / "all.yaml").write_text(text)
    ran = CliRunner().invoke(cli, [verb, str(folder), *args], standalone_mode=False)
    if ran.exception is not None:
        raise ran.exception
    return ran.return_value, ran.stdout, ran.stderr


@pytest.mark.parametrize(
    "container",
    [
        f"{{name: a, image: curl, command: [sh, /scripts/ask.sh], {MOUNTS}}}",
        "{name: a, image: postgres, command: [sh, -c, \"psql -h api -c 'select 1'\"]}",
        '{name: a, image: busybox, command: [sh, -c, "nc -z api 5432 && echo up"]}',
        "{name: a, image: redis, command: [redis-cli, -h, api, ping]}",
        "{name: a, image: kcat, env: [{name: KAFKA_BROKERS, value: 'api:9092'}]}",
    ],
)
def test_a_job_that_calls_a_missing_service_does_not_pass(container: str, tmp_path: Path) -> None:
    code, result, _ = tidegate("simulate", tmp_path, JOB.format(container=container))

    assert code == 4
    (line,) = [line for line in result.splitlines() if "dial-fails" in line]
    assert "Service default/api" in line


@pytest.mark.parametrize(
    "container",
    [
        f"{{name: a, image: c, command: [sh, /scripts/ask.sh], {MOUNTS}}}",
        "{name: a, image: c, command: [curl, 'http://api:8080']}",
        "{name: a, image: c, env: [{name: API_HOST, value: api}]}",
    ],
    ids=["script", "command", "variable"],
)
def test_a_call_of_a_service_has_the_location_of_its_name(
    container: str, tmp_path: Path, wording: RecordedWording
) -> None:
    _, result, _ = tidegate("simulate", tmp_path, JOB.format(container=container))

    wording(line for line in result.splitlines() if "dial-fails" in line)


@pytest.mark.parametrize(
    "container",
    [
        "{name: a, image: k8s/kube-webhook-certgen, args: [create, '--host=api,api.default.svc']}",
        "{name: a, image: alpine, command: [openssl, req, -subj, /CN=api.default.svc]}",
        f"{{name: a, image: curl, command: [sh, /scripts/comment.sh], {MOUNTS}}}",
        f"{{name: a, image: curl, command: [sh, /scripts/make.sh], {MOUNTS}}}",
        f"{{name: a, image: curl, command: [run-all], {MOUNTS}}}",
    ],
)
def test_a_service_name_in_a_certificate_or_comment_is_not_a_call(
    container: str, tmp_path: Path
) -> None:
    code, result, _ = tidegate("simulate", tmp_path, JOB.format(container=container))

    assert code == 0, result


def test_a_script_that_waits_continues_when_the_server_responds(tmp_path: Path) -> None:
    container = f"{{name: a, image: curl, command: [sh, /scripts/wait.sh], {MOUNTS}}}"

    code, result, _ = tidegate("simulate", tmp_path, JOB.format(container=container) + API)

    assert code == 0, result


CLUSTER_WIDE = """
apiVersion: cert-manager.io/v1
kind: ClusterIssuer
metadata: {name: letsencrypt}
spec: {selfSigned: {}}
---
apiVersion: external-secrets.io/v1
kind: ClusterSecretStore
metadata: {name: vault}
spec: {provider: {}}
---
apiVersion: config.openshift.io/v1
kind: APIServer
metadata: {name: cluster}
---
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata: {name: worker}
"""


def test_a_cluster_scoped_kind_is_planned_without_a_namespace(tmp_path: Path) -> None:
    _, result, _ = tidegate("plan", tmp_path, CLUSTER_WIDE, "-o", "json", "--namespace", "shop")

    refs = json.loads(result)["objects"]
    assert len(refs) == 4
    assert [ref["namespace"] for ref in refs] == [""] * 4


WEBHOOK = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: widgets.example.com}}
spec:
  group: example.com
  scope: Namespaced
  names: {{kind: Widget, plural: widgets}}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {{name: widgets, annotations: {{{note}}}}}
webhooks:
- name: widgets.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  rules: [{{apiGroups: [example.com], apiVersions: ["*"], operations: ["*"], resources: ["*"]}}]
  clientConfig: {{service: {{name: api, namespace: default}}}}
---
apiVersion: example.com/v1
kind: Widget
metadata: {{name: first, annotations: {{argocd.argoproj.io/sync-wave: "1"}}}}
"""
ISSUED = """
---
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: own}
spec: {selfSigned: {}}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: serving}
spec: {secretName: serving, dnsNames: [api], issuerRef: {name: own}}
"""


@pytest.mark.parametrize(
    ("note", "more"),
    [
        ("cert-manager.io/inject-ca-from: default/serving", ISSUED),
        ("service.beta.openshift.io/inject-cabundle: 'true'", ""),
        ("", ""),
    ],
)
def test_a_webhook_is_trusted_as_soon_as_it_has_a_certificate_authority(
    note: str, more: str, tmp_path: Path
) -> None:
    code, result, _ = tidegate("simulate", tmp_path, WEBHOOK.format(note=note) + API + more)

    assert code == 0, result


def test_a_webhook_that_waits_for_a_missing_certificate_is_not_trusted(
    tmp_path: Path,
) -> None:
    note = "cert-manager.io/inject-ca-from: default/forgotten"

    code, result, _ = tidegate("simulate", tmp_path, WEBHOOK.format(note=note) + API + ISSUED)

    assert code == 4
    assert "tls: failed to verify certificate: x509: " in result


def test_an_unsupported_health_script_of_argo_cd_is_reported(
    tmp_path: Path, wording: RecordedWording
) -> None:
    text = "apiVersion: serving.kserve.io/v1beta1\nkind: InferenceService\nmetadata: {name: a}\n"

    _, result, _ = tidegate("simulate", tmp_path, text, "--engine", "argocd")

    note = result.splitlines()[-1]
    assert "InferenceService" in note
    wording(note)


def test_a_null_in_the_status_of_a_custom_object_is_ignored(tmp_path: Path) -> None:
    text = WEBHOOK.format(note="").partition("---")[0]
    status = "{type: object, properties: {phase: {type: string}}}"
    text = text.replace(
        "x-kubernetes-preserve-unknown-fields: true", f"properties: {{status: {status}}}"
    )
    text = text.replace("    served: true", "    served: true\n    subresources: {status: {}}")
    widget = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\n"

    code, result, _ = tidegate(
        "simulate", tmp_path, f"{text}---\n{widget}status: {{phase: null}}\n"
    )

    assert code == 0, result


FLUX = """
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: open, namespace: flux-system}
spec: {interval: 1m, url: "https://git.example.com/a.git"}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: closed, namespace: flux-system}
spec: {interval: 1m, url: "https://git.example.com/a.git", secretRef: {name: deploy-key}}
"""


def test_a_flux_source_becomes_healthy_or_names_its_missing_secret(tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text("given: {operators: [flux]}\n")
    (tmp_path / "all.yaml").write_text(FLUX)
    args = ["sandbox", "run", str(tmp_path / "all.yaml"), "--scenario", str(scenario)]

    ran = CliRunner().invoke(cli, [*args, "--until", "30s"], standalone_mode=False)

    lines = ran.stdout.splitlines()
    assert any("flux-system/open" in line and "Ready=True" in line for line in lines), lines
    assert any("ArtifactInStorage=True" in line for line in lines if "flux-system/open" in line)
    assert any("flux-system/closed" in line and "Ready=False" in line for line in lines)


def test_a_unit_that_cannot_be_fetched_is_unavailable_and_its_objects_are_assumed(
    tmp_path: Path,
) -> None:
    text = """
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: cert-manager, namespace: cert-manager}
spec:
  interval: 1h
  chart: {spec: {chart: cert-manager, sourceRef: {kind: HelmRepository, name: jetstack}}}
---
apiVersion: cert-manager.io/v1
kind: ClusterIssuer
metadata: {name: own}
spec: {selfSigned: {}}
"""
    (tmp_path / "kustomization.yaml").write_text("resources: [all.yaml]\n")

    code, result, aside = tidegate("simulate", tmp_path, text)

    assert code == 9, result + aside
    (incomplete,) = [line for line in aside.splitlines() if "warning[units.incomplete]" in line]
    (opaque,) = [line for line in aside.splitlines() if "warning[units.unavailable]" in line]
    assert "1" in incomplete.split()
    assert "`HelmRelease/cert-manager/cert-manager`" in opaque
    (operators,) = [line for line in result.splitlines() if "  operators: [cert-manager]" in line]
    assert operators.endswith("ClusterIssuer own")


SET = """
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: teams, namespace: argocd}
spec:
  goTemplate: true
  generators:
  - git: {repoURL: "https://git.example.com/far.git", revision: HEAD, directories: [{path: "t/*"}]}
  template:
    metadata: {name: "{{.path.basename}}"}
    spec:
      project: default
      source: {repoURL: "https://git.example.com/far.git", path: "{{.path.path}}"}
      destination: {server: "https://kubernetes.default.svc", namespace: a}
"""


def test_a_set_with_an_unreachable_repository_is_reported(
    tmp_path: Path, wording: RecordedWording
) -> None:
    code, result, aside = tidegate("simulate", tmp_path / "a", SET, "--offline")
    empty, _, refused = tidegate("simulate", tmp_path / "b", SET, "--offline", "--empty-cluster")

    assert code == 3, result + aside
    wording(result.splitlines()[-1])
    (incomplete,) = [line for line in aside.splitlines() if "error[units.incomplete]" in line]
    (missing,) = [line for line in aside.splitlines() if "warning[appset.unavailable]" in line]
    assert "1" in incomplete.split()
    assert "`argocd/teams`" in missing
    assert (empty, "error[appset.unavailable]" in refused) == (3, True)


def test_an_overlay_outside_a_repository_reads_its_bases(tmp_path: Path) -> None:
    base, overlay = tmp_path / "base", tmp_path / "overlays" / "prod"
    overlay.mkdir(parents=True)
    base.mkdir()
    (base / "kustomization.yaml").write_text("resources: [api.yaml]\n")
    (base / "api.yaml").write_text(API.lstrip("\n-"))
    (overlay / "kustomization.yaml").write_text("namespace: prod\nresources: [../../base]\n")

    ran = CliRunner().invoke(cli, ["simulate", str(overlay)], standalone_mode=False)

    assert ran.return_value == 0, ran.stderr
    assert "  namespaces: [prod]\n" in ran.stdout


def test_a_chart_reads_a_local_dependency(tmp_path: Path) -> None:
    for name in ("app", "common"):
        (tmp_path / name / "templates").mkdir(parents=True)
        (tmp_path / name / "Chart.yaml").write_text(
            f"apiVersion: v2\nname: {name}\nversion: 1.0.0\n"
        )
    with (tmp_path / "app" / "Chart.yaml").open("a") as file:
        file.write(
            "dependencies: [{name: common, version: 1.0.0, repository: 'file://../common'}]\n"
        )
    (tmp_path / "common" / "templates" / "api.yaml").write_text(API.lstrip("\n-"))

    ran = CliRunner().invoke(cli, ["simulate", str(tmp_path / "app")], standalone_mode=False)

    assert ran.return_value == 0, ran.stderr
    assert "wave 0" in ran.stdout


def test_no_unit_is_unavailable_without_assumptions(tmp_path: Path) -> None:
    text = """
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: a, namespace: a}
spec: {interval: 1h, chart: {spec: {chart: a, sourceRef: {kind: HelmRepository, name: a}}}}
"""

    code, _, aside = tidegate("simulate", tmp_path, text, "--empty-cluster")

    assert code == 3
    (line,) = [line for line in aside.splitlines() if "error[source.object]" in line]
    assert "`HelmRelease/a/a`" in line
