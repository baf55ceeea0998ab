"""Controllers of Argo CD and Flux: how to find them, pause them for one unit, and resume them.

A unit that Tidegate paused has an annotation: a unit that a user suspended is never resumed.
"""

from __future__ import annotations

import msgspec

from tidegate.dialect.argo.application import SKIP_RECONCILE, TRUE_VALUES
from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text, get_value
from tidegate.model.k8s.objects import JsonObject

PAUSED_BY_US = "tidegate.dev/paused"
"""Annotation on a unit resource whose controller Tidegate paused."""
SUSPEND = "suspend"


class ControllerInfo(msgspec.Struct, frozen=True):
    """Controller of a kind of units: its API group, title, workload and pod selectors."""

    group: str
    title: str
    workload: str
    """Workload to scale down to stop the controller."""
    selectors: tuple[str, ...]


CONTROLLERS = {
    "Application": ControllerInfo(
        "argoproj.io",
        "Argo CD",
        "statefulset argocd-application-controller",
        (
            "app.kubernetes.io/name=argocd-application-controller",
            "app.kubernetes.io/component=application-controller,app.kubernetes.io/part-of=argocd",
        ),
    ),
    "Kustomization": ControllerInfo(
        "kustomize.toolkit.fluxcd.io",
        "Flux's kustomize-controller",
        "deployment kustomize-controller",
        ("app=kustomize-controller", "app.kubernetes.io/component=kustomize-controller"),
    ),
    "HelmRelease": ControllerInfo(
        "helm.toolkit.fluxcd.io",
        "Flux's helm-controller",
        "deployment helm-controller",
        ("app=helm-controller", "app.kubernetes.io/component=helm-controller"),
    ),
}
SOURCE_KINDS = ("GitRepository", "OCIRepository", "HelmRepository", "HelmChart", "Bucket")
"""Kinds of Flux sources, which have their own controller."""
CONTROLLERS |= dict.fromkeys(
    SOURCE_KINDS,
    ControllerInfo(
        "source.toolkit.fluxcd.io",
        "Flux's source-controller",
        "deployment source-controller",
        ("app=source-controller", "app.kubernetes.io/component=source-controller"),
    ),
)
FINISHED_PHASES = frozenset({"Succeeded", "Failed"})


def is_running(pod: JsonObject) -> bool:
    """Return whether a pod runs or is about to."""
    is_terminating = bool(get_text(pod, "metadata", "deletionTimestamp"))
    return not is_terminating and get_text(pod, "status", "phase") not in FINISHED_PHASES


def is_paused_by_us(unit_resource: JsonObject) -> bool:
    """Return whether Tidegate paused the controller for a unit."""
    annotations = get_mapping(unit_resource, "metadata", "annotations")
    if get_text(annotations, PAUSED_BY_US) != "true":
        return False
    if get_text(unit_resource, "kind") == "Application":
        return get_text(annotations, SKIP_RECONCILE) in TRUE_VALUES
    return get_value(unit_resource, "spec", SUSPEND) is True


def is_reconciling(unit_resource: JsonObject) -> bool:
    """Return whether the controller is reconciling a unit, which it would not finish if paused."""
    if get_text(unit_resource, "kind") == "Application":
        return get_value(unit_resource, "operation") is not None
    conditions = get_mappings(unit_resource, "status", "conditions")
    by_type = {
        get_text(condition, "type"): (get_text(condition, "status"), get_text(condition, "reason"))
        for condition in conditions
    }
    return by_type.get("Reconciling") == ("True", "Progressing")


def with_pause(unit_resource: JsonObject) -> JsonObject:
    """Return a unit resource that is paused from its creation on."""
    patch = pause_patch(unit_resource)
    metadata = get_mapping(unit_resource, "metadata")
    annotations = {
        **get_mapping(metadata, "annotations"),
        **get_mapping(patch, "metadata", "annotations"),
    }
    paused: JsonObject = {**unit_resource, "metadata": {**metadata, "annotations": annotations}}
    if "spec" in patch:
        paused["spec"] = {**get_mapping(unit_resource, "spec"), **get_mapping(patch, "spec")}
    return paused


def pause_patch(unit_resource: JsonObject) -> JsonObject:
    """Return the merge patch that pauses the controller for a live unit."""
    if get_text(unit_resource, "kind") == "Application":
        return {"metadata": {"annotations": {SKIP_RECONCILE: "true", PAUSED_BY_US: "true"}}}
    return {"metadata": {"annotations": {PAUSED_BY_US: "true"}}, "spec": {SUSPEND: True}}


def resume_patch(unit_resource: JsonObject, desired: JsonObject) -> JsonObject:
    """Return the merge patch that resumes the controller: the values in Git, else none."""
    if get_text(unit_resource, "kind") == "Application":
        value = get_mapping(desired, "metadata", "annotations").get(SKIP_RECONCILE)
        return {"metadata": {"annotations": {SKIP_RECONCILE: value, PAUSED_BY_US: None}}}
    value = get_value(desired, "spec", SUSPEND)
    return {"metadata": {"annotations": {PAUSED_BY_US: None}}, "spec": {SUSPEND: value}}
