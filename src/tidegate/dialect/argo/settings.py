"""Settings of an Argo CD installation in the repository.

They are in two ConfigMaps, or in the values of the chart that creates these. Other keys are not
read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tidegate.documents import Document
from tidegate.documents.document import format_path
from tidegate.errors import Location
from tidegate.model.config import ControllerSetting
from tidegate.model.k8s.json_fields import get_mapping, get_text
from tidegate.model.k8s.objects import Json

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
KEY_PREFIXES = ("resource.customizations", "kustomize.buildOptions")


def read_settings(documents: Iterable[Document]) -> tuple[ControllerSetting, ...]:
    """Read the settings in ConfigMaps of Argo CD, in document order."""
    return tuple(
        setting
        for document in documents
        if get_text(document.body, "kind") == "ConfigMap"
        and get_text(document.body, "apiVersion") == "v1"
        and get_text(document.body, "metadata", "name") in CONFIG_MAPS
        for setting in _known_settings(
            get_mapping(document.body, "data"), document.location, ("data",)
        )
    )


def read_chart_values(
    values: Mapping[str, Json], location: Location
) -> tuple[ControllerSetting, ...]:
    """Read the settings in values of the chart `argo-cd`."""
    configs = get_mapping(dict(values), "configs")
    return tuple(
        setting
        for section in CONFIG_MAPS.values()
        for setting in _known_settings(
            get_mapping(configs, section), location, ("configs", section)
        )
    )


def _known_settings(
    data: dict[str, Json], location: Location, path: tuple[str, ...]
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
