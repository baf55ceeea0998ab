"""Rendering of charts: from the cache or by a worker, with dependencies fetched as sources.

Also their lookups in a cluster, and empty charts and bases in place of unavailable ones.
"""

from __future__ import annotations

import asyncio
import hashlib
import posixpath
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec
from msgspec.structs import replace

from tidegate.documents import Document
from tidegate.documents.dump import to_yaml
from tidegate.errors import Location, RenderError, sanitize
from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.units.chart_request import (
    LOOKUP_NOT_FOUND,
    ChartDependency,
    ChartRequest,
    FetchedChart,
    LookupResult,
)
from tidegate.model.units.rendering import FetchedTree
from tidegate.model.units.source import ChartSource
from tidegate.model.units.unit import Unit
from tidegate.render.cache.keys import release_key, request_text
from tidegate.render.helm import DependencyError, LookupsError, render
from tidegate.render.helm.release_contents import ChartDescription, describe_release
from tidegate.render.helm.worker.files import relative_to_source
from tidegate.render.lookups import find_lookups, may_look_up
from tidegate.render.prescan import SearchPattern, chart_may_contain
from tidegate.source import Cache, FetchOptions, fetch
from tidegate.source.semver import read_range, read_version
from tidegate.workers.rendering import RenderSettings
from tidegate.workspace.rendering.context import RenderContext
from tidegate.workspace.rendering.decryption import redact_error, secret_texts
from tidegate.workspace.rendering.result import (
    MissingInput,
    RenderResult,
    gather_results,
    raise_all,
)
from tidegate.workspace.rendering.sources import decode_data

EMPTY_FILE = "nothing.yaml"
STUB_MARK: JsonObject = {"tidegate.dev/stub": "true"}
"""Annotation of a placeholder for the objects of a base that was not fetched."""
_VERSION_NUMBERS = lazy_regex(r"(\d+)(?:\.(\d+))?(?:\.(\d+))?(-[0-9A-Za-z.-]+)?")


async def empty_base(cache: Cache) -> FetchedTree:
    """Return a file without objects, in place of a base.

    Where a build fails with it, the whole unit is unknown.
    """
    return FetchedTree(await _cached_tree("a base", {EMPTY_FILE: b""}, cache), EMPTY_FILE)


async def base_of_targets(targets: Sequence[JsonObject], cache: Cache) -> FetchedTree:
    """Return a file with objects that have only names, in place of a base that is patched.

    Each is annotated, so that it can be removed from what is built.
    """
    stubs = [
        {**target, "metadata": {**get_mapping(target, "metadata"), "annotations": STUB_MARK}}
        for target in targets
    ]
    content = "---\n".join(map(to_yaml, stubs)).encode()
    name = f"a base {hashlib.sha256(content).hexdigest()}"
    return FetchedTree(await _cached_tree(name, {EMPTY_FILE: content}, cache), EMPTY_FILE)


def is_stub(document: Document) -> bool:
    """Return whether an object is a placeholder for the objects of a base that was not fetched."""
    return get_mapping(document.body, "metadata", "annotations").items() >= STUB_MARK.items()


async def empty_chart(dependency: ChartDependency, cache: Cache) -> FetchedChart:
    """Return a chart without templates that has the name, and a version in the requested range.

    Where a build fails with it, the whole unit is unknown.
    """
    version = matching_version(dependency.version)
    metadata: dict[str, Json] = {"apiVersion": "v2", "name": dependency.name, "version": version}
    # kustomize reads `values.yaml` of every chart that it inflates.
    files = {"Chart.yaml": to_yaml(metadata).encode(), "values.yaml": b""}
    root = await _cached_tree(f"chart {dependency.name} {version}", files, cache)
    return FetchedChart(dependency, str(root))


async def _cached_tree(name: str, files: Mapping[str, bytes], cache: Cache) -> Path:
    async def fill(directory: Path) -> None:
        for file, content in files.items():
            await asyncio.to_thread((directory / file).write_bytes, content)

    return (await cache.find_or_store(f"stand-in for {name}", fill, source_name="a stand-in")).root


def matching_version(version_range: str) -> str:
    """Return some version in a range: one that it is written with, or one just above."""
    bounds = read_range(version_range or "*")
    for candidate in _version_candidates(version_range):
        version = read_version(candidate)
        if version is not None and bounds is not None and bounds.matches(version):
            return candidate
    return "0.0.0"


def _version_candidates(version_range: str) -> Iterator[str]:
    yield version_range
    for match in _VERSION_NUMBERS.finditer(version_range):
        major, minor, patch = (int(part or 0) for part in match.groups()[:3])
        yield f"{major}.{minor}.{patch}{match[4] or ''}"
        yield f"{major}.{minor}.{patch}"
        yield f"{major}.{minor}.{patch + 1}"
        yield f"{major}.{minor + 1}.0"
        yield f"{major + 1}.0.0"
        yield f"{max(major - 1, 0)}.0.0"
    yield "1.0.0"


REPOSITORY_SCHEMES = ("https://", "http://", "oci://")
BUILT_IN_SCHEMES = frozenset({"file", "http", "https", "oci"})
"""Schemes that Helm knows without a plugin (`pkg/getter/getter.go` of Helm 4.1)."""


class EncryptedObjects(msgspec.Struct, frozen=True):
    """Objects before decryption."""

    documents: tuple[Document, ...]
    missing_inputs: tuple[MissingInput, ...] = ()
    """Missing inputs; the objects that they would add are missing, too."""
    is_skipped: bool = False
    """Whether nothing was rendered, as it cannot contain the searched text."""
    remote_bases: tuple[str, ...] = ()
    """Remote bases that the objects are made of."""


SKIPPED = EncryptedObjects((), is_skipped=True)


class RenderMode(msgspec.Struct, frozen=True):
    """How to render: with the cache or not, and all or what may contain a text."""

    use_cache: bool = True
    search_pattern: SearchPattern | None = None


FULL_RENDER = RenderMode()


async def render_chart(
    request: ChartRequest, context: RenderContext, mode: RenderMode = FULL_RENDER
) -> EncryptedObjects:
    """Return the objects of a chart. Workers have no network: missing charts are fetched here."""
    missing_inputs: tuple[MissingInput, ...] = ()
    while True:
        try:
            attempt = await _render_attempt(request, context, mode)
        except RenderError:
            raise_all(tuple(missing_input.error for missing_input in missing_inputs))
            raise
        if isinstance(attempt, EncryptedObjects):
            documents = tuple(
                msgspec.structs.replace(
                    document, location=relative_to_source(document.location, request.chart)
                )
                for document in attempt.documents
            )
            return replace(attempt, documents=documents, missing_inputs=missing_inputs)
        fetched, missing = await _fetch_dependencies(attempt, request, context)
        missing_inputs += missing
        request = msgspec.structs.replace(request, fetched=(*request.fetched, *fetched))


def relative_to_chart(document: Document, request: ChartRequest) -> Document:
    """Return a document with its location relative to the chart, as Helm names it."""
    location, chart = document.location, posixpath.normpath(request.chart.lstrip("/"))
    name = location.name.rpartition("//")[2].removeprefix(f"{chart}/")
    return msgspec.structs.replace(document, location=location.with_name(name))


async def describe_chart(request: ChartRequest, context: RenderContext) -> ChartDescription:
    """Return what a release record stores about its chart. Raises the errors of rendering."""
    while True:
        try:
            return await describe_release(request, await context.worker_pool.helm())
        except DependencyError as error:
            if {chart.dependency for chart in request.fetched} & {*error.dependencies}:
                raise
            fetched, _ = await _fetch_dependencies(error.dependencies, request, context)
        request = msgspec.structs.replace(request, fetched=(*request.fetched, *fetched))


async def _render_attempt(
    request: ChartRequest, context: RenderContext, mode: RenderMode
) -> EncryptedObjects | tuple[ChartDependency, ...]:
    """Return the objects, or the dependencies that must be fetched before."""
    if mode.search_pattern and not chart_may_contain(mode.search_pattern, request):
        return SKIPPED
    # Live objects may be secret, and may differ the next time.
    key = chart_cache_key(request, context) if mode.use_cache and not request.lookups else ""
    cached = _find_cached(key, context) if key else None
    if cached is not None:
        return cached
    try:
        documents = await render(request, await context.worker_pool.helm())
    except DependencyError as error:
        if {chart.dependency for chart in request.fetched} & {*error.dependencies}:
            raise
        if key:
            context.render_cache.store_dependencies(key, error.dependencies)
        return error.dependencies
    if key:
        context.render_cache.store(key, documents)
    return EncryptedObjects(documents)


def _find_cached(
    key: str, context: RenderContext
) -> EncryptedObjects | tuple[ChartDependency, ...] | None:
    """Return the objects, or the missing dependencies, of the last time; None without either."""
    documents = context.render_cache.find(key)
    return (
        EncryptedObjects(documents)
        if documents is not None
        else context.render_cache.find_dependencies(key) or None
    )


def chart_cache_key(request: ChartRequest, context: RenderContext) -> str:
    """Return the cache key of a chart; empty for an invalid one, which the worker reports."""
    try:
        return context.cache_keys.find(request_text(request), partial(release_key, request))
    except (RenderError, OSError):
        return ""


async def _fetch_dependencies(
    dependencies: tuple[ChartDependency, ...], request: ChartRequest, context: RenderContext
) -> tuple[tuple[FetchedChart, ...], tuple[MissingInput, ...]]:
    """Fetch dependencies; an empty chart replaces one that is unavailable and may be left out."""
    for dependency in dependencies:
        _check_repository(dependency, request)
    options = await context.fetch_options(Path(request.root))
    fetched, errors = await gather_results(
        {chart: _fetch_dependency(chart, options) for chart in dict.fromkeys(dependencies)}
    )
    if not (options.offline or context.settings.skips_unavailable):
        raise_all(tuple(errors.values()))
    fetched |= {dependency: await empty_chart(dependency, options.cache) for dependency in errors}
    missing_inputs = (
        MissingInput(f"the objects of chart dependency `{sanitize(chart.name)}`", error, chart.name)
        for chart, error in errors.items()
    )
    return tuple(fetched[chart] for chart in dependencies), tuple(missing_inputs)


async def _fetch_dependency(dependency: ChartDependency, options: FetchOptions) -> FetchedChart:
    snapshot = await fetch(
        ChartSource(dependency.repository, dependency.name, dependency.version), options
    )
    return FetchedChart(dependency, str(snapshot.root))


def _check_repository(dependency: ChartDependency, request: ChartRequest) -> None:
    location = Location(f"{request.chart}/Chart.yaml", field="dependencies")
    scheme, separator, _ = dependency.repository.partition("://")
    if separator and scheme not in BUILT_IN_SCHEMES:
        problem = (
            f"chart dependency `{sanitize(dependency.name)}` needs a plugin of Helm that downloads"
            f" from `{sanitize(scheme)}://`"
        )
        hint = "run `helm dependency build`, and pass the directory with the chart as PATH"
        raise RenderError("render.plugin", problem, location=location, hint=hint)
    if not dependency.repository.startswith(REPOSITORY_SCHEMES):
        problem = (
            f"chart dependency `{sanitize(dependency.name)}` has an unsupported repository"
            f" `{sanitize(dependency.repository)}`"
        )
        hint = "write a repository URL that starts with " + ", ".join(
            f"`{scheme}`" for scheme in REPOSITORY_SCHEMES
        )
        raise RenderError("render.helm.repository", problem, location=location, hint=hint)


NO_CLUSTER_NOTE = "`lookup` returns nothing, as with `helm template`: no cluster is connected"
SIMULATED_NOTE = "`lookup` reads the simulated cluster; a real cluster may have more objects"
MISSING_OBJECT_NOTE = "cannot render the chart without the objects that it looks up"
MAX_ROUNDS = 20
"""Limit for a chart that looks up something new each time."""


class LookupRenderer:
    """Renderer of the chart of a unit with the objects that its templates look up.

    A worker renders, and reports what its templates look up. That is read from the cluster, and the
    worker renders again with the responses, until nothing new is looked up. Without a cluster
    nothing is found, as with `helm template`, and that is reported. `secrets` collects the contents
    of Secrets, which must never be shown.
    """

    def __init__(self, unit: Unit, settings: RenderSettings, secrets: set[str]) -> None:
        self._unit = unit
        self._look_up = settings.look_up
        self._is_simulated = settings.is_simulated
        self._secrets = secrets

    async def render(
        self,
        request: ChartRequest,
        render_objects: Callable[[ChartRequest], Awaitable[RenderResult]],
    ) -> tuple[ChartRequest, RenderResult]:
        """Return the request with the responses to all its lookups, and its objects."""
        if not may_look_up(request):
            return request, await render_objects(request)
        if self._look_up is None:
            return request, _with_lookup_notes(
                await render_objects(request), request, NO_CLUSTER_NOTE
            )
        rounds_left = MAX_ROUNDS
        while True:
            request = replace(request, lookups=request.lookups or {})
            try:
                return request, self._with_simulation_note(await render_objects(request), request)
            except LookupsError as error:
                rounds_left -= 1
                if not rounds_left:
                    raise
                responses = {path: await self._look_up(self._unit, path) for path in error.paths}
            except RenderError as error:
                if not any(map(is_empty_response, (request.lookups or {}).values())):
                    raise
                redact_error(error, self._secrets)
                return request, _missing_object_result(error)
            self._secrets |= {
                secret for response in responses.values() for secret in _secrets_in(response)
            }
            request = replace(request, lookups={**(request.lookups or {}), **responses})

    def _with_simulation_note(self, result: RenderResult, request: ChartRequest) -> RenderResult:
        return _with_lookup_notes(result, request, SIMULATED_NOTE) if self._is_simulated else result


def is_empty_response(response: LookupResult) -> bool:
    """Return whether a lookup found nothing."""
    if response.status == LOOKUP_NOT_FOUND.status:
        return True
    body: dict[str, Json] = msgspec.json.decode(response.body)
    return "items" in body and not body["items"]


def _missing_object_result(error: RenderError) -> RenderResult:
    problem = f"{MISSING_OBJECT_NOTE}: {error.problem}"
    note = RenderError("render.lookup", problem, location=error.location, hint=error.hint)
    return RenderResult(documents=(), secret_fields=(), notes=(note,), lookup_error=error)


def _with_lookup_notes(result: RenderResult, request: ChartRequest, problem: str) -> RenderResult:
    """Add a note for each template with a lookup, as it may render something else in a cluster."""
    hint = "`sync` and `plan --context` query the cluster, like helm-controller"
    notes = (
        RenderError("render.lookup", problem, location=location, hint=hint)
        for location in find_lookups(request)
    )
    return replace(result, notes=(*result.notes, *notes))


def _secrets_in(response: LookupResult) -> Iterator[str]:
    body: dict[str, Json] = msgspec.json.decode(response.body)
    kind = get_text(body, "kind")
    if kind in ("Secret", "SecretList"):
        # Items of a list may have no kind.
        for secret in get_mappings(body, "items") if kind == "SecretList" else (body,):
            yield from secret_texts(decode_data({**secret, "kind": "Secret"}))
