"""The flags of Flux's controllers, as their Deployments have them."""

from __future__ import annotations

from hypothesis import given

from tests.unit.dialect.flux_objects import any_spec
from tidegate.dialect.flux.settings import read_settings
from tidegate.documents import Document, read_documents

COMPONENTS = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: kustomize-controller
  labels: {app.kubernetes.io/part-of: flux, app.kubernetes.io/component: kustomize-controller}
spec:
  template:
    spec:
      containers:
      - name: manager
        image: ghcr.io/fluxcd/kustomize-controller:v1.9.4
        args:
        - --log-level=info
        - --concurrent=8
        - --requeue-dependency
        - 5s
        - --no-remote-bases
        - --feature-gates=AdditiveCELDependencyCheck=true,ExternalArtifact=false
        - 7
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: hc, namespace: elsewhere}
spec:
  template:
    spec:
      containers:
      - {name: proxy, image: envoy, args: [--concurrent=1]}
      - {name: manager, image: "mirror:5000/x/helm-controller@sha256:0", args: [--concurrent=2]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: kustomize-controller}
spec: {template: {spec: {containers: [{name: manager, args: [--concurrent=3]}]}}}
"""


def test_flags_are_read_of_fluxs_controllers_alone() -> None:
    settings = read_settings(read_documents(COMPONENTS.encode(), "gotk.yaml"))

    assert [(item.name, item.value) for item in settings] == [
        ("kustomize-controller.concurrent", "8"),
        ("kustomize-controller.requeue-dependency", "5s"),
        ("kustomize-controller.no-remote-bases", "true"),
        ("kustomize-controller.feature-gates.AdditiveCELDependencyCheck", "true"),
        ("kustomize-controller.feature-gates.ExternalArtifact", "false"),
        ("helm-controller.concurrent", "2"),
    ]
    assert str(settings[0].location) == "gotk.yaml:1:1 (spec.template.spec.containers[0].args[1])"


@given(any_spec("template", "spec", "containers", "args", "name", "image"))
def test_random_fields_never_crash_the_reader(document: Document) -> None:
    document.body.update(apiVersion="apps/v1", kind="Deployment")
    read_settings([document])
