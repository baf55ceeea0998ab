"""What is to be rendered, and how: an overlay, a directory, or a chart.

A dialect says it before anything is fetched. The `root` of a request is where its tree lies then;
it is filled in when that is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

import msgspec

from tidegate.model.release import Release

NOWHERE = Path()
"""The root of a tree that is not fetched yet."""
LARGEST_DIRECTORY = 10_000_000
"""Bytes of all manifests together, as Argo CD counts them by default."""


class Tool(StrEnum):
    """What turns a source into objects. The values are Argo CD's own words."""

    HELM = "Helm"
    KUSTOMIZE = "Kustomize"
    DIRECTORY = "Directory"
    PLUGIN = "Plugin"


class Restriction(StrEnum):
    """Which files a kustomization may load. Directories may be anywhere in the tree."""

    OWN_DIRECTORY = "LoadRestrictionsRootOnly"
    WHOLE_TREE = "LoadRestrictionsNone"


class Image(msgspec.Struct, frozen=True, kw_only=True):
    """How an image is renamed."""

    name: str
    new_name: str = ""
    new_tag: str = ""
    digest: str = ""


class Patch(msgspec.Struct, frozen=True, kw_only=True):
    """A patch, written out or in a file of the tree; what it is for, and its options."""

    patch: str = ""
    path: str = ""
    target: Mapping[str, str] = {}
    options: Mapping[str, bool] = {}

    def __repr__(self) -> str:
        return f"Patch(path={self.path!r})"


class ArgoOverrides(msgspec.Struct, frozen=True, kw_only=True):
    """`spec.source.kustomize` of an Application. Images are written as Argo CD writes them.

    Images and labels may name `variables` of the build; annotations where `annotation_variables`.
    """

    name_prefix: str = ""
    name_suffix: str = ""
    namespace: str = ""
    images: tuple[str, ...] = ()
    replicas: Mapping[str, int] = {}
    common_labels: Mapping[str, str] = {}
    force_common_labels: bool = False
    label_without_selector: bool = False
    label_include_templates: bool = False
    common_annotations: Mapping[str, str] = {}
    force_common_annotations: bool = False
    annotation_variables: bool = False
    patches: tuple[Patch, ...] = ()
    components: tuple[str, ...] = ()
    ignore_missing_components: bool = False
    variables: Mapping[str, str] = {}


class FluxOverrides(msgspec.Struct, frozen=True, kw_only=True):
    """What a Flux Kustomization writes into the file at its path, which it makes if there is none.

    `commonMetadata` is not here: Flux adds it behind decryption and substitution, and so does
    `add_common_metadata`.
    """

    target_namespace: str | None = None
    name_prefix: str | None = None
    name_suffix: str | None = None
    images: tuple[Image, ...] = ()
    patches: tuple[Patch, ...] = ()
    components: tuple[str, ...] = ()
    ignore_missing_components: bool = False
    build_metadata: tuple[str, ...] = ()


class Fetched(msgspec.Struct, frozen=True):
    """Something remote that somebody has brought: a tree, and the directory or file meant in it."""

    root: Path
    path: str = "."


class Helm(msgspec.Struct, frozen=True, kw_only=True):
    """That `helmCharts` may be inflated, and what charts are told.

    `command` is a program that speaks like helm. Without one our own workers do it.
    """

    command: str = ""
    kube_version: str = ""
    api_versions: tuple[str, ...] = ()
    env: Mapping[str, str] = {}


class Overlay(msgspec.Struct, frozen=True, kw_only=True):
    """One build: the directory `path` in the tree `root`.

    Nothing outside `root` is read. `fetched` says, for each remote thing that a first try reported,
    where it lies now.
    """

    root: Path = NOWHERE
    path: str = "."
    overrides: ArgoOverrides | FluxOverrides | None = None
    restriction: Restriction = Restriction.OWN_DIRECTORY
    fetched: Mapping[str, Fetched] = {}
    helm: Helm | None = None


class Directory(msgspec.Struct, frozen=True, kw_only=True):
    """A directory `path` in a tree, and which files in it count.

    A file that `exclude` matches does not, whatever `include` says. Both are matched against the
    path below the directory.
    """

    root: Path = NOWHERE
    path: str = "."
    recurse: bool = False
    include: str = ""
    exclude: str = ""
    every_ending: bool = False
    jsonnet: bool = True
    size_limit: int = LARGEST_DIRECTORY


class Detected(msgspec.Struct, frozen=True, kw_only=True):
    """A directory whose files decide which of these it is, by Argo CD's rules."""

    path: str = "."
    chart: Release
    overlay: Overlay = Overlay()
    directory: Directory = Directory()


Request: TypeAlias = Release | Overlay | Directory
