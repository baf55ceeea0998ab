"""Other masters of units: the controllers whose work we do, how they are known, and how held.

A controller that is held leaves one unit alone, until it is let go. Whoever is held by us carries
a note of ours: what somebody else has suspended is never resumed.
"""

from __future__ import annotations

import msgspec

from tidegate.dialect.argo.application import SKIPS, TRUE
from tidegate.model.objects import Json
from tidegate.model.reading import mapping, mappings, part, text

Body = dict[str, Json]
HELD = "tidegate.dev/held"
"""Says on a unit's own object that its controller is held by us."""
SUSPEND = "suspend"


class Master(msgspec.Struct, frozen=True):
    """A controller: the kind of units it brings, what it is called, and the labels of its pods.

    `workload`: what to scale down where it shall not run.
    """

    group: str
    title: str
    workload: str
    selectors: tuple[str, ...]


MASTERS = {
    "Application": Master(
        "argoproj.io",
        "Argo CD",
        "statefulset argocd-application-controller",
        (
            "app.kubernetes.io/name=argocd-application-controller",
            "app.kubernetes.io/component=application-controller,app.kubernetes.io/part-of=argocd",
        ),
    ),
    "Kustomization": Master(
        "kustomize.toolkit.fluxcd.io",
        "Flux's kustomize-controller",
        "deployment kustomize-controller",
        ("app=kustomize-controller", "app.kubernetes.io/component=kustomize-controller"),
    ),
    "HelmRelease": Master(
        "helm.toolkit.fluxcd.io",
        "Flux's helm-controller",
        "deployment helm-controller",
        ("app=helm-controller", "app.kubernetes.io/component=helm-controller"),
    ),
}
SOURCES = ("GitRepository", "OCIRepository", "HelmRepository", "HelmChart", "Bucket")
"""Kinds of what units of Flux's take from, which have a controller of their own."""
MASTERS |= dict.fromkeys(
    SOURCES,
    Master(
        "source.toolkit.fluxcd.io",
        "Flux's source-controller",
        "deployment source-controller",
        ("app=source-controller", "app.kubernetes.io/component=source-controller"),
    ),
)
ENDED = frozenset({"Succeeded", "Failed"})


def is_alive(pod: Body) -> bool:
    """Whether a pod runs, or is about to."""
    is_leaving = bool(text(pod, "metadata", "deletionTimestamp"))
    return not is_leaving and text(pod, "status", "phase") not in ENDED


def is_held(own: Body) -> bool:
    """Whether its controller leaves a unit alone because of us."""
    notes = mapping(own, "metadata", "annotations")
    if text(notes, HELD) != "true":
        return False
    if text(own, "kind") == "Application":
        return text(notes, SKIPS) in TRUE
    return part(own, "spec", SUSPEND) is True


def is_busy(own: Body) -> bool:
    """Whether its controller is in the middle of something, which it would not finish if held."""
    if text(own, "kind") == "Application":
        return part(own, "operation") is not None
    conditions = mappings(own, "status", "conditions")
    told = {text(one, "type"): (text(one, "status"), text(one, "reason")) for one in conditions}
    return told.get("Reconciling") == ("True", "Progressing")


def hold(own: Body) -> Body:
    """An own object that is held from its first moment on."""
    change = holding(own)
    metadata = mapping(own, "metadata")
    notes = {**mapping(metadata, "annotations"), **mapping(change, "metadata", "annotations")}
    held: Body = {**own, "metadata": {**metadata, "annotations": notes}}
    if "spec" in change:
        held["spec"] = {**mapping(own, "spec"), **mapping(change, "spec")}
    return held


def holding(own: Body) -> Body:
    """The merge patch that holds the controller of one that lives."""
    if text(own, "kind") == "Application":
        return {"metadata": {"annotations": {SKIPS: "true", HELD: "true"}}}
    return {"metadata": {"annotations": {HELD: "true"}}, "spec": {SUSPEND: True}}


def releasing(own: Body, written: Body) -> Body:
    """The merge patch that lets it go again: what Git says in these fields, else nothing."""
    if text(own, "kind") == "Application":
        said = mapping(written, "metadata", "annotations").get(SKIPS)
        return {"metadata": {"annotations": {SKIPS: said, HELD: None}}}
    said = part(written, "spec", SUSPEND)
    return {"metadata": {"annotations": {HELD: None}}, "spec": {SUSPEND: said}}
