"""What is to be built: an overlay in a tree, and what the unit changes in it from outside."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

import msgspec

from tidegate.external.process import Limits

KUSTOMIZATION_NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
LARGEST_TREE = 256 * 1024 * 1024
"""Bytes of all files that one overlay may reach."""


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


class Use(StrEnum):
    """What a file is there for that may be encrypted."""

    FILE = "a file of a Secret"
    ENV = "a file of variables of a Secret"
    PATCH = "a patch"


class Input(msgspec.Struct, frozen=True, kw_only=True):
    """A file that Flux decrypts before it builds. The ending of `name` says its format."""

    path: str
    name: str
    use: Use
    content: bytes

    def __repr__(self) -> str:
        return f"Input(path={self.path!r})"


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

    root: Path
    path: str = "."
    overrides: ArgoOverrides | FluxOverrides | None = None
    restriction: Restriction = Restriction.OWN_DIRECTORY
    fetched: Mapping[str, Fetched] = {}
    helm: Helm | None = None
    limits: Limits = Limits()
