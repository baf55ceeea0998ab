"""The Helm SDK. Imported only in workers: its Go runtime must not be forked.

A chart handle is loaded for one render and then freed: rendering removes disabled subcharts from
the handle, and two threads on one handle break it.
"""

from __future__ import annotations

import ctypes
import io
import json
import tarfile
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import msgspec
from helm_python import _native
from helm_python.errors import HelmError, HelmValuesError

from tidegate.errors import Location, RenderError, sanitize
from tidegate.model.k8s.json_fields import get_mappings, get_text
from tidegate.model.k8s.objects import Json
from tidegate.model.units.chart_request import ChartDependency, ChartRequest
from tidegate.render.helm.parameters import Values

Handle: TypeAlias = ctypes.c_uint64
_COMPARE_VERSIONS = (
    "{{ semverCompare .Values.constraint"
    " (.Values.version | default .Capabilities.KubeVersion.String) }}"
)
VERSION_CHART = {
    "probe/Chart.yaml": "apiVersion: v2\nname: probe\nversion: 0.1.0\n",
    "probe/templates/probe.yaml": _COMPARE_VERSIONS,
}
"""A chart that compares versions."""


class ChartMetadata(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """The fields of Chart.yaml that are used here."""

    name: str
    """The name of the chart."""
    version: str = ""
    """The version of the chart."""
    type: str = ""
    """`application` or `library`; empty for `application`."""
    kube_version: str = ""
    """The range of Kubernetes versions; empty for all."""
    dependencies: tuple[ChartDependency, ...] = ()
    """The declared dependencies."""


class _DeclaredDependencies(msgspec.Struct, frozen=True, gc=False):
    dependencies: msgspec.Raw = msgspec.Raw(b"null")
    """The dependencies as JSON."""


class Crd(msgspec.Struct, frozen=True, gc=False):
    """A file in a `crds` directory."""

    filename: str
    """The path of the file in the chart."""
    data: str
    """The content of the file."""


@contextmanager
def load_chart(path: Path) -> Iterator[Handle]:
    """Load a chart from its directory or archive, for one render."""
    yield from _hold_handle(_native.call_handle("helm_chart_load", str(path)))


def _hold_handle(number: int) -> Iterator[Handle]:
    chart = _native.HANDLE(number)
    try:
        yield chart
    finally:
        _native.call_status("helm_chart_free", chart)


def read_metadata(chart: Handle) -> ChartMetadata:
    """Return the metadata of a chart."""
    return msgspec.json.decode(
        _native.call_string("helm_chart_metadata", chart), type=ChartMetadata
    )


def declared_dependencies(chart: Handle) -> bytes:
    """Return the dependencies in Chart.yaml, in Helm's own JSON."""
    metadata = _native.call_string("helm_chart_metadata", chart)
    return bytes(msgspec.json.decode(metadata, type=_DeclaredDependencies).dependencies)


def absent_dependencies(chart: Handle, metadata: ChartMetadata) -> tuple[ChartDependency, ...]:
    """Return the dependencies in Chart.yaml that `charts/` lacks. The SDK renders without them."""
    subcharts = _native.call_string("helm_chart_dependencies", chart)
    names = {
        dependency.name
        for dependency in msgspec.json.decode(subcharts, type=tuple[ChartMetadata, ...])
    }
    return tuple(dependency for dependency in metadata.dependencies if dependency.name not in names)


def render(
    chart: Handle, values: Values, release: ChartRequest, cluster: Handle | None = None
) -> dict[str, str]:
    """Return the output of every template by its path, which begins with the chart's name.

    `cluster` is the API server of `lookup`; without one, lookups return nothing.
    """
    arguments = json.dumps(values), json.dumps(_options(release))
    if cluster is None:
        reply = _native.call_string("helm_render", chart, *arguments)
    else:
        reply = _native.call_string("helm_render_with_config", cluster, chart, *arguments)
    return msgspec.json.decode(reply, type=dict[str, str])


def create_cluster_config(address: str) -> Handle:
    """Return a configuration with an API server for `lookup`, without any kubeconfig."""
    entry = {"name": "lookup", "cluster": {"server": address}}
    context = {"name": "lookup", "context": {"cluster": "lookup", "user": ""}}
    config = {"clusters": [entry], "contexts": [context], "current-context": "lookup"}
    kubeconfig = {"apiVersion": "v1", "kind": "Config", **config}
    options = {"kubeconfig_content": json.dumps(kubeconfig), "qps": 1000, "burst_limit": 1000}
    return _native.HANDLE(_native.call_handle("helm_config_new", json.dumps(options)))


def render_strictly(chart: Handle, values: Mapping[str, object], *, strict: bool) -> dict[str, str]:
    """Render an internal chart; with `strict`, a missing key is an error."""
    options = {"name": "texts", "namespace": "default", "strict": strict}
    reply = _native.call_string("helm_render", chart, json.dumps(values), json.dumps(options))
    return msgspec.json.decode(reply, type=dict[str, str])


def list_crds(chart: Handle) -> tuple[Crd, ...]:
    """Return the CRDs of the chart and its subcharts; after rendering, of the enabled ones."""
    reply = _native.call_string("helm_chart_crds", chart)
    return msgspec.json.decode(reply, type=tuple[Crd, ...])


def read_chart_content(chart: Handle, *, without: str) -> dict[str, Json]:
    """Return the chart as a release record stores it, without subcharts.

    `without` is the name of a file that is not part of the chart.
    """
    schema: Json = msgspec.json.decode(_native.call_string("helm_chart_schema", chart))
    return {
        "metadata": _read_json(chart, "metadata"),
        "lock": None,
        "templates": [
            file
            for file in _read_files(chart, "templates")
            if not get_text(file, "name").endswith(f"/{without}")
        ],
        "values": _read_json(chart, "values"),
        "schema": b64encode(msgspec.json.encode(schema)).decode() if schema else None,
        "files": _read_files(chart, "files"),
    }


def _read_json(chart: Handle, field: str) -> Json:
    value: Json = msgspec.json.decode(_native.call_string(f"helm_chart_{field}", chart))
    return value


def _read_files(chart: Handle, field: str) -> list[Json]:
    return [
        {
            "name": get_text(file, "name"),
            "data": b64encode(get_text(file, "data").encode()).decode(),
        }
        for file in get_mappings({field: _read_json(chart, field)}, field)
    ]


def read_values(text: str, name: str) -> Values:
    """Return the values in a YAML text, as Helm reads it."""
    if "\0" in text:
        raise RenderError(
            "render.helm.values", "the values contain a NUL byte", location=Location(name)
        )
    try:
        reply = _native.call_string("helm_values_from_yaml", text)
    except HelmValuesError as error:
        problem = f"the values are not a YAML mapping: {sanitize(str(error))}"
        raise RenderError("render.helm.values", problem, location=Location(name)) from None
    values: Values = msgspec.json.decode(reply)
    return values


def check_release_name(name: str) -> None:
    """Raise RenderError if Helm rejects the name of a release.

    Like `ValidateReleaseName` in `pkg/chart/v2/util/validate_name.go` of Helm 4.2.4.
    """
    try:
        _native.call_status("helm_release_name_validate", name)
    except HelmError:
        problem = f"`{sanitize(name)}` is not a valid release name"
        hint = "use at most 53 lower-case letters, digits, `-` and `.`"
        raise RenderError("render.helm.name", problem, hint=hint) from None


def unpack(archive: Path, directory: Path) -> None:
    """Unpack a chart archive into a directory."""
    _native.call_status("helm_chart_expand", str(directory), str(archive))


def is_compatible(constraint: str, release: ChartRequest) -> bool:
    """Return whether Helm considers the cluster compatible with a chart's `kubeVersion`.

    Like `IsCompatibleRange` in `pkg/chart/v2/util/compatible.go` of Helm 4.2.4.
    """
    return _compare_versions({"constraint": constraint}, release)


def is_in_range(version: str, constraint: str, release: ChartRequest) -> bool:
    """Return whether Helm considers a chart's version in the range of a dependency."""
    return not constraint or _compare_versions(
        {"constraint": constraint, "version": version}, release
    )


def _compare_versions(values: Values, release: ChartRequest) -> bool:
    with load_chart_files(VERSION_CHART) as chart:
        try:
            reply = render(chart, values, release)
        except HelmError:
            return False
    return "true" in reply.values()


@contextmanager
def load_chart_files(files: Mapping[str, str]) -> Iterator[Handle]:
    """Load a chart from the texts of its files."""
    with io.BytesIO() as content:
        with tarfile.open(fileobj=content, mode="w:gz", compresslevel=1) as archive:
            for name, content_of_file in files.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(content_of_file.encode())
                archive.addfile(entry, io.BytesIO(content_of_file.encode()))
        yield from _load_archive(content.getvalue())


def _load_archive(content: bytes) -> Iterator[Handle]:
    buffer = (ctypes.c_uint8 * len(content)).from_buffer_copy(content)
    yield from _hold_handle(_native.call_handle("helm_chart_load_archive", buffer, len(content)))


def _options(release: ChartRequest) -> dict[str, object]:
    return {
        "name": release.name,
        "namespace": release.namespace,
        "is_install": not release.is_upgrade,
        "is_upgrade": release.is_upgrade,
        "revision": release.revision,
        "kube_version": release.kube_version,
        "api_versions": list(release.api_versions),
    }
