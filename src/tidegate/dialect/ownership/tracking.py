"""Tracking metadata of objects: the unit that owns an object, by Tidegate, Argo CD or Flux.

The metadata of all tools is read, so an object of Argo CD or Flux is not silently adopted.

For Argo CD like `GetAppInstance` in `util/argo/resource_tracking.go` of Argo CD 3.6.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text
from tidegate.model.k8s.objects import Json, JsonObject, Ref
from tidegate.model.units.policy import Policy, Tracking
from tidegate.model.units.unit import UnitId

UNIT = "tidegate.dev/unit"
TRACKING_ID = "argocd.argoproj.io/tracking-id"
APPLICATION_SET = "ApplicationSet"
ARGO_NAMESPACE = "argocd"
"""Namespace of Argo CD, whose Applications are tracked by name only."""
MAX_LABEL_LENGTH = 63
FLUX_GROUPS = {
    "Kustomization": "kustomize.toolkit.fluxcd.io",
    "HelmRelease": "helm.toolkit.fluxcd.io",
}


def tracking_metadata(
    unit: UnitId, policy: Policy, ref: Ref
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the annotations and labels that track an object of a unit."""
    match policy.tracking:
        case Tracking.TIDEGATE:
            return {UNIT: unit.tracking_id}, {}
        case Tracking.ARGO:
            app = unit.name if unit.namespace == ARGO_NAMESPACE else f"{unit.namespace}_{unit.name}"
            kind = f"{ref.kind.group}/{ref.kind.name}"
            label = policy.instance_label
            if policy.labels_only:
                return {}, {label: app}
            labels = {label: _label_value(app)} if label else {}
            return {TRACKING_ID: f"{app}:{kind}:{ref.namespace}/{ref.name}"}, labels
        case Tracking.FLUX:
            return {}, flux_labels(unit)


def flux_labels(unit: UnitId) -> dict[str, str]:
    """Return the labels by which Flux controllers track objects of a unit."""
    group = FLUX_GROUPS[unit.kind]
    return {f"{group}/name": unit.name, f"{group}/namespace": unit.namespace}


def _label_value(app: str) -> str:
    """Return the name, cut to a valid label value."""
    return re.sub(r"[^A-Za-z0-9]+$", "", app[:MAX_LABEL_LENGTH])


def owning_unit(body: JsonObject, label: str = "") -> str:
    """Return the tracking ID of the unit that owns an object; empty if none.

    `label`: the instance label, if Argo CD tracks by label. The annotation counts then for
    objects without this label only: the tracking method may have changed.
    """
    annotations, labels = (
        get_mapping(body, "metadata", "annotations"),
        get_mapping(body, "metadata", "labels"),
    )
    by_label = _owner_by_instance(get_text(labels, label)) if label else ""
    by_argo = by_label or _owner_by_tracking_id(get_text(annotations, TRACKING_ID))
    return (
        get_text(annotations, UNIT)
        or by_argo
        or _owner_by_flux_labels(labels)
        or _owner_by_application_set(body)
    )


def _owner_by_application_set(body: JsonObject) -> str:
    """Return the ApplicationSet that created an Application; empty if none."""
    for reference in get_mappings(body, "metadata", "ownerReferences"):
        if get_text(reference, "kind") == APPLICATION_SET and get_text(
            reference, "apiVersion"
        ).startswith("argoproj.io/"):
            return UnitId(
                APPLICATION_SET,
                "",
                get_text(body, "metadata", "namespace"),
                get_text(reference, "name"),
            ).tracking_id
    return ""


def _owner_by_tracking_id(tracking: str) -> str:
    return _owner_by_instance(tracking.partition(":")[0])


def _owner_by_instance(app: str) -> str:
    if not app:
        return ""
    namespace, separator, name = app.partition("_")
    return UnitId(
        "Application", "", *((namespace, name) if separator else (ARGO_NAMESPACE, app))
    ).tracking_id


def _owner_by_flux_labels(labels: Mapping[str, Json]) -> str:
    for kind, group in FLUX_GROUPS.items():
        name, namespace = labels.get(f"{group}/name"), labels.get(f"{group}/namespace")
        if isinstance(name, str) and isinstance(namespace, str):
            return UnitId(kind, "", namespace, name).tracking_id
    return ""
