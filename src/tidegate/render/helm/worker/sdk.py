"""The Helm SDK, as far as we use it. Imported in workers only: its Go runtime must not be forked.

A chart handle is loaded for one render and then dropped: rendering takes disabled subcharts out of
the handle for good, and two threads on one handle break it.
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
_COMPARE = (
    "{{ semverCompare .Values.constraint"
    " (.Values.version | default .Capabilities.KubeVersion.String) }}"
)
PROBE = {
    "probe/Chart.yaml": "apiVersion: v2\nname: probe\nversion: 0.1.0\n",
    "probe/templates/probe.yaml": _COMPARE,
}
"""A chart that compares versions."""


class ChartMetadata(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """What we read of Chart.yaml."""

    name: str
    version: str = ""
    type: str = ""
    kube_version: str = ""
    dependencies: tuple[ChartDependency, ...] = ()


class _Declared(msgspec.Struct, frozen=True, gc=False):
    dependencies: msgspec.Raw = msgspec.Raw(b"null")


class Crd(msgspec.Struct, frozen=True, gc=False):
    """A file in a `crds` directory."""

    filename: str
    data: str


@contextmanager
def load_chart(path: Path) -> Iterator[Handle]:
    """A chart from its directory or archive, for one render."""
    yield from _held(_native.call_handle("helm_chart_load", str(path)))


def _held(number: int) -> Iterator[Handle]:
    chart = _native.HANDLE(number)
    try:
        yield chart
    finally:
        _native.call_status("helm_chart_free", chart)


def read_metadata(chart: Handle) -> ChartMetadata:
    return msgspec.json.decode(
        _native.call_string("helm_chart_metadata", chart), type=ChartMetadata
    )


def declared_dependencies(chart: Handle) -> bytes:
    """What Chart.yaml declares, in the JSON that Helm itself writes of it."""
    told = _native.call_string("helm_chart_metadata", chart)
    return bytes(msgspec.json.decode(told, type=_Declared).dependencies)


def absent_dependencies(chart: Handle, metadata: ChartMetadata) -> tuple[ChartDependency, ...]:
    """What Chart.yaml names and `charts/` does not have. The SDK renders without them."""
    there = _native.call_string("helm_chart_dependencies", chart)
    names = {one.name for one in msgspec.json.decode(there, type=tuple[ChartMetadata, ...])}
    return tuple(one for one in metadata.dependencies if one.name not in names)


def render(
    chart: Handle, values: Values, release: ChartRequest, cluster: Handle | None = None
) -> dict[str, str]:
    """Every template's text by its path, which begins with the chart's name.

    `cluster`: where `lookup` asks; without one it finds nothing.
    """
    given = json.dumps(values), json.dumps(_options(release))
    if cluster is None:
        answer = _native.call_string("helm_render", chart, *given)
    else:
        answer = _native.call_string("helm_render_with_config", cluster, chart, *given)
    return msgspec.json.decode(answer, type=dict[str, str])


def create_cluster_config(address: str) -> Handle:
    """An API server for `lookup`, without anybody's kubeconfig."""
    entry = {"name": "lookup", "cluster": {"server": address}}
    context = {"name": "lookup", "context": {"cluster": "lookup", "user": ""}}
    config = {"clusters": [entry], "contexts": [context], "current-context": "lookup"}
    whole = {"apiVersion": "v1", "kind": "Config", **config}
    options = {"kubeconfig_content": json.dumps(whole), "qps": 1000, "burst_limit": 1000}
    return _native.HANDLE(_native.call_handle("helm_config_new", json.dumps(options)))


def render_strictly(chart: Handle, values: Mapping[str, object], *, strict: bool) -> dict[str, str]:
    """The same for a chart of ours; where `strict`, a key that is not there is an error."""
    options = {"name": "texts", "namespace": "default", "strict": strict}
    answer = _native.call_string("helm_render", chart, json.dumps(values), json.dumps(options))
    return msgspec.json.decode(answer, type=dict[str, str])


def list_crds(chart: Handle) -> tuple[Crd, ...]:
    """CRDs of the chart and of its subcharts; after rendering, of those that are enabled."""
    answer = _native.call_string("helm_chart_crds", chart)
    return msgspec.json.decode(answer, type=tuple[Crd, ...])


def read_chart_content(chart: Handle, *, without: str) -> dict[str, Json]:
    """The chart as a record of a release keeps it: all but the charts inside it.

    `without` is the name of a file that is none of the chart's own.
    """
    schema: Json = msgspec.json.decode(_native.call_string("helm_chart_schema", chart))
    return {
        "metadata": _told(chart, "metadata"),
        "lock": None,
        "templates": [
            one
            for one in _files(chart, "templates")
            if not get_text(one, "name").endswith(f"/{without}")
        ],
        "values": _told(chart, "values"),
        "schema": b64encode(msgspec.json.encode(schema)).decode() if schema else None,
        "files": _files(chart, "files"),
    }


def _told(chart: Handle, what: str) -> Json:
    told: Json = msgspec.json.decode(_native.call_string(f"helm_chart_{what}", chart))
    return told


def _files(chart: Handle, what: str) -> list[Json]:
    return [
        {"name": get_text(one, "name"), "data": b64encode(get_text(one, "data").encode()).decode()}
        for one in get_mappings({what: _told(chart, what)}, what)
    ]


def read_values(said: str, name: str) -> Values:
    """YAML to values, as Helm reads it."""
    if "\0" in said:
        raise RenderError(
            "render.helm.values", "these values hold a NUL byte", location=Location(name)
        )
    try:
        answer = _native.call_string("helm_values_from_yaml", said)
    except HelmValuesError as error:
        problem = f"these values are not a mapping in YAML: {sanitize(str(error))}"
        raise RenderError("render.helm.values", problem, location=Location(name)) from None
    values: Values = msgspec.json.decode(answer)
    return values


def check_release_name(name: str) -> None:
    """Raise when Helm takes no release of this name."""
    try:
        _native.call_status("helm_release_name_validate", name)
    except HelmError:
        problem = f"`{sanitize(name)}` cannot be the name of a release"
        hint = "at most 53 lower-case letters, digits, `-` and `.`"
        raise RenderError("render.helm.name", problem, hint=hint) from None


def build_dependencies(directory: Path) -> None:
    """`helm dependency build`, in a copy of the chart and with a cache of its own."""
    _native.call_status("helm_dependency_build", str(directory), None)


def unpack(archive: Path, into: Path) -> None:
    _native.call_status("helm_chart_expand", str(into), str(archive))


def is_compatible(constraint: str, release: ChartRequest) -> bool:
    """Whether a cluster is one that a chart's `kubeVersion` asks for, in Helm's own judgement."""
    return _judge({"constraint": constraint}, release)


def is_in_range(version: str, constraint: str, release: ChartRequest) -> bool:
    """Whether a chart's version is one that a dependency asks for, in Helm's own judgement."""
    return not constraint or _judge({"constraint": constraint, "version": version}, release)


def _judge(values: Values, release: ChartRequest) -> bool:
    with load_chart_files(PROBE) as chart:
        try:
            answer = render(chart, values, release)
        except HelmError:
            return False
    return "true" in answer.values()


@contextmanager
def load_chart_files(files: Mapping[str, str]) -> Iterator[Handle]:
    """A chart that nobody has written down, by the texts of its files."""
    with io.BytesIO() as content:
        with tarfile.open(fileobj=content, mode="w:gz", compresslevel=1) as archive:
            for name, content_of_file in files.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(content_of_file.encode())
                archive.addfile(entry, io.BytesIO(content_of_file.encode()))
        yield from _unpacked(content.getvalue())


def _unpacked(content: bytes) -> Iterator[Handle]:
    buffer = (ctypes.c_uint8 * len(content)).from_buffer_copy(content)
    yield from _held(_native.call_handle("helm_chart_load_archive", buffer, len(content)))


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
