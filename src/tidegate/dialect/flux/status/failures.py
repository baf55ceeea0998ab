"""Reason and message of a Kustomization that cannot be reconciled, like kustomize-controller's.

Messages are those of `internal/controller/kustomization_controller.go` in kustomize-controller 1.9.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tidegate.model.k8s.json_fields import get_mappings, get_text
from tidegate.model.k8s.objects import JsonObject
from tidegate.model.rollouts.progress import UnitProgress

DEPENDENCY_NOT_READY = "DependencyNotReady"
TERMINAL_PREFIX = "Reconciliation failed terminally due to configuration error: "
RESOURCE_NAME = "kustomizations.kustomize.toolkit.fluxcd.io"


class KustomizationFailure(NamedTuple):
    """Reason and message of a failed reconciliation."""

    reason: str
    message: str
    is_terminal: bool = False
    """Whether Flux retries only after the resource is changed."""
    has_artifact: bool = False
    """Whether the source artifact was fetched."""


def kustomization_failure(
    unit_resource: JsonObject, progress: UnitProgress
) -> KustomizationFailure:
    """Return the failure that kustomize-controller would report, by the code of the error."""
    code, details = progress.code, progress.message or progress.reason
    if code == "flux.expression":
        return KustomizationFailure(
            "InvalidCELExpression", f"{TERMINAL_PREFIX}{details}", is_terminal=True
        )
    if (dependency := _dependency(unit_resource, progress)) is not None:
        return KustomizationFailure(
            DEPENDENCY_NOT_READY, _dependency_message(unit_resource, dependency, progress)
        )
    if code == "flux.never":
        return KustomizationFailure("HealthCheckFailed", details, has_artifact=True)
    if code == "flux.access" and (source := _cross_namespace_source(unit_resource)):
        message = f"can't access '{source}', cross-namespace references have been blocked"
        return KustomizationFailure("AccessDenied", message, is_terminal=True)
    if code == "source.path":
        path = get_text(unit_resource, "spec", "path")
        message = f"kustomization path not found: stat {path}: no such file or directory"
        return KustomizationFailure("ArtifactFailed", message)
    if code.startswith("source."):
        return KustomizationFailure("ArtifactFailed", details)
    return KustomizationFailure(
        "BuildFailed",
        _missing_substitute_message(unit_resource, progress) or details,
        has_artifact=True,
    )


def _dependency(unit_resource: JsonObject, progress: UnitProgress) -> JsonObject | None:
    """Return the entry of `dependsOn` that the failure is about; None if there is none."""
    if progress.code == "plan.cycle":
        units = {str(unit) for unit in progress.cycle}
        entries = get_mappings(unit_resource, "spec", "dependsOn")
        matching = (
            entry
            for entry in entries
            if f"Kustomization/{_namespaced_name(unit_resource, entry)}" in units
        )
        return next(matching, None)
    return _entry(unit_resource, progress.field, "dependsOn")


def _dependency_message(
    unit_resource: JsonObject, entry: JsonObject, progress: UnitProgress
) -> str:
    subject = f"dependency '{_namespaced_name(unit_resource, entry)}'"
    if progress.code in {"units.unknown", "units.unread"}:
        return f'{subject} not found: {RESOURCE_NAME} "{get_text(entry, "name")}" not found'
    suffix = " according to readyExpr eval" if progress.code == "flux.never" else ""
    return f"{subject} is not ready{suffix}"


def _missing_substitute_message(unit_resource: JsonObject, progress: UnitProgress) -> str:
    """Return the message about a missing ConfigMap or Secret of `substituteFrom`; empty if none."""
    if (entry := _entry(unit_resource, progress.field, "postBuild", "substituteFrom")) is None:
        return ""
    kind, name = get_text(entry, "kind"), get_text(entry, "name")
    return f"substitute from '{kind}/{name}' error: {kind.lower()}s \"{name}\" not found"


def _entry(unit_resource: JsonObject, field: str, *path: str) -> JsonObject | None:
    """Return the entry of a list in the spec that contains a field; None if there is none."""
    entries = get_mappings(unit_resource, "spec", *path)
    matched = re.match(rf"spec\.{re.escape('.'.join(path))}\[(\d+)\]", field)
    index = int(matched[1]) if matched else len(entries)
    return entries[index] if index < len(entries) else None


def _namespaced_name(unit_resource: JsonObject, entry: JsonObject) -> str:
    namespace = get_text(
        entry, "namespace", default=get_text(unit_resource, "metadata", "namespace")
    )
    return f"{namespace}/{get_text(entry, 'name')}"


def _cross_namespace_source(unit_resource: JsonObject) -> str:
    """Return the source if it is in another namespace; else an empty text."""
    namespace = get_text(unit_resource, "metadata", "namespace")
    source_namespace = get_text(unit_resource, "spec", "sourceRef", "namespace", default=namespace)
    kind, name = (get_text(unit_resource, "spec", "sourceRef", key) for key in ("kind", "name"))
    return "" if source_namespace == namespace else f"{kind}/{source_namespace}/{name}"
