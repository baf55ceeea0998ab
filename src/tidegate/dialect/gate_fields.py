"""The fields of unit resources that set gates."""

from __future__ import annotations

from tidegate.model.k8s.objects import FieldPath
from tidegate.model.views.order_diff import GateType

GATE_FIELDS: dict[tuple[str, GateType], FieldPath] = {
    ("Kustomization", GateType.WAIT): ("spec", "wait"),
    ("Kustomization", GateType.HEALTH_CHECK): ("spec", "healthChecks"),
    ("Kustomization", GateType.EXPRESSION): ("spec", "healthCheckExprs"),
    ("Kustomization", GateType.DEPENDS_ON): ("spec", "dependsOn"),
    ("Kustomization", GateType.RECONCILIATION): ("spec", "suspend"),
    ("HelmRelease", GateType.WAIT): ("spec", "install", "disableWait"),
    ("HelmRelease", GateType.EXPRESSION): ("spec", "healthCheckExprs"),
    ("HelmRelease", GateType.DEPENDS_ON): ("spec", "dependsOn"),
    ("HelmRelease", GateType.RECONCILIATION): ("spec", "suspend"),
    ("ResourceSet", GateType.WAIT): ("spec", "wait"),
    ("ResourceSet", GateType.DEPENDS_ON): ("spec", "dependsOn"),
}
"""By the kind of the unit resource, as in the API of Flux 2.9 and of flux-operator."""


def gate_field(kind: str, gate: GateType) -> FieldPath:
    """Return the field that sets a gate of a unit resource; empty if no single field does."""
    return GATE_FIELDS.get((kind, gate), ())
