"""A chart to be rendered: its values in the order in which they are merged, and a setting.

These are also the words on the line to a worker.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeAlias

import msgspec

from tidegate.errors import without_user

LOCAL = "file://"
"""Before the path of a dependency that lies beside its chart."""
DEFAULT_KUBE_VERSION = "v1.36.0"
"""What a chart sees as `.Capabilities.KubeVersion` where no cluster is known."""


class How(StrEnum):
    """How a parameter's text is read: `--set`, `--set-string` or `--set-literal`."""

    TYPED = "typed"
    STRING = "string"
    LITERAL = "literal"


class ValuesFile(msgspec.Struct, frozen=True, tag="file", gc=False):
    """A file of values.

    Its path starts at the chart, or with a `/` at the root of the source. `root` names another
    source's directory: then every path starts there.
    """

    path: str
    optional: bool = False
    root: str = ""


class ValuesText(msgspec.Struct, frozen=True, tag="text", gc=False):
    """Values as YAML text. `name` is how errors call it: `ConfigMap shop/web (values.yaml)`.

    Helm merges all documents of a file. Of other texts it reads the first.
    """

    text: str
    name: str
    is_file: bool = False

    def __repr__(self) -> str:
        return f"ValuesText({self.name})"


class Inline(msgspec.Struct, frozen=True, tag="inline", gc=False):
    """The place of the release's own `values` among the layers."""


class Parameter(msgspec.Struct, frozen=True, tag="parameter", gc=False):
    """One value by its name, in the language of `--set`."""

    name: str
    value: str
    how: How = How.TYPED

    def __repr__(self) -> str:
        return f"Parameter({self.name})"


class FileParameter(msgspec.Struct, frozen=True, tag="file-parameter", gc=False):
    """One value that is the content of a file. Paths are those of a `ValuesFile`."""

    name: str
    path: str
    root: str = ""


class ValuesAddress(msgspec.Struct, frozen=True, tag="address", gc=False):
    """Values on a web server; they are fetched, and become a text, before a chart is rendered."""

    url: str


Layer: TypeAlias = ValuesFile | ValuesText | ValuesAddress | Inline | Parameter | FileParameter


class ChartDependency(msgspec.Struct, frozen=True, order=True, gc=False):
    """A chart that another one depends on, as its Chart.yaml, or better its Chart.lock, has it."""

    name: str
    version: str = ""
    repository: str = ""

    def __str__(self) -> str:
        return without_user(f"{self.name} {self.version or '*'} from {self.repository}")


class FetchedChart(msgspec.Struct, frozen=True, gc=False):
    """A dependency that somebody has brought: the directory of the chart, or its `.tgz`."""

    dependency: ChartDependency
    path: str


class LookedUp(msgspec.Struct, frozen=True, gc=False):
    """What a cluster answers to a template that looks something up: an HTTP status, and JSON."""

    status: int
    body: str = "{}"

    def __repr__(self) -> str:
        # It may be a Secret.
        return f"LookedUp({self.status})"


NOT_THERE = LookedUp(
    404,
    '{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"NotFound","code":404}',
)


class Release(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag="release"):
    """One chart to render.

    `root` is the directory of the source: nothing outside it is read. `chart` is the directory of
    the chart inside it, or its `.tgz`. `layers` say what is merged over the chart's own values, in
    that order; `argo_layers` and `flux_layers` make them. `defaults` replaces the chart's
    `values.yaml`, as `valuesFiles` of a Flux chart does.

    Dependencies that the chart does not bring come from `fetched`, or from its own source. What
    must come from elsewhere is fetched by the worker where `repositories` allow it, and else told
    in a `DependencyError`. Where nothing `builds_dependencies`, all must be in `charts`. Who
    `checks_lock` takes no lock that does not fit Chart.yaml: Argo CD does, Flux does not.

    `artifact` is the revision of the OCI artifact that it was fetched as, where its version is to
    tell that: `tag@sha256:…`, or the digest alone.
    Hooks that are tests are left out, unless it is to `include_tests`.
    Templates see `revision` and `is_upgrade`. `described`: the chart itself, its notes and the
    values of the user are wanted as well, as a record of the release keeps them.
    `lookups` is what `lookup` finds, by the path that it asks a cluster for; what is not among it
    is told in a `LookupsError`. Where it is None there is no cluster, and `lookup` finds nothing.
    """

    root: str = ""
    chart: str = "."
    name: str
    namespace: str = "default"
    values: Mapping[str, object] = {}
    layers: tuple[Layer, ...] = (Inline(),)
    defaults: tuple[ValuesFile, ...] = ()
    kube_version: str = DEFAULT_KUBE_VERSION
    api_versions: tuple[str, ...] = ()
    include_crds: bool = True
    include_tests: bool = False
    is_upgrade: bool = False
    revision: int = 1
    described: bool = False
    skip_schema: bool = False
    repositories: tuple[str, ...] = ("https://", "oci://")
    fetched: tuple[FetchedChart, ...] = ()
    builds_dependencies: bool = True
    checks_lock: bool = True
    artifact: str = ""
    lookups: Mapping[str, LookedUp] | None = None

    def __repr__(self) -> str:
        # Values may be secret, and what is printed ends in logs.
        return f"Release({self.name}, chart={self.chart})"


class GoTexts(msgspec.Struct, frozen=True, gc=False, tag="texts"):
    """Go templates, and sets of parameters to render each of them with.

    Where `strict`, one that names a parameter which is not there cannot be rendered.
    """

    texts: tuple[str, ...]
    params: tuple[dict[str, object], ...]
    strict: bool = False

    def __repr__(self) -> str:
        return f"GoTexts({len(self.texts)} for {len(self.params)})"
