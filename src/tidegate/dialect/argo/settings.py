"""What switches the behaviour of an installation of Argo CD, as the repository has it.

It stands in two ConfigMaps, or among the values of the chart that makes them. Nothing else of them
is looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from tidegate.documents import Document
from tidegate.documents.document import path_text
from tidegate.errors import Place
from tidegate.model.objects import Json
from tidegate.model.reading import mapping, text

MAPS = {"argocd-cm": "cm", "argocd-cmd-params-cm": "params"}
"""The ConfigMaps, and what the chart calls them."""


class Known(NamedTuple):
    """Our word for a setting, what it is where nobody says, and what it does."""

    name: str
    default: str
    meaning: str


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """A setting that somebody has written, by our word and by Argo CD's key."""

    name: str
    key: str
    value: str
    where: Place


KNOWN = {
    "application.instanceLabelKey": Known(
        "instance label", "app.kubernetes.io/instance", "the label that names the Application"
    ),
    "application.namespaces": Known("namespaces", "", "where Applications are besides its own"),
    "application.resourceTrackingMethod": Known(
        "tracking", "annotation", "how objects say whose they are"
    ),
    "application.sync.impersonation.enabled": Known(
        "impersonation", "false", "syncs use the account that the project names"
    ),
    "applicationsetcontroller.enable.progressive.syncs": Known(
        "progressive syncs", "false", "ApplicationSets sync step by step"
    ),
    "applicationsetcontroller.enable.new.git.file.globbing": Known(
        "doublestar", "false", "patterns of files are read as everywhere else"
    ),
    "applicationsetcontroller.policy": Known(
        "set policy", "sync", "what ApplicationSets may do to their Applications"
    ),
    "controller.diff.server.side": Known(
        "server-side diff", "false", "the API server says what differs"
    ),
    "controller.self.heal.backoff.cap.seconds": Known(
        "heal cap", "300", "the longest pause before something is put back"
    ),
    "controller.self.heal.timeout.seconds": Known(
        "heal pause", "0", "the pause before something is put back"
    ),
    "controller.sync.timeout.seconds": Known("sync timeout", "0", "how long a sync may take"),
    "controller.sync.wave.delay.seconds": Known("wave pause", "2", "the pause behind each wave"),
    "helm.enable": Known("helm", "true", "charts are looked for"),
    "helm.valuesFileSchemes": Known(
        "values schemes", "https, http", "where files of values may be fetched from"
    ),
    "hydrator.enabled": Known("hydrator", "false", "`sourceHydrator` does something"),
    "installationID": Known("installation", "", "tells objects of several installations apart"),
    "jsonnet.enable": Known("jsonnet", "true", "files of Jsonnet are read"),
    "kustomize.buildOptions": Known("kustomize options", "", "flags of every build"),
    "kustomize.enable": Known("kustomize", "true", "overlays are looked for"),
    "reposerver.enable.git.submodule": Known("submodules", "true", "Git's submodules are fetched"),
    "reposerver.max.combined.directory.manifests.size": Known(
        "directory size", "10M", "how much a directory of manifests may hold"
    ),
    "resource.compareoptions": Known("compare options", "", "what is no difference, everywhere"),
    "resource.customizations": Known(
        "customizations", "", "health, ignored differences and actions of kinds"
    ),
    "resource.exclusions": Known("exclusions", "", "kinds that are never looked at"),
    "resource.inclusions": Known("inclusions", "", "the only kinds that are looked at"),
    "timeout.reconciliation": Known("poll", "120s", "how often Git is asked"),
}
"""By Argo CD's keys. Keys below `resource.customizations` and of kustomize's versions count too."""
FAMILIES = ("resource.customizations", "kustomize.buildOptions")


def read_settings(documents: Iterable[Document]) -> tuple[Setting, ...]:
    """What ConfigMaps of Argo CD's say, in their order."""
    return tuple(
        setting
        for document in documents
        if text(document.body, "kind") == "ConfigMap"
        and text(document.body, "apiVersion") == "v1"
        and text(document.body, "metadata", "name") in MAPS
        for setting in _known(mapping(document.body, "data"), document.place, ("data",))
    )


def read_chart_values(values: Mapping[str, Json], where: Place) -> tuple[Setting, ...]:
    """What values of the chart `argo-cd` say."""
    configs = mapping(dict(values), "configs")
    return tuple(
        setting
        for part in MAPS.values()
        for setting in _known(mapping(configs, part), where, ("configs", part))
    )


def _known(data: dict[str, Json], where: Place, path: tuple[str, ...]) -> Iterator[Setting]:
    for key, value in data.items():
        known = KNOWN.get(key) or next(
            (KNOWN[family] for family in FAMILIES if key.startswith(f"{family}.")), None
        )
        if known is None or not isinstance(value, str | bool | int | float):
            continue
        said = str(value).lower() if isinstance(value, bool) else str(value)
        place = Place(where.name, where.line, where.column, path_text((*path, key)))
        yield Setting(name=known.name, key=key, value=said, where=place)
