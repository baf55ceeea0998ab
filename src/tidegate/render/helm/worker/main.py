"""Main program of a Helm worker: a release or templates in, texts or an error out.

python -m tidegate.render.helm.worker.main

It checks what the SDK does not: that a chart can be installed, that its `kubeVersion` fits, and
that its dependencies are complete.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from helm_python.errors import HelmError

from tidegate.errors import Location, RenderError, sanitize
from tidegate.external.worker_main import serve
from tidegate.model.units.chart_request import ChartDependency, ChartRequest, GoTemplateRequest
from tidegate.render.helm.parameters import Values
from tidegate.render.helm.worker import chart_copy, dependencies, schemas, sdk, template_rows
from tidegate.render.helm.worker.errors import helm_error, strip_chart_name
from tidegate.render.helm.worker.files import check_chart, resolve_inside
from tidegate.render.helm.worker.integers import (
    TEMPLATE_NAME,
    integer_template,
    integer_template_path,
)
from tidegate.render.helm.worker.oci_version import version_with_digest
from tidegate.render.helm.worker.values import compose, merge_files
from tidegate.render.helm.worker_replies import DependencyError, RenderedChart, RenderedFile, Reply
from tidegate.render.workers import WorkerError

if TYPE_CHECKING:
    from tidegate.render.helm.worker.lookup_server import LookupServer

_decode = msgspec.json.Decoder(ChartRequest | GoTemplateRequest).decode
_encode = msgspec.json.Encoder().encode


def answer(encoded: bytes) -> bytes:
    """Return the reply to one request."""
    request = _decode(encoded)
    reply: Reply | tuple[tuple[str, ...], ...]
    try:
        reply = (
            template_rows.render(request)
            if isinstance(request, GoTemplateRequest)
            else render(request)
        )
    except RenderError as error:
        reply = _worker_error(error)
    except HelmError as error:
        chart = request.chart if isinstance(request, ChartRequest) else template_rows.CHART_NAME
        reply = _worker_error(helm_error(error, chart=chart))
    if (
        isinstance(request, ChartRequest)
        and request.lookups is not None
        and _lookup_server().missing_paths
    ):
        # Without the looked-up objects, the result is wrong.
        missing_paths = tuple(dict.fromkeys(_lookup_server().missing_paths))
        reply = WorkerError(
            "render.helm.lookup", "templates use `lookup`", missing_lookups=missing_paths
        )
    return _encode(reply)


@cache
def _lookup_server() -> LookupServer:
    """Return the lookup server, imported on first use: most charts use no lookups."""
    from tidegate.render.helm.worker.lookup_server import LookupServer  # noqa: PLC0415

    return LookupServer()


def render(release: ChartRequest) -> RenderedChart:
    """Render a release, from its files to the texts."""
    if release.lookups is not None:
        _lookup_server().reset(release.lookups)
    sdk.check_release_name(release.name)
    chart = _find_chart(release)
    start = chart if chart.is_dir() else chart.parent
    needs_changes = release.defaults or release.skip_schema or release.artifact
    values = compose(release, start=start, read=sdk.read_values)
    integers = integer_template(values)
    with ExitStack() as stack:
        chart_to_load = chart
        if integers or needs_changes or schemas.refers_outside(chart, _schema_location(release)):
            chart_to_load = stack.enter_context(chart_copy.stage_chart(chart, release.root))
            _modify_copy(chart_to_load, chart=chart, integers=integers, release=release)
        handle = stack.enter_context(sdk.load_chart(chart_to_load))
        metadata = sdk.read_metadata(handle)
        _check_metadata(metadata, release)
        missing = sdk.absent_dependencies(handle, metadata)
        if missing:
            if chart_to_load == chart:
                chart_to_load = stack.enter_context(chart_copy.stage_chart(chart, release.root))
            _add_dependencies(
                chart_to_load, chart=chart, missing=missing, integers=integers, release=release
            )
            handle = stack.enter_context(sdk.load_chart(chart_to_load))
            _check_dependencies(handle, metadata, release)
        return _render(handle, values, release)


def _render(handle: sdk.Handle, values: Values, release: ChartRequest) -> RenderedChart:
    cluster = _lookup_server().cluster if release.lookups is not None else None
    rendered = sdk.render(handle, values, release, cluster)
    paths = (path for path in sorted(rendered) if not path.endswith(f"/{TEMPLATE_NAME}"))
    templates = (RenderedFile(strip_chart_name(path), rendered[path]) for path in paths)
    crds = sdk.list_crds(handle) if release.include_crds else ()
    reply = RenderedChart(
        tuple(file for file in templates if file.text.strip()),
        tuple(RenderedFile(strip_chart_name(crd.filename), crd.data) for crd in crds),
    )
    if not release.described:
        return reply
    content = msgspec.Raw(_encode(sdk.read_chart_content(handle, without=TEMPLATE_NAME)))
    return msgspec.structs.replace(reply, chart=content, config=msgspec.Raw(json.dumps(values)))


def _find_chart(release: ChartRequest) -> Path:
    root = Path(release.root).resolve()
    chart = resolve_inside(root / release.chart.lstrip("/"), root, display_path=release.chart)
    if chart.is_dir():
        check_chart(chart, release.root)
    elif not chart.is_file():
        problem = f"no chart found at `{sanitize(release.chart)}`"
        hint = "use a directory with a Chart.yaml, or a packaged chart"
        raise RenderError("render.helm.chart", problem, location=Location(release.chart), hint=hint)
    return chart


def _check_metadata(metadata: sdk.ChartMetadata, release: ChartRequest) -> None:
    """Raise RenderError for a chart that Helm would not install.

    Like `checkIfInstallable` in `pkg/cmd/install.go` and `renderResources` in
    `pkg/action/action.go` of Helm 4.2.4.
    """
    location = Location(f"{release.chart}/Chart.yaml")
    if metadata.type not in ("", "application"):
        problem = f"a chart of type `{sanitize(metadata.type)}` cannot be installed"
        hint = "use a chart that depends on it"
        raise RenderError("render.helm.type", problem, location=location, hint=hint)
    kube_version = metadata.kube_version
    if kube_version and not sdk.is_compatible(kube_version, release):
        problem = (
            f"the chart requires Kubernetes `{sanitize(kube_version)}`,"
            f" but the version is `{sanitize(release.kube_version)}`"
        )
        hint = "set `--kube-version`, or use another version of the chart"
        raise RenderError("render.helm.kube-version", problem, location=location, hint=hint)


def _modify_copy(copy: Path, *, chart: Path, integers: str, release: ChartRequest) -> None:
    """Change the copy of the chart as the release requires."""
    if release.skip_schema:
        chart_copy.drop_schemas(copy)
    schemas.confine_schemas(copy, _schema_location(release))
    if release.defaults:
        start = chart if chart.is_dir() else copy
        values = merge_files(release.defaults, release=release, start=start, read=sdk.read_values)
        chart_copy.write_file(copy, "values.yaml", json.dumps(values))
    if integers:
        chart_copy.write_file(
            copy, integer_template_path(chart_copy.template_depth(copy)), integers
        )
    if release.artifact:
        _set_version(copy, release)


def _schema_location(release: ChartRequest) -> Location:
    return Location(f"{release.chart}/{schemas.SCHEMA}")


def _set_version(copy: Path, release: ChartRequest) -> None:
    """Add the digest of its artifact to the chart's version.

    A missing Chart.yaml is an error later.
    """
    file, location = copy / "Chart.yaml", Location(f"{release.chart}/Chart.yaml", field="version")
    if file.is_file():
        metadata = sdk.read_values(file.read_text(encoding="utf-8"), location.name)
        version = version_with_digest(str(metadata.get("version", "")), release.artifact, location)
        chart_copy.write_file(copy, "Chart.yaml", json.dumps({**metadata, "version": version}))


def _add_dependencies(
    copy: Path,
    *,
    chart: Path,
    missing: tuple[ChartDependency, ...],
    integers: str,
    release: ChartRequest,
) -> None:
    """Add the missing dependencies to the copy of the chart."""
    if not release.builds_dependencies:
        dependencies.raise_missing_dependencies(missing, release)
    dependencies.build_dependencies(missing, chart=chart, copy=copy, release=release)
    # The dependencies may have schemas, and deeper directories than the chart.
    _modify_copy(copy, chart=chart, integers=integers, release=release)


def _check_dependencies(
    handle: sdk.Handle, metadata: sdk.ChartMetadata, release: ChartRequest
) -> None:
    """Raise RenderError for declared dependencies that are missing."""
    for dependency in sdk.absent_dependencies(handle, metadata):
        problem = f"the chart needs `{sanitize(dependency.name)}`, but it is still not in `charts`"
        hint = "check that the name in Chart.yaml is the name of the chart"
        location = Location(f"{release.chart}/Chart.yaml", field="dependencies")
        raise RenderError("render.helm.dependency", problem, location=location, hint=hint)


def _worker_error(error: RenderError) -> WorkerError:
    missing = error.dependencies if isinstance(error, DependencyError) else ()
    return WorkerError(error.code, error.problem, error.location, error.hint, missing)


if __name__ == "__main__":
    serve(answer)
