"""`tidegate lint` validates each manifest by the schema of its kind."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.tidegate_runs import tidegate

CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget, singular: widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, properties: {size: {type: integer, minimum: 2}}}}
"""
CRON_JOB = """
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
spec:
  schedule: %s
  jobTemplate: {spec: {template: {spec: {containers: [{name: a, image: b}]}}}}
"""
WEBHOOK = """
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: defaults}
webhooks:
- name: defaults.example.com
  sideEffects: None
  admissionReviewVersions: [v1]
  clientConfig: {service: {name: defaults, namespace: default}}
  rules: [{operations: [CREATE], apiGroups: [batch], apiVersions: [v1], resources: [cronjobs]}]
"""


def _rejected_lines(folder: Path, *manifests: str) -> list[tuple[str, str]]:
    """Return code and position of each object that every API server rejects."""
    (folder / "all.yaml").write_text("---".join(manifests))
    report = json.loads(tidegate("lint", str(folder), "-o", "json").stdout)
    return [
        (finding["code"], finding["location"].rpartition("all.yaml:")[2])
        for finding in report["findings"]
        if finding["code"].startswith("preflight.")
    ]


def test_a_value_of_a_wrong_type_is_found_at_its_line(tmp_path: Path) -> None:
    manifest = (
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: a\n"
    )

    assert ("preflight.invalid", "5:3") in _rejected_lines(tmp_path, manifest)


def test_an_object_is_checked_by_the_crd_in_the_same_plan(tmp_path: Path) -> None:
    widget = "\napiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\nspec: {size: 1}\n"

    rejected = _rejected_lines(tmp_path, CRD, widget)

    assert [code for code, _ in rejected] == ["preflight.invalid"]


def test_a_kind_without_a_known_crd_is_not_checked(tmp_path: Path) -> None:
    widget = "\napiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\nspec: {size: 1}\n"

    assert _rejected_lines(tmp_path, widget) == []


def test_a_missing_value_may_be_set_by_a_webhook_of_the_plan(tmp_path: Path) -> None:
    missing, unreadable = CRON_JOB % "'* * * * *'", CRON_JOB % "5"

    alone = _rejected_lines(tmp_path, missing)
    with_webhook = _rejected_lines(tmp_path, WEBHOOK, missing)
    unreadable_with_webhook = _rejected_lines(tmp_path, WEBHOOK, unreadable)

    assert [code for code, _ in alone] == ["preflight.invalid"]
    assert with_webhook == []
    assert [code for code, _ in unreadable_with_webhook] == ["preflight.invalid"]


def test_an_object_that_opts_out_of_validation_is_not_checked(tmp_path: Path) -> None:
    manifest = """apiVersion: v1
kind: ConfigMap
metadata:
  name: web
  annotations: {argocd.argoproj.io/sync-options: Validate=false}
data: {a: 1}
"""

    assert _rejected_lines(tmp_path, manifest) == []
