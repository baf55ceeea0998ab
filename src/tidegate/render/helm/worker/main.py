"""The worker's own program: a release or templates in, texts or the parts of an error out.

    python -m tidegate.render.helm.worker.main

It checks what the SDK does not: that a chart can be installed, that its `kubeVersion` fits, that
its dependencies are there.
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
from tidegate.render.helm.worker import dependencies, sdk, staging, template_rows
from tidegate.render.helm.worker.errors import helm_error, strip_chart_name
from tidegate.render.helm.worker.files import check_chart, resolve_inside
from tidegate.render.helm.worker.integers import NAME, integer_template, integer_template_path
from tidegate.render.helm.worker.oci_version import version_with_digest
from tidegate.render.helm.worker.values import compose, merge_files
from tidegate.render.helm.worker_replies import DependencyError, RenderedChart, RenderedFile, Reply
from tidegate.render.workers import WorkerError

if TYPE_CHECKING:
    from tidegate.render.helm.worker.lookup_server import LookupServer

_decode = msgspec.json.Decoder(ChartRequest | GoTemplateRequest).decode
_encode = msgspec.json.Encoder().encode


def answer(request: bytes) -> bytes:
    """One request of the worker's line."""
    asked = _decode(request)
    reply: Reply | tuple[tuple[str, ...], ...]
    try:
        reply = (
            template_rows.render(asked) if isinstance(asked, GoTemplateRequest) else render(asked)
        )
    except RenderError as error:
        reply = _refuse(error)
    except HelmError as error:
        chart = asked.chart if isinstance(asked, ChartRequest) else template_rows.CHART
        reply = _refuse(helm_error(error, chart=chart))
    if isinstance(asked, ChartRequest) and asked.lookups is not None and _desk().unseen:
        # What it came to without them is not what it comes to.
        unseen = tuple(dict.fromkeys(_desk().unseen))
        reply = WorkerError(
            "render.helm.lookup", "templates look something up", missing_lookups=unseen
        )
    return _encode(reply)


@cache
def _desk() -> LookupServer:
    """Most charts look nothing up, and a server is much to import."""
    from tidegate.render.helm.worker.lookup_server import LookupServer  # noqa: PLC0415

    return LookupServer()


def render(release: ChartRequest) -> RenderedChart:
    """Everything from the files to the texts."""
    if release.lookups is not None:
        _desk().open(release.lookups)
    sdk.check_release_name(release.name)
    chart = _find_chart(release)
    start = chart if chart.is_dir() else chart.parent
    values = compose(release, start=start, read=sdk.read_values)
    integers = integer_template(values)
    with ExitStack() as stack:
        shown = chart
        if integers or release.defaults or release.skip_schema or release.artifact:
            shown = stack.enter_context(staging.stage_chart(chart, release.root))
            _change(shown, chart=chart, integers=integers, release=release)
        handle = stack.enter_context(sdk.load_chart(shown))
        metadata = sdk.read_metadata(handle)
        _check(metadata, release)
        absent = sdk.absent_dependencies(handle, metadata)
        if absent:
            if shown == chart:
                shown = stack.enter_context(staging.stage_chart(chart, release.root))
            _complete(shown, chart=chart, absent=absent, integers=integers, release=release)
            handle = stack.enter_context(sdk.load_chart(shown))
            _check_dependencies(handle, metadata, release)
        return _render(handle, values, release)


def _render(handle: sdk.Handle, values: Values, release: ChartRequest) -> RenderedChart:
    cluster = _desk().cluster if release.lookups is not None else None
    template_rows = sdk.render(handle, values, release, cluster)
    kept = (path for path in sorted(template_rows) if not path.endswith(f"/{NAME}"))
    templates = (RenderedFile(strip_chart_name(path), template_rows[path]) for path in kept)
    crds = sdk.list_crds(handle) if release.include_crds else ()
    answer = RenderedChart(
        tuple(each for each in templates if each.text.strip()),
        tuple(RenderedFile(strip_chart_name(crd.filename), crd.data) for crd in crds),
    )
    if not release.described:
        return answer
    content = msgspec.Raw(_encode(sdk.read_chart_content(handle, without=NAME)))
    return msgspec.structs.replace(answer, chart=content, config=msgspec.Raw(json.dumps(values)))


def _find_chart(release: ChartRequest) -> Path:
    top = Path(release.root).resolve()
    chart = resolve_inside(top / release.chart.lstrip("/"), top, shown=release.chart)
    if chart.is_dir():
        check_chart(chart, release.root)
    elif not chart.is_file():
        problem = f"there is no chart at `{sanitize(release.chart)}`"
        hint = "name a directory with a Chart.yaml, or a packed chart"
        raise RenderError("render.helm.chart", problem, location=Location(release.chart), hint=hint)
    return chart


def _check(metadata: sdk.ChartMetadata, release: ChartRequest) -> None:
    where = Location(f"{release.chart}/Chart.yaml")
    if metadata.type not in ("", "application"):
        problem = f"a chart of type `{sanitize(metadata.type)}` cannot be installed"
        hint = "use a chart that depends on it"
        raise RenderError("render.helm.type", problem, location=where, hint=hint)
    wanted = metadata.kube_version
    if wanted and not sdk.is_compatible(wanted, release):
        problem = (
            f"the chart asks for Kubernetes `{sanitize(wanted)}`,"
            f" and this is `{sanitize(release.kube_version)}`"
        )
        hint = "give the version of the cluster, or use another version of the chart"
        raise RenderError("render.helm.kube-version", problem, location=where, hint=hint)


def _change(copy: Path, *, chart: Path, integers: str, release: ChartRequest) -> None:
    """Whatever is asked of the chart that is not in its directory."""
    if release.skip_schema:
        staging.drop_schemas(copy)
    if release.defaults:
        start = chart if chart.is_dir() else copy
        values = merge_files(release.defaults, release=release, start=start, read=sdk.read_values)
        staging.write_file(copy, "values.yaml", json.dumps(values))
    if integers:
        staging.write_file(copy, integer_template_path(staging.template_depth(copy)), integers)
    if release.artifact:
        _stamp(copy, release)


def _stamp(copy: Path, release: ChartRequest) -> None:
    """Have the chart's version tell which artifact it is; what is no chart is told elsewhere."""
    file, where = copy / "Chart.yaml", Location(f"{release.chart}/Chart.yaml", field="version")
    if file.is_file():
        told = sdk.read_values(file.read_text(encoding="utf-8"), where.name)
        version = version_with_digest(str(told.get("version", "")), release.artifact, where)
        staging.write_file(copy, "Chart.yaml", json.dumps({**told, "version": version}))


def _complete(
    copy: Path,
    *,
    chart: Path,
    absent: tuple[ChartDependency, ...],
    integers: str,
    release: ChartRequest,
) -> None:
    """Whatever the chart needs that is not in its directory."""
    if not release.builds_dependencies:
        dependencies.raise_missing_dependencies(absent, release)
    dependencies.build_dependencies(absent, chart=chart, copy=copy, release=release)
    # What came in may have schemas, and lie deeper than all that was there.
    _change(copy, chart=chart, integers=integers, release=release)


def _check_dependencies(
    handle: sdk.Handle, metadata: sdk.ChartMetadata, release: ChartRequest
) -> None:
    for one in sdk.absent_dependencies(handle, metadata):
        problem = f"the chart needs `{sanitize(one.name)}`, and it is still not in `charts`"
        hint = "check that the name in Chart.yaml is the chart's own name"
        where = Location(f"{release.chart}/Chart.yaml", field="dependencies")
        raise RenderError("render.helm.dependency", problem, location=where, hint=hint)


def _refuse(error: RenderError) -> WorkerError:
    absent = error.dependencies if isinstance(error, DependencyError) else ()
    return WorkerError(error.code, error.problem, error.location, error.hint, absent)


if __name__ == "__main__":
    serve(answer)
