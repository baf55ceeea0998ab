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

from tidegate.model.release import Parameter, Release
from tidegate.model.source import DeclaredSource

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


class Variable(msgspec.Struct, frozen=True):
    """A value by its name: a text, or with `code` an expression."""

    name: str
    value: str
    code: bool = False

    def __repr__(self) -> str:
        return f"Variable({self.name})"


class Jsonnet(msgspec.Struct, frozen=True, kw_only=True):
    """`directory.jsonnet` of an Application: `extVars`, `tlas` and `libs`.

    Libraries start at the root of the source. Values may name `variables` of the build.
    """

    external: tuple[Variable, ...] = ()
    arguments: tuple[Variable, ...] = ()
    libraries: tuple[str, ...] = ()
    variables: Mapping[str, str] = {}


class Directory(msgspec.Struct, frozen=True, kw_only=True):
    """A directory `path` in a tree, and which files in it count.

    A file that `exclude` matches does not, whatever `include` says. Both are matched against the
    path below the directory. Without `jsonnet`, files of Jsonnet are passed over.
    With `files`, only these count; they start at the root. Where somebody `names` them, each must
    be a manifest.
    """

    root: Path = NOWHERE
    path: str = "."
    recurse: bool = False
    include: str = ""
    exclude: str = ""
    every_ending: bool = False
    files: tuple[str, ...] = ()
    names: bool = False
    jsonnet: Jsonnet | None = Jsonnet()
    size_limit: int = LARGEST_DIRECTORY


class Detected(msgspec.Struct, frozen=True, kw_only=True):
    """A directory whose files decide which of these it is, by Argo CD's rules."""

    path: str = "."
    chart: Release
    overlay: Overlay = Overlay()
    directory: Directory = Directory()


Request: TypeAlias = Release | Overlay | Directory


class ArgoPlugin(msgspec.Struct, frozen=True, kw_only=True):
    """A plugin of Argo CD's is to render it: a program of that installation, which is not here."""

    path: str = "."
    name: str = ""


class ArgoBuild(msgspec.Struct, frozen=True, kw_only=True):
    """The Application and the revision that is built."""

    name: str
    namespace: str = ""
    project: str = "default"
    revision: str = ""
    repository: str = ""
    path: str = ""
    target_revision: str = ""

    def variables(self) -> dict[str, str]:
        """What texts of the Application may name: `$ARGOCD_APP_NAME`."""
        return {
            "ARGOCD_APP_NAME": self.name,
            "ARGOCD_APP_NAMESPACE": self.namespace,
            "ARGOCD_APP_PROJECT_NAME": self.project,
            "ARGOCD_APP_REVISION": self.revision,
            "ARGOCD_APP_REVISION_SHORT": self.revision[:7],
            "ARGOCD_APP_REVISION_SHORT_8": self.revision[:8],
            "ARGOCD_APP_SOURCE_REPO_URL": self.repository,
            "ARGOCD_APP_SOURCE_PATH": self.path,
            "ARGOCD_APP_SOURCE_TARGET_REVISION": self.target_revision,
        }


class ArgoDetails(msgspec.Struct, frozen=True, kw_only=True):
    """What an Application says of a source and only its tree can settle.

    `ref`: how values files of the other sources name this tree. `value_files` and
    `file_parameters` are written as Argo CD writes them: patterns, `$ref/…`, addresses. `written`
    is the source as it stands there, in JSON: files of the tree may override parts of it.
    """

    build: ArgoBuild
    ref: str = ""
    value_files: tuple[str, ...] = ()
    ignore_missing: bool = False
    values_text: str = ""
    parameters: tuple[Parameter, ...] = ()
    file_parameters: tuple[tuple[str, str], ...] = ()
    written: bytes = b""

    def __repr__(self) -> str:
        return f"ArgoDetails({self.build.name})"


class DataReference(msgspec.Struct, frozen=True, kw_only=True):
    """Data in a ConfigMap or Secret of the unit's own namespace.

    `key`: the entry; empty for all of them. `target_path`: where its text goes among the values of
    a chart; a `literal` one is not parsed. An `optional` one need not be there.
    """

    kind: str
    name: str
    key: str = ""
    target_path: str = ""
    optional: bool = False
    literal: bool = False


class Substitution(msgspec.Struct, frozen=True, kw_only=True):
    """Variables of a Flux Kustomization; `always`: also where there are none."""

    inline: Mapping[str, str] = {}
    references: tuple[DataReference, ...] = ()
    always: bool = False

    def __repr__(self) -> str:
        return f"Substitution({', '.join(one.name for one in self.references)})"


class FluxDetails(msgspec.Struct, frozen=True, kw_only=True):
    """What a Kustomization or a HelmRelease asks for around the build.

    `values`: those of a chart that other objects hold. `decrypts`: whether SOPS files are opened;
    `keys`: the Secret with the keys. `labels` and `annotations` go onto every object, last of all.
    `post_renders`: what is done to the objects of a chart, one after another; where it
    `spares_hooks`, not to these. `declared`: the object that stands for the source, once that is
    found.
    """

    values: tuple[DataReference, ...] = ()
    declared: DeclaredSource | None = None
    substitution: Substitution | None = None
    decrypts: bool = False
    keys: str = ""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    post_renders: tuple[FluxOverrides, ...] = ()
    spares_hooks: bool = False

    @property
    def takes_data(self) -> bool:
        """Whether what comes out depends on other objects of a cluster."""
        variables = self.substitution.references if self.substitution else ()
        return bool(self.values or variables or self.keys)
