"""What switches the behaviour of an installation of Argo CD, as the repository has it.

It stands in two ConfigMaps, or among the values of the chart that makes them. Nothing else of them
is looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tidegate.documents import Document
from tidegate.documents.document import path_text
from tidegate.errors import Place
from tidegate.model.config import Switch
from tidegate.model.objects import Json
from tidegate.model.reading import mapping, text

MAPS = {"argocd-cm": "cm", "argocd-cmd-params-cm": "params"}
"""The ConfigMaps, and what the chart calls them."""


KNOWN = frozenset(
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
"""What changes an order, a pace, or what is rendered. Keys below the families count too."""
FAMILIES = ("resource.customizations", "kustomize.buildOptions")


def read_settings(documents: Iterable[Document]) -> tuple[Switch, ...]:
    """What ConfigMaps of Argo CD's say, in their order."""
    return tuple(
        setting
        for document in documents
        if text(document.body, "kind") == "ConfigMap"
        and text(document.body, "apiVersion") == "v1"
        and text(document.body, "metadata", "name") in MAPS
        for setting in _known(mapping(document.body, "data"), document.place, ("data",))
    )


def read_chart_values(values: Mapping[str, Json], where: Place) -> tuple[Switch, ...]:
    """What values of the chart `argo-cd` say."""
    configs = mapping(dict(values), "configs")
    return tuple(
        setting
        for part in MAPS.values()
        for setting in _known(mapping(configs, part), where, ("configs", part))
    )


def _known(data: dict[str, Json], where: Place, path: tuple[str, ...]) -> Iterator[Switch]:
    for key, value in data.items():
        is_known = key in KNOWN or key.startswith(tuple(f"{one}." for one in FAMILIES))
        if not is_known or not isinstance(value, str | bool | int | float):
            continue
        said = str(value).lower() if isinstance(value, bool) else str(value)
        place = Place(where.name, where.line, where.column, path_text((*path, key)))
        yield Switch(key, said, place)
