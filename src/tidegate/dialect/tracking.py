"""How an object says whose it is: by an annotation of ours, or in the words of its dialect.

Whatever writes into a cluster besides us leaves its own mark. All marks are read, so that an object
of Argo CD's or Flux's is not taken over without a word.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tidegate.model.objects import Json, Ref
from tidegate.model.policy import Policy, Tracking
from tidegate.model.reading import mapping, mappings, text
from tidegate.model.unit import UnitId

Body = dict[str, Json]
UNIT = "tidegate.dev/unit"
TRACKING_ID = "argocd.argoproj.io/tracking-id"
SET = "ApplicationSet"
ARGO_HOME = "argocd"
"""Where Argo CD's own applications are, whose names stand there alone."""
LONGEST_LABEL = 63
FLUX = {"Kustomization": "kustomize.toolkit.fluxcd.io", "HelmRelease": "helm.toolkit.fluxcd.io"}


def marks_of(unit: UnitId, policy: Policy, ref: Ref) -> tuple[dict[str, str], dict[str, str]]:
    """The annotations and the labels by which an object says that it is the unit's."""
    match policy.tracking:
        case Tracking.OWN:
            return {UNIT: unit.mark}, {}
        case Tracking.ARGO:
            app = unit.name if unit.namespace == ARGO_HOME else f"{unit.namespace}_{unit.name}"
            kind = f"{ref.kind.group}/{ref.kind.name}"
            label = policy.instance_label
            if policy.labels_only:
                return {}, {label: app}
            labels = {label: _label_value(app)} if label else {}
            return {TRACKING_ID: f"{app}:{kind}:{ref.namespace}/{ref.name}"}, labels
        case Tracking.FLUX:
            return {}, origin_labels(unit)


def origin_labels(unit: UnitId) -> dict[str, str]:
    """The labels by which Flux's controllers know their own."""
    group = FLUX[unit.kind]
    return {f"{group}/name": unit.name, f"{group}/namespace": unit.namespace}


def _label_value(app: str) -> str:
    """As long as a label may be, and ending as it must."""
    return re.sub(r"[^A-Za-z0-9]+$", "", app[:LONGEST_LABEL])


def owner_of(body: Body, label: str = "") -> str:
    """The unit that an object says it belongs to, as our own mark has it; empty for none.

    `label`: the key of the one that Argo CD goes by, where that is not its annotation. Then an
    annotation counts for what has no such label: somebody went by it once.
    """
    notes, labels = mapping(body, "metadata", "annotations"), mapping(body, "metadata", "labels")
    by_label = _of_instance(text(labels, label)) if label else ""
    told = by_label or _of_argo(text(notes, TRACKING_ID))
    return text(notes, UNIT) or told or _of_flux(labels) or _of_set(body)


def _of_set(body: Body) -> str:
    """The ApplicationSet that made an Application."""
    for one in mappings(body, "metadata", "ownerReferences"):
        if text(one, "kind") == SET and text(one, "apiVersion").startswith("argoproj.io/"):
            return UnitId(SET, "", text(body, "metadata", "namespace"), text(one, "name")).mark
    return ""


def _of_argo(tracking: str) -> str:
    return _of_instance(tracking.partition(":")[0])


def _of_instance(app: str) -> str:
    if not app:
        return ""
    namespace, sign, name = app.partition("_")
    return UnitId("Application", "", *((namespace, name) if sign else (ARGO_HOME, app))).mark


def _of_flux(labels: Mapping[str, Json]) -> str:
    for kind, group in FLUX.items():
        name, namespace = labels.get(f"{group}/name"), labels.get(f"{group}/namespace")
        if isinstance(name, str) and isinstance(namespace, str):
            return UnitId(kind, "", namespace, name).mark
    return ""
