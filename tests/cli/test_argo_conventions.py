"""What Argo CD and the plugins around it accept: none of it is a mistake."""

from __future__ import annotations

from pathlib import Path

from tests.support.file_trees import (
    URL,
    application,
    config_map,
    lint_codes,
    lint_report,
    unit_names,
    write_files,
)

CHART = {
    "web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
    "web/values.yaml": "name: web\n",
    "web/templates/a.yaml": config_map("{{ .Values.name }}"),
}
ENCRYPTED = """\
apiVersion: v1
kind: Secret
metadata: {name: login, namespace: web}
stringData: {password: "ENC[AES256_GCM,data:eA==,iv:eA==,tag:eA==,type:str]"}
sops:
  mac: "ENC[AES256_GCM,data:eA==,iv:eA==,tag:eA==,type:str]"
  version: 3.9.0
  lastmodified: "2026-01-01T00:00:00Z"
  age: [{recipient: age1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq, enc: "x"}]
"""
GENERATOR = """\
apiVersion: viaduct.ai/v1
kind: ksops
metadata: {name: secrets}
files: [login.enc.yaml]
"""


def test_an_ssh_address_with_a_slash_is_that_with_a_colon(tmp_path: Path) -> None:
    app = application("web", "web").replace(URL, "git@github.com/x/y")
    root = write_files(tmp_path, {"cd/web.yaml": app, "web/a.yaml": config_map("a")})

    report = lint_report(root)

    assert (report.objects, lint_codes(root)) == (1, [])


def test_values_that_helm_secrets_decrypts_are_files(tmp_path: Path) -> None:
    schemes = ("secrets://secret.yaml", "secrets+age-import:///keys/key.txt?secret.yaml")
    files = {**CHART, "web/secret.yaml": "password: ENC[x]\nsops: {version: 3.9.0}\n"}
    for index, address in enumerate(schemes):
        app = application(f"web-{index}", "web", namespace=f"web-{index}").replace(
            "path: web}", f'path: web, helm: {{valueFiles: ["{address}"]}}}}'
        )
        files[f"cd/{index}.yaml"] = app
    root = write_files(tmp_path, files)

    codes = {finding.code for finding in lint_report(root).findings}

    assert "render.helm.file" not in codes
    assert lint_report(root).objects >= 2


def test_ksops_adds_the_objects_of_its_files(tmp_path: Path) -> None:
    kustomization = "resources: [a.yaml]\ngenerators: [secrets.yaml]\n"
    files = {
        "cd/web.yaml": application("web", "web"),
        "web/kustomization.yaml": kustomization,
        "web/a.yaml": config_map("a"),
        "web/secrets.yaml": GENERATOR,
        "web/login.enc.yaml": ENCRYPTED,
    }
    root = write_files(tmp_path, files)

    report = lint_report(root)

    assert report.objects == 2
    assert "render.kustomize.build" not in {finding.code for finding in report.findings}


def test_ksops_may_replace_an_object(tmp_path: Path) -> None:
    note = "annotations: {kustomize.config.k8s.io/behavior: replace}"
    changed = (
        f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a, namespace: default, {note}}}\n"
    )
    files = {
        "cd/web.yaml": application("web", "web"),
        "web/kustomization.yaml": "resources: [a.yaml]\ngenerators: [secrets.yaml]\n",
        "web/a.yaml": config_map("a"),
        "web/secrets.yaml": GENERATOR,
        "web/login.enc.yaml": f"{changed}data: {{colour: blue}}\n",
    }
    root = write_files(tmp_path, files)

    report = lint_report(root)

    assert (report.objects, lint_codes(root)) == (1, [])


def test_an_unknown_plugin_of_kustomize_is_not_run(tmp_path: Path) -> None:
    plugin = "apiVersion: example.com/v1\nkind: Maker\nmetadata: {name: maker}\n"
    files = {
        "cd/web.yaml": application("web", "web"),
        "web/kustomization.yaml": "generators: [maker.yaml]\n",
        "web/maker.yaml": plugin,
        "cd/db.yaml": application("db", "db"),
        "db/a.yaml": config_map("a"),
    }
    root = write_files(tmp_path, files)

    assert lint_codes(root) == []
    assert any("`Maker`" in unknown.message for unknown in lint_report(root).unknown)


def test_an_application_that_renames_itself_is_one_unit(tmp_path: Path) -> None:
    files = {
        "cd/kustomization.yaml": "resources: [argocd.yaml, child.yaml]\nnameSuffix: -prod\n",
        "cd/argocd.yaml": application("argocd", "cd", namespace="argocd"),
        "cd/child.yaml": application("web", "web"),
        "web/a.yaml": config_map("a"),
    }
    root = write_files(tmp_path, files)

    assert unit_names(root) == ["Application/argocd/argocd-prod", "Application/argocd/web-prod"]
    assert lint_codes(root) == []


def test_applications_that_create_each_other_do_not_wait(tmp_path: Path) -> None:
    files = {
        "cd/kustomization.yaml": "resources: [child.yaml, a.yaml]\n",
        "cd/child.yaml": application("child", "envs", namespace="argocd", wave="1"),
        "cd/a.yaml": config_map("a", "argocd"),
        "envs/kustomization.yaml": "resources: [argocd.yaml]\n",
        "envs/argocd.yaml": application("argocd", "cd", namespace="argocd"),
    }
    root = write_files(tmp_path, files)

    assert "ORD002" not in lint_codes(root)


def test_a_backend_that_an_annotation_defines_is_no_service(tmp_path: Path) -> None:
    ingress = """\
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: web
  namespace: web
  annotations: {alb.ingress.kubernetes.io/actions.web-redirect: '{"Type":"redirect"}'}
spec:
  rules:
  - http:
      paths:
      - path: /
        pathType: Prefix
        backend: {service: {name: web-redirect, port: {name: PORT}}}
---
apiVersion: v1
kind: Service
metadata: {name: web-redirects, namespace: web}
spec: {selector: {app: web}, ports: [{name: http, port: 80}]}
"""
    files = {"cd/web.yaml": application("web", "web")}
    action = write_files(
        tmp_path / "a", {**files, "web/a.yaml": ingress.replace("PORT", "use-annotation")}
    )
    service = write_files(tmp_path / "b", {**files, "web/a.yaml": ingress.replace("PORT", "http")})

    assert "web-redirect`" not in str(lint_report(action).findings)
    assert "ORD061" in lint_codes(service)


def test_a_configuration_file_without_a_credential_is_no_plain_secret(tmp_path: Path) -> None:
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: web}\nstringData:\n"
    files = {"cd/web.yaml": application("web", "web")}
    harmless = f"{secret}  app.properties: |\n    log.level=debug\n  keyStorePath: /etc/keys\n"
    leaking = f"{secret}  app.properties: |\n    db.password=hunter2hunter\n"

    without = write_files(tmp_path / "a", {**files, "web/a.yaml": harmless})
    with_credential = write_files(tmp_path / "b", {**files, "web/a.yaml": leaking})

    assert "ORD044" not in lint_codes(without)
    assert "ORD044" in lint_codes(with_credential)


def test_one_mistake_in_many_files_of_a_directory_is_one_finding(tmp_path: Path) -> None:
    claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: {}, namespace: web}}\n"
    files = {f"web/{name}.yaml": claim.format(name) + "spec: {}\n" for name in "abc"}
    root = write_files(tmp_path, {**files, "cd/web.yaml": application("web", "web")})

    assert lint_codes(root).count("preflight.invalid") <= 2
