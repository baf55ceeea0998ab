"""Units among documents: who they are, where they stand, what they wait for."""

from __future__ import annotations

from tidegate.dialect.units import UnitFinder
from tidegate.documents import read_documents
from tidegate.model.units.unit import Destination, UnitId

REPOSITORY = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: web, namespace: argocd}
spec:
  destination: {name: prod, namespace: shop}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: apps, namespace: flux-system}
spec:
  suspend: true
  targetNamespace: shop
  dependsOn:
  - {name: infra, readyExpr: "dep.status.ready"}
  - {name: other, namespace: elsewhere}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: apps}
---
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
---
apiVersion: v1
kind: ConfigMap
metadata: {name: plain}
"""


def test_units_are_found_by_their_kind_and_group_with_their_place() -> None:
    units = UnitFinder().find(read_documents(REPOSITORY.encode(), "all.yaml"), "default").units

    assert [str(unit.id) for unit in units] == [
        "Application/argocd/web",
        "Kustomization/flux-system/apps",
        "HelmRelease/default/apps",
    ]
    assert [str(unit.location) for unit in units] == [
        "all.yaml:1:1",
        "all.yaml:7:1",
        "all.yaml:17:1",
    ]


def test_a_unit_has_a_destination_and_semantics() -> None:
    units = UnitFinder().find(read_documents(REPOSITORY.encode(), "all.yaml"), "default").units

    assert [unit.destination for unit in units] == [
        Destination("prod", "shop"),
        Destination("", "shop"),
        Destination("", "default"),
    ]
    assert [unit.policy.semantics.name for unit in units] == ["argocd", "flux", "flux"]
    assert [unit.is_suspended for unit in units] == [False, True, False]


def test_dependencies_default_to_the_kind_and_namespace_of_the_unit() -> None:
    _, apps, _ = UnitFinder().find(read_documents(REPOSITORY.encode(), "all.yaml"), "default").units

    assert [(dependency.unit, dependency.ready_when) for dependency in apps.dependencies] == [
        (UnitId("Kustomization", "", "flux-system", "infra"), "dep.status.ready"),
        (UnitId("Kustomization", "", "elsewhere", "other"), ""),
    ]
