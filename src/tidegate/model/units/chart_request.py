"""Request to render a chart: values in the order of merging, and options.

The structs are also the messages to a worker.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeAlias

import msgspec

from tidegate.errors import redact_urls

LOCAL_PREFIX = "file://"
"""The URL prefix of a dependency in the directory of its chart."""
DEFAULT_KUBE_VERSION = "v1.36.0"
"""The value of `.Capabilities.KubeVersion` if no cluster is known."""


class ParameterType(StrEnum):
    """How the text of a parameter is parsed: `--set`, `--set-string` or `--set-literal`."""

    TYPED = "typed"
    STRING = "string"
    LITERAL = "literal"


class ValuesFile(msgspec.Struct, frozen=True, tag="file", gc=False):
    """A values file.

    Its path is relative to the chart, or with a leading `/` to the root of the source.
    """

    path: str
    optional: bool = False
    root: str = ""
    """The directory of another source, which all paths are relative to."""


class ValuesText(msgspec.Struct, frozen=True, tag="text", gc=False):
    """Values as YAML text.

    Helm merges all documents of a file. Of other values it reads the first document.
    """

    text: str
    name: str
    """The name in errors: `ConfigMap shop/web (values.yaml)`."""
    is_file: bool = False

    def __repr__(self) -> str:
        return f"ValuesText({self.name})"


class InlineValues(msgspec.Struct, frozen=True, tag="inline", gc=False):
    """The position of the inline `values` of the release among the layers."""


class Parameter(msgspec.Struct, frozen=True, tag="parameter", gc=False):
    """One value by name, in the syntax of `--set`."""

    name: str
    value: str
    how: ParameterType = ParameterType.TYPED

    def __repr__(self) -> str:
        return f"Parameter({self.name})"


class FileParameter(msgspec.Struct, frozen=True, tag="file-parameter", gc=False):
    """One value with the content of a file. Paths are resolved as in `ValuesFile`."""

    name: str
    path: str
    root: str = ""


class ValuesUrl(msgspec.Struct, frozen=True, tag="address", gc=False):
    """Values on a web server.

    They are fetched and replaced by a text before the chart is rendered.
    """

    url: str


ValuesLayer: TypeAlias = (
    ValuesFile | ValuesText | ValuesUrl | InlineValues | Parameter | FileParameter
)


class ChartDependency(msgspec.Struct, frozen=True, order=True, gc=False):
    """A dependency of a chart, from Chart.lock, else from Chart.yaml."""

    name: str
    version: str = ""
    repository: str = ""

    def __str__(self) -> str:
        return redact_urls(f"{self.name} {self.version or '*'} from {self.repository}")


class FetchedChart(msgspec.Struct, frozen=True, gc=False):
    """A fetched dependency: the directory of the chart, or its `.tgz`."""

    dependency: ChartDependency
    path: str


class LookupResult(msgspec.Struct, frozen=True, gc=False):
    """The response of a cluster to Helm's `lookup`: an HTTP status, and JSON."""

    status: int
    body: str = "{}"

    def __repr__(self) -> str:
        # The body may be a Secret.
        return f"LookedUp({self.status})"


LOOKUP_NOT_FOUND = LookupResult(
    404,
    '{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"NotFound","code":404}',
)


class ChartRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag="release"):
    """A request to render one chart.

    Dependencies that are not in the chart come from `fetched` or from its own source. The worker
    reports others in a `DependencyError`.
    """

    root: str = ""
    """The directory of the source. Nothing outside it is read."""
    chart: str = "."
    """The directory or `.tgz` of the chart inside `root`."""
    name: str
    namespace: str = "default"
    values: Mapping[str, object] = {}
    layers: tuple[ValuesLayer, ...] = (InlineValues(),)
    """The values to merge over those of the chart, in order.

    `argo_layers` and `flux_layers` build them.
    """
    defaults: tuple[ValuesFile, ...] = ()
    """Replaces the `values.yaml` of the chart, like `valuesFiles` of a Flux chart."""
    kube_version: str = DEFAULT_KUBE_VERSION
    api_versions: tuple[str, ...] = ()
    include_crds: bool = True
    include_tests: bool = False
    """Whether hooks that are tests are included."""
    is_upgrade: bool = False
    """The value of `.Release.IsUpgrade`."""
    revision: int = 1
    """The value of `.Release.Revision`."""
    described: bool = False
    """Whether the result includes chart, notes and user values for the release record."""
    skip_schema: bool = False
    fetched: tuple[FetchedChart, ...] = ()
    builds_dependencies: bool = True
    """Whether dependencies are resolved. If not, all must be in `charts`."""
    checks_lock: bool = True
    """Whether a lock that does not match Chart.yaml is rejected: by Argo CD, not by Flux."""
    artifact: str = ""
    """The revision of the OCI artifact: `tag@sha256:…`, or the digest alone.

    Set if the chart version is to contain it.
    """
    lookups: Mapping[str, LookupResult] | None = None
    """Results of `lookup` by request path. A missing one is reported in a `LookupsError`.

    None if there is no cluster: `lookup` finds nothing then.
    """

    def __repr__(self) -> str:
        # Values may be secret, and printed text ends up in logs.
        return f"Release({self.name}, chart={self.chart})"


class GoTemplateRequest(msgspec.Struct, frozen=True, gc=False, tag="texts"):
    """Go templates, and sets of parameters to render each of them with."""

    texts: tuple[str, ...]
    params: tuple[dict[str, object], ...]
    strict: bool = False
    """Whether a template that uses an unknown parameter fails."""

    def __repr__(self) -> str:
        return f"GoTexts({len(self.texts)} for {len(self.params)})"
