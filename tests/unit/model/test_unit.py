"""What a unit is called, as its objects carry it."""

from __future__ import annotations

import pytest

from tidegate.model.units.unit import UnitId


@pytest.mark.parametrize(
    ("unit", "text"),
    [
        (UnitId.plain("default", "web"), "default/web"),
        (UnitId.plain("", "web"), "web"),
        (UnitId("Kustomization", "", "flux-system", "apps"), "Kustomization/flux-system/apps"),
        (UnitId("", "east", "default", "web"), "east:default/web"),
        (UnitId("Application", "hub", "argocd", "web"), "hub:Application/argocd/web"),
    ],
)
def test_a_unit_is_called_by_cluster_kind_namespace_and_name(unit: UnitId, text: str) -> None:
    assert str(unit) == text


def test_units_of_different_kinds_and_clusters_are_distinguished() -> None:
    kinds = ("", "Application", "HelmRelease", "Kustomization")
    units = [UnitId(kind, cluster, "a", "b") for kind in kinds for cluster in ("", "east", "west")]

    assert len(set(map(str, units))) == len(set(units)) == len(units)
