"""Requests to render an overlay, a directory or a chart.

A dialect creates a request before anything is fetched. The `root` of a request is set when its
tree is fetched.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

import msgspec

from tidegate.model.units.chart_request import ChartRequest, Parameter
from tidegate.model.units.source import DeclaredSource

NO_ROOT = Path()
"""The root of a tree that is not fetched yet."""
MAX_DIRECTORY_SIZE = 10_000_000
"""Maximum size in bytes of all manifests together: Argo CD's default."""


class Tool(StrEnum):
    """The tool that renders a source, with Argo CD's names."""

    HELM = "Helm"
    KUSTOMIZE = "Kustomize"
    DIRECTORY = "Directory"
    PLUGIN = "Plugin"


class LoadRestriction(StrEnum):
    """The files that a kustomization may load. Directories may be anywhere in the tree."""

    ROOT_ONLY = "LoadRestrictionsRootOnly"
    NONE = "LoadRestrictionsNone"


class ImageOverride(msgspec.Struct, frozen=True, kw_only=True):
    """An image override."""

    name: str
    new_name: str = ""
    new_tag: str = ""
    digest: str = ""


class KustomizePatch(msgspec.Struct, frozen=True, kw_only=True):
    """A patch, inline or in a file of the tree, with its target and options."""

    patch: str = ""
    path: str = ""
    target: Mapping[str, str] = {}
    options: Mapping[str, bool] = {}

    def __repr__(self) -> str:
        return f"Patch(path={self.path!r})"


class ArgoOverrides(msgspec.Struct, frozen=True, kw_only=True):
    """`spec.source.kustomize` of an Application. Images are in Argo CD's syntax."""

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
    """Whether annotations may use `variables`, as images and labels may."""
    patches: tuple[KustomizePatch, ...] = ()
    components: tuple[str, ...] = ()
    ignore_missing_components: bool = False
    variables: Mapping[str, str] = {}
    """The environment variables of the build."""


class FluxOverrides(msgspec.Struct, frozen=True, kw_only=True):
    """Overrides that a Flux Kustomization writes into the kustomization file at its path.

    The file is created if it is missing. `commonMetadata` is not included: Flux adds it after
    decryption and substitution, and so does `add_common_metadata`.
    """

    target_namespace: str | None = None
    name_prefix: str | None = None
    name_suffix: str | None = None
    images: tuple[ImageOverride, ...] = ()
    patches: tuple[KustomizePatch, ...] = ()
    components: tuple[str, ...] = ()
    ignore_missing_components: bool = False
    build_metadata: tuple[str, ...] = ()


class FetchedTree(msgspec.Struct, frozen=True):
    """A fetched remote resource: a tree, and the directory or file in it."""

    root: Path
    path: str = "."


class HelmOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Permission to inflate `helmCharts`, and the capabilities for the charts."""

    command: str = ""
    """A program with the interface of helm. If empty, Tidegate's workers are used."""
    kube_version: str = ""
    api_versions: tuple[str, ...] = ()
    env: Mapping[str, str] = {}


class Overlay(msgspec.Struct, frozen=True, kw_only=True):
    """A request to build the directory `path` in the tree `root`.

    Nothing outside `root` is read.
    """

    root: Path = NO_ROOT
    path: str = "."
    overrides: ArgoOverrides | FluxOverrides | None = None
    restriction: LoadRestriction = LoadRestriction.ROOT_ONLY
    fetched: Mapping[str, FetchedTree] = {}
    """The fetched trees of remote resources that an earlier attempt reported."""
    helm: HelmOptions | None = None


class JsonnetVariable(msgspec.Struct, frozen=True):
    """A named value: a text, or with `code` an expression."""

    name: str
    value: str
    code: bool = False

    def __repr__(self) -> str:
        return f"Variable({self.name})"


class JsonnetOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`directory.jsonnet` of an Application: `extVars`, `tlas` and `libs`.

    Libraries are relative to the root of the source. Values may use `variables` of the build.
    """

    external: tuple[JsonnetVariable, ...] = ()
    arguments: tuple[JsonnetVariable, ...] = ()
    libraries: tuple[str, ...] = ()
    variables: Mapping[str, str] = {}


class Directory(msgspec.Struct, frozen=True, kw_only=True):
    """A request to read the manifests in the directory `path` of a tree.

    `include` and `exclude` are matched against the path below the directory; `exclude` wins.
    """

    root: Path = NO_ROOT
    path: str = "."
    recurse: bool = False
    include: str = ""
    exclude: str = ""
    any_extension: bool = False
    files: tuple[str, ...] = ()
    """If set, only these files are read. They are relative to the root."""
    must_be_manifests: bool = False
    """Whether the user named the files, so that each must be a manifest."""
    jsonnet: JsonnetOptions | None = JsonnetOptions()
    """The options of Jsonnet. If None, Jsonnet files are skipped."""
    size_limit: int = MAX_DIRECTORY_SIZE


class ToolDetection(msgspec.Struct, frozen=True, kw_only=True):
    """A directory whose files decide which tool renders it, as in Argo CD."""

    path: str = "."
    chart: ChartRequest
    overlay: Overlay = Overlay()
    directory: Directory = Directory()


RenderRequest: TypeAlias = ChartRequest | Overlay | Directory


class ArgoPlugin(msgspec.Struct, frozen=True, kw_only=True):
    """A request for a config management plugin of Argo CD, which cannot run here."""

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
        """Return the build environment of the Application: `$ARGOCD_APP_NAME` and others."""
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
    """Settings of an Application source that can only be resolved in its tree."""

    build: ArgoBuild
    ref: str = ""
    """The name by which values files of the other sources refer to this tree."""
    value_files: tuple[str, ...] = ()
    """Values files in Argo CD's syntax: patterns, `$ref/…`, URLs."""
    ignore_missing: bool = False
    values_text: str = ""
    parameters: tuple[Parameter, ...] = ()
    file_parameters: tuple[tuple[str, str], ...] = ()
    """File parameters in Argo CD's syntax."""
    source_json: bytes = b""
    """The source as JSON. Files of the tree may override parts of it."""

    def __repr__(self) -> str:
        return f"ArgoDetails({self.build.name})"


class DataReference(msgspec.Struct, frozen=True, kw_only=True):
    """A reference to data in a ConfigMap or Secret in the namespace of the unit."""

    kind: str
    name: str
    key: str = ""
    """The key. Empty for all keys."""
    target_path: str = ""
    """The target of the text in the values of a chart."""
    optional: bool = False
    """Whether the data may be missing."""
    literal: bool = False
    """Whether the text is not parsed."""


class Substitution(msgspec.Struct, frozen=True, kw_only=True):
    """`postBuild` variables of a Flux Kustomization."""

    inline: Mapping[str, str] = {}
    references: tuple[DataReference, ...] = ()
    always: bool = False
    """Whether substitution runs even if there are no variables."""

    def __repr__(self) -> str:
        return f"Substitution({', '.join(reference.name for reference in self.references)})"


class FluxDetails(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a Kustomization or HelmRelease for the steps before and after the build."""

    value_references: tuple[DataReference, ...] = ()
    """References to values of a chart in other objects."""
    declared_source: DeclaredSource | None = None
    """The source object, once it is found."""
    substitution: Substitution | None = None
    decrypts: bool = False
    """Whether SOPS files are decrypted."""
    key_secret: str = ""
    """The Secret with the decryption keys."""
    labels: Mapping[str, str] = {}
    """Labels that are added to every object at the end."""
    annotations: Mapping[str, str] = {}
    """Annotations that are added to every object at the end."""
    post_renderers: tuple[FluxOverrides, ...] = ()
    """The post-renderers for the objects of a chart, in order."""
    skips_hooks: bool = False
    """Whether post-renderers skip hooks."""
