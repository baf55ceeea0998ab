"""Settings of an Argo CD installation in the repository.

They are in two ConfigMaps, in the values of the chart that creates these, or in an ArgoCD object
of the operator. Other keys are not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tidegate.documents import Document, read_documents
from tidegate.documents.document import format_path
from tidegate.errors import DocumentError, Location
from tidegate.model.config import ControllerSetting
from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text
from tidegate.model.k8s.objects import FieldPath, Json, JsonObject

CONFIG_MAPS = {"argocd-cm": "cm", "argocd-cmd-params-cm": "params"}
"""The ConfigMaps, and their names in the values of the chart."""
KNOWN_KEYS = frozenset(
    [
        "application.instanceLabelKey",
        "application.namespaces",
        "application.resourceTrackingMethod",
        "application.sync.impersonation.enabled",
        "applicationsetcontroller.enable.new.git.file.globbing",
        "applicationsetcontroller.enable.progressive.syncs",
        "applicationsetcontroller.policy",
        "controller.diff.server.side",
        "controller.self.heal.backoff.cap.seconds",
        "controller.self.heal.backoff.factor",
        "controller.self.heal.backoff.timeout.seconds",
        "controller.self.heal.timeout.seconds",
        "controller.sync.timeout.seconds",
        "controller.sync.wave.delay.seconds",
        "globalProjects",
        "helm.enable",
        "helm.valuesFileSchemes",
        "hydrator.enabled",
        "installationID",
        "jsonnet.enable",
        "kustomize.buildOptions",
        "kustomize.enable",
        "reposerver.enable.git.submodule",
        "reposerver.max.combined.directory.manifests.size",
        "resource.compareoptions",
        "resource.customizations",
        "resource.exclusions",
        "resource.inclusions",
        "timeout.reconciliation",
        "timeout.reconciliation.jitter",
    ]
)
"""Keys that affect order, timing or rendering; keys below `KEY_PREFIXES` do so, too."""
OPERATOR_FIELDS = {
    "applicationInstanceLabelKey": "application.instanceLabelKey",
    "kustomizeBuildOptions": "kustomize.buildOptions",
    "resourceCustomizations": "resource.customizations",
    "resourceExclusions": "resource.exclusions",
    "resourceInclusions": "resource.inclusions",
    "resourceTrackingMethod": "application.resourceTrackingMethod",
}
"""The keys that the operator of ArgoCD objects writes, by field of `spec`."""
KEY_PREFIXES = ("resource.customizations", "kustomize.buildOptions")


def read_settings(documents: Iterable[Document]) -> tuple[ControllerSetting, ...]:
    """Read the settings in ConfigMaps and ArgoCD objects, in document order."""
    return tuple(setting for document in documents for setting in _document_settings(document))


def _document_settings(document: Document) -> Iterator[ControllerSetting]:
    body, location = document.body, document.location
    kind = (get_text(body, "apiVersion").partition("/")[0], get_text(body, "kind"))
    if kind == ("v1", "ConfigMap") and get_text(body, "metadata", "name") in CONFIG_MAPS:
        yield from _known_settings(get_mapping(body, "data"), location, ("data",))
    elif kind == ("argoproj.io", "ArgoCD"):
        yield from _operator_settings(get_mapping(body, "spec"), location)


def _operator_settings(spec: JsonObject, location: Location) -> Iterator[ControllerSetting]:
    """Yield the settings that the operator of ArgoCD objects writes into the ConfigMaps.

    Like `reconcileArgoConfigMap` in argocd-operator 0.15, controllers/argocd/configmap.go. What
    `extraConfig` says takes precedence there, so it is last.
    """
    fields = {key: spec[field] for field, key in OPERATOR_FIELDS.items() if field in spec}
    yield from _known_settings(fields, location, ("spec",))
    for index, check in enumerate(get_mappings(spec, "resourceHealthChecks")):
        group, kind = get_text(check, "group"), get_text(check, "kind")
        name = f"{group}_{kind}" if group else kind
        health = {f"resource.customizations.health.{name}": check.get("check")}
        yield from _known_settings(health, location, ("spec", "resourceHealthChecks", index))
    for section in ("cmdParams", "extraConfig"):
        yield from _known_settings(get_mapping(spec, section), location, ("spec", section))


def read_chart_values(values: object, location: Location) -> tuple[ControllerSetting, ...]:
    """Read the settings in values of the chart `argo-cd`, at any depth of a document.

    The chart may be a dependency, and the values may be those of a HelmRelease, of an Application
    or of an overlay that inflates the chart.
    """
    return tuple(_nested_settings(values, location, ()))


def _nested_settings(
    values: object, location: Location, path: FieldPath
) -> Iterator[ControllerSetting]:
    if isinstance(values, list):
        for index, item in enumerate(values):
            yield from _nested_settings(item, location, (*path, index))
    elif isinstance(values, dict):
        for section in CONFIG_MAPS.values():
            data = get_mapping(values, "configs", section)
            yield from _known_settings(data, location, (*path, "configs", section))
        for key, value in values.items():
            yield from _nested_settings(value, location, (*path, key))
    elif isinstance(values, str) and "configs:" in values:
        yield from _text_settings(values, location, path)


def _text_settings(text: str, location: Location, path: FieldPath) -> Iterator[ControllerSetting]:
    """Yield the settings in values that are written as text (`helm.values`)."""
    try:
        documents = read_documents(text.encode(), location.name)
    except DocumentError:
        return
    for document in documents:
        yield from _nested_settings(document.body, location, path)


def _known_settings(
    data: Mapping[str, Json], location: Location, path: FieldPath
) -> Iterator[ControllerSetting]:
    for key, value in data.items():
        is_known = key in KNOWN_KEYS or key.startswith(
            tuple(f"{prefix}." for prefix in KEY_PREFIXES)
        )
        if not is_known or not isinstance(value, str | bool | int | float):
            continue
        value_text = str(value).lower() if isinstance(value, bool) else str(value)
        field_location = Location(
            location.name, location.line, location.column, format_path((*path, key))
        )
        yield ControllerSetting(key, value_text, field_location)
