"""Builds of overlays with the real kustomize, in a copy of what the overlay names."""

from __future__ import annotations

import asyncio
import os
import sysconfig
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TypeAlias

import msgspec

from tidegate.documents import Document, DocumentReader, read_documents
from tidegate.documents.dump import to_yaml
from tidegate.errors import Location, ProcessError, RenderError, TidegateError, sanitize
from tidegate.external.process import Command, Limits, run
from tidegate.external.tools import find_program
from tidegate.external.worker import Workers
from tidegate.model.display import join_quoted
from tidegate.model.k8s.objects import JsonObject
from tidegate.model.units.rendering import HelmOptions, Overlay
from tidegate.render.kustomize import output
from tidegate.render.kustomize.charts import ENVIRONMENT, PROGRAM, HelmShimServer
from tidegate.render.kustomize.collect import OverlayInputs, collect_inputs
from tidegate.render.kustomize.errors import kustomize_error
from tidegate.render.kustomize.file_parts import are_distinct, split_inputs
from tidegate.render.kustomize.kustomization import InflatedChart
from tidegate.render.kustomize.tree import DecryptableFile
from tidegate.render.scratch import scratch_directory
from tidegate.render.workers import NO_NETWORK

Decrypt: TypeAlias = Callable[[DecryptableFile], Awaitable[bytes]]


class RemoteError(RenderError):
    """An error: the overlay refers to files or charts that are not in its tree."""

    references: tuple[str, ...] = ()
    """All of the missing references."""
    charts: Mapping[str, InflatedChart] = {}
    """Those references that are charts of a repository."""


class Builder(msgspec.Struct, frozen=True):
    """The program that builds, and its limits."""

    argv: tuple[str, ...]
    """The program with its first arguments."""
    limits: Limits = Limits()
    """Limits of the program."""
    read: DocumentReader = read_documents
    """Reads the files of objects again, to find the locations."""


class BuildJob(msgspec.Struct, frozen=True):
    """A build: its scratch directory, its inputs and the program."""

    scratch: Path
    """The scratch directory."""
    inputs: OverlayInputs
    """The inputs of the overlay."""
    builder: Builder
    """The program."""


def find_tool() -> Builder:
    """Return the kubectl that is installed with Tidegate, or kustomize or kubectl on PATH.

    Raises RenderError without any.
    """
    path = os.environ.get("PATH", os.defpath)
    for name, subcommand, search_path in (
        ("kubectl", "kustomize", _installed_programs()),
        ("kustomize", "build", path),
        ("kubectl", "kustomize", path),
    ):
        try:
            return Builder((str(find_program(name, path=search_path)), subcommand))
        except ProcessError:
            continue
    problem = "cannot build overlays: neither `kustomize` nor `kubectl` found"
    hint = "install `tidegate[kustomize]`, or one of the two programs"
    raise RenderError("render.kustomize.tool", problem, hint=hint)


@cache
def _installed_programs() -> str:
    return sysconfig.get_path("scripts")


async def build(
    overlay: Overlay,
    *,
    tool: Builder | None = None,
    decrypt: Decrypt | None = None,
    workers: Workers | None = None,
) -> tuple[Document, ...]:
    """Return the objects of an overlay, in kustomize's order, each with the file it comes from.

    `decrypt` gets each file that Flux would decrypt on disk, and returns the content to build with.
    `workers` render charts if the overlay may inflate them and names no other program for it.
    """
    inputs = collect_inputs(overlay)
    _require_no_remotes(inputs)
    chart_workers = _chart_workers(inputs, workers)
    if decrypt is not None:
        for path, file in inputs.decryptable.items():
            inputs.copy.files[path] = await decrypt(file)
    tool = tool or find_tool()
    objects = await _build_parts(inputs, tool)
    if objects is None:
        objects = await _build_whole(inputs, tool, chart_workers)
    return tuple(objects)


async def _build_parts(inputs: OverlayInputs, tool: Builder) -> list[Document] | None:
    """Build the parts of a long list.

    None if there is one part, or if a part fails: then the whole build reports the error.
    """
    parts = split_inputs(inputs)
    if len(parts) == 1:
        return None
    semaphore = asyncio.Semaphore(os.cpu_count() or 1)

    async def build_part(part: OverlayInputs) -> list[Document]:
        async with semaphore:
            return await _build_whole(part, tool, None)

    objects: list[Document] = []
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(build_part(part)) for part in parts]
        objects = [document for task in tasks for document in task.result()]
    except* RenderError:
        objects = []
    return objects if objects and are_distinct(objects) else None


async def _build_whole(
    inputs: OverlayInputs, tool: Builder, chart_workers: Workers | None
) -> list[Document]:
    with scratch_directory() as scratch:
        inputs.copy.write(scratch)
        (scratch / "tmp").mkdir()
        job = BuildJob(scratch, inputs, tool)
        if chart_workers is None:
            return await _build_located(job)
        return await _build_with_charts(job, HelmShimServer(scratch, chart_workers))


def _chart_workers(inputs: OverlayInputs, workers: Workers | None) -> Workers | None:
    """Return the workers that inflate charts; None if there are none, or if a program does it."""
    helm = inputs.overlay.helm
    if not inputs.uses_charts or (helm is not None and helm.command):
        return None
    if helm is None or workers is None:
        problem = "the overlay inflates Helm charts, but Helm is not available"
        location = Location(inputs.overlay.path or ".", field="helmCharts")
        hint = "enable Helm for this build, or deploy the chart as a separate unit"
        raise RenderError("render.kustomize.helm", problem, location=location, hint=hint)
    return workers


def inputs_digest(inputs: OverlayInputs, *, tool_version: str) -> str:
    """Return a digest that is equal for builds with equal results, for cache keys."""
    overlay = inputs.overlay
    more = (tool_version, overlay.restriction.value, inputs.top_file, repr(overlay.helm or ""))
    return inputs.copy.digest(*more)


async def _build_with_charts(job: BuildJob, server: HelmShimServer) -> list[Document]:
    """Build while a server inflates charts. The error of a chart is raised first."""
    objects: list[Document] = []
    build_error: TidegateError | None = None
    with server.listen() as listener:
        async with asyncio.TaskGroup() as group:
            serving = group.create_task(server.serve(listener), name="inflate charts")
            try:
                objects = await _build_located(job)
            except TidegateError as error:
                build_error = error
            finally:
                serving.cancel()
    if build_error is not None:
        raise server.error or build_error
    return objects


async def _build_located(job: BuildJob) -> list[Document]:
    """Build, and set the location of each object."""
    inputs = job.inputs
    if output.has_origin_annotations(inputs.body):
        objects = await _run(job)
        return output.locate_objects(objects, objects, inputs, job.builder.read)
    if _is_empty(inputs.body):
        return await _run(job)
    top = job.scratch / inputs.top_file
    unannotated = await _run(job) if output.may_see_annotations(inputs) else None
    top.write_text(to_yaml(output.with_origins(inputs.body)))
    try:
        annotated = await _run(job)
    except RenderError:
        if unannotated is None:
            raise
        return unannotated
    objects = (
        [output.without_origin(document) for document in annotated]
        if unannotated is None
        else unannotated
    )
    return output.locate_objects(objects, annotated, inputs, job.builder.read)


def _is_empty(body: JsonObject) -> bool:
    """Return whether a kustomization is empty.

    Kustomize rejects an empty file; an added option would hide that.
    """
    return all(value is None for key, value in body.items() if key not in {"apiVersion", "kind"})


def _helm_options(helm: HelmOptions) -> list[str]:
    options = ["--enable-helm", "--helm-command", helm.command or PROGRAM]
    if helm.kube_version:
        options += ["--helm-kube-version", helm.kube_version]
    for version in helm.api_versions:
        options += ["--helm-api-versions", version]
    return options


async def _run(job: BuildJob) -> list[Document]:
    inputs, overlay = job.inputs, job.inputs.overlay
    argv = [*job.builder.argv, str(Path(inputs.top_file).parent)]
    argv += ["--load-restrictor", overlay.restriction.value]
    if overlay.helm is not None and inputs.uses_charts:
        argv += _helm_options(overlay.helm)
    command = Command(
        argv=tuple(argv),
        cwd=job.scratch,
        env=_environment(job, overlay),
        accepted_codes=frozenset({0, 1}),
    )
    try:
        result = await run(command, limits=job.builder.limits)
    except ProcessError as error:
        if error.code == "external.missing":
            raise
        problem = f"kustomize failed: {sanitize(error.problem)}"
        location = Location(overlay.path or ".")
        raise RenderError(
            "render.kustomize.limit", problem, location=location, hint=error.hint
        ) from error
    if result.exit_code:
        raise kustomize_error(result.stderr, inputs)
    return output.read_objects(result.stdout, inputs)


def _environment(job: BuildJob, overlay: Overlay) -> dict[str, str]:
    """Return the environment: nothing of the user, no network, late garbage collection."""
    return {
        "HOME": str(job.scratch),
        "TMPDIR": str(job.scratch / "tmp"),
        "PATH": "/nonexistent",
        "NO_PROXY": "",
        "no_proxy": "",
        "GOGC": "off",
        "GOMEMLIMIT": str(job.builder.limits.memory // 2),
        "GOMAXPROCS": "1",
        **NO_NETWORK,
        **ENVIRONMENT,
        **(overlay.helm.env if overlay.helm else {}),
    }


def _require_no_remotes(inputs: OverlayInputs) -> None:
    if not inputs.missing_remotes:
        return
    references = tuple(sorted(inputs.missing_remotes))
    error = RemoteError(
        "render.kustomize.remote",
        f"the overlay needs {join_quoted(references, 1)}, which must be fetched first",
        location=inputs.missing_remotes[references[0]],
    )
    error.references = references
    error.charts = inputs.remote_charts
    raise error
