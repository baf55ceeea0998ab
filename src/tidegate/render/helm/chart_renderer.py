"""Rendering of releases: a worker renders, and its output is read as documents.

async with helm_workers() as workers:
        documents = await render(release, workers)

Hooks are objects like others, with their annotations; test hooks and notes are dropped.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import NamedTuple

import msgspec

from tidegate.documents import Document, read_documents
from tidegate.errors import DocumentError, Location, ProcessError, RenderError, sanitize
from tidegate.external.process import Limits
from tidegate.external.worker import Workers
from tidegate.model.k8s.helm_order import install_rank
from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.units.chart_request import ChartRequest
from tidegate.render.helm.worker.files import relative_to_source
from tidegate.render.helm.worker_replies import (
    RenderedChart,
    RenderedFile,
    Reply,
    dependency_error,
    lookups_error,
)
from tidegate.render.workers import LIMITS, NO_NETWORK, WorkerError, open_workers

HOOK = "helm.sh/hook"
NOTES = "NOTES.txt"

# Unlike in YAML, `---` need not be alone on a line: Helm also splits at `---apiVersion: v1`.
_SEPARATOR = lazy_regex(r"(?:^|\s*\n)---\s*")
EVENTS = frozenset(
    f"{when}-{what}"
    for when in ("pre", "post")
    for what in ("install", "delete", "upgrade", "rollback")
)
"""Hook events of Helm, without tests.

Like `events` in `pkg/release/v1/util/manifest_sorter.go` of Helm 4.2.4.
"""
TEST_EVENTS = frozenset({"test", "test-success"})
_encode = msgspec.json.Encoder().encode
_decode: Callable[[bytes], Reply] = msgspec.json.Decoder(Reply).decode


@asynccontextmanager
async def helm_workers(*, count: int = 2, limits: Limits = LIMITS) -> AsyncIterator[Workers]:
    """Open workers that render charts. They start on first use and end with the block."""
    if find_spec("helm_python") is None:
        problem = "cannot render Helm charts: the Helm SDK is not installed"
        hint = "install `tidegate[helm]`"
        raise RenderError("render.helm.missing", problem, hint=hint)
    environment = {
        "GOGC": "400",  # most charts end before the first collection
        "GOMEMLIMIT": f"{limits.memory * 3 // 4}",
        **NO_NETWORK,
    }
    module = "tidegate.render.helm.worker.main"
    async with open_workers(module, environment, count=count, limits=limits) as workers:
        yield workers


async def render(release: ChartRequest, workers: Workers) -> tuple[Document, ...]:
    """Return the objects of a release: CRDs first, then templates in the order of their paths.

    The location of a document is the template's path in the chart, so that it is independent of the
    source. Locations in errors are relative to the root of the source.
    """
    rendered = await request_render(release, workers)
    crds = (
        document for crd in rendered.crds for document in read_rendered_text(crd.text, crd.path, 0)
    )
    try:
        return (*crds, *_objects(rendered.templates, release))
    except RenderError as error:
        error.location = error.location and relative_to_source(error.location, release.chart)
        raise


async def request_render(release: ChartRequest, workers: Workers) -> RenderedChart:
    """Return the output of a worker for a release, as text.

    Raises DependencyError or LookupsError if the worker needs further inputs.
    """
    try:
        reply = _decode(await workers.request(_encode(release)))
    except ProcessError as error:
        raise _worker_error(error, release) from error
    match reply:
        case WorkerError(missing_charts=missing, location=Location() as location) if missing:
            raise dependency_error(missing, location=location)
        case WorkerError(missing_lookups=paths) if paths:
            raise lookups_error(paths, location=Location(release.chart))
        case WorkerError():
            raise reply.to_error()
        case RenderedChart():
            return reply


def _objects(templates: tuple[RenderedFile, ...], release: ChartRequest) -> Iterator[Document]:
    for path, number, piece in split_templates(templates):
        for document in read_rendered_text(piece, path, number):
            if is_included(document, release):
                yield document


def is_included(document: Document, release: ChartRequest) -> bool:
    """Return whether a release has an object.

    It has no hooks with unknown events, and tests only if they are requested.
    """
    events, allowed = hook_events(document), EVENTS
    return events is None or events <= (allowed | TEST_EVENTS if release.include_tests else allowed)


def split_templates(templates: Iterable[RenderedFile]) -> Iterator[tuple[str, int, str]]:
    """Yield the text of each object: the path of its template, its number, and the text.

    Like `SplitManifests` in `pkg/release/v1/util/manifest.go` of Helm 4.2.4.
    """
    for template in templates:
        if template.path.endswith(NOTES):
            continue
        pieces = _SEPARATOR.split(template.text.lstrip())
        for number, piece in enumerate(text for text in pieces if text.strip()):
            # Helm ends every object with a line break; a block scalar at its end contains it.
            yield template.path, number, piece.lstrip() + "\n"


def read_rendered_text(text: str, path: str, number: int) -> Iterator[Document]:
    """Yield the objects in a text; a List becomes its items."""
    try:
        documents = read_documents(text, path)
    except DocumentError as error:
        line = (
            f" in line {error.location.line} of the output"
            if error.location and error.location.line
            else ""
        )
        problem = f"cannot parse object {number + 1} of the rendered template{line}"
        location = Location(path)
        raise RenderError(
            "render.helm.yaml", f"{problem}: {error.problem}", location=location, hint=error.hint
        ) from error
    for document in documents:
        # Line numbers of the text differ from those of the template.
        yield msgspec.structs.replace(
            document,
            location=Location(path),
            document_index=number or document.document_index,
            duplicates=(),
        )


def hook_events(document: Document) -> frozenset[str] | None:
    """Return the events of a hook; None if the object is no hook.

    Helm silently drops a hook with an unknown event.

    Like `SortManifests` in `pkg/release/v1/util/manifest_sorter.go` of Helm 4.2.4.
    """
    annotations = get_mapping(document.body, "metadata", "annotations")
    if HOOK not in annotations:
        return None
    return frozenset(event.strip().lower() for event in str(annotations[HOOK] or "").split(","))


def _worker_error(error: ProcessError, release: ChartRequest) -> RenderError:
    """Return the error for a worker that died while it rendered the chart."""
    location = Location(release.chart)
    problem = f"cannot render the chart of release `{sanitize(release.name)}`: {error.problem}"
    match error.code:
        case "external.worker.timeout":
            hint = "check for a template that loops, or raise the time limit"
            return RenderError("render.helm.timeout", problem, location=location, hint=hint)
        case "external.worker.memory":
            return RenderError("render.helm.memory", problem, location=location, hint=error.hint)
        case "external.worker.output":
            return RenderError("render.helm.size", problem, location=location)
        case _:
            return RenderError("render.helm.crash", problem, location=location, hint=error.hint)


class _ManifestPiece(NamedTuple):
    """The text of one object with its sort rank and hook events."""

    rank: tuple[int, str]
    """The sort key in Helm's install order."""
    events: frozenset[str] | None
    """The events of a hook; None for other objects."""
    text: str
    """The text of the object."""


async def print_manifest(
    release: ChartRequest, workers: Workers, *, include_hooks: bool, include_tests: bool
) -> str:
    """Return what `helm template` prints: CRDs, then objects in Helm's install order, then hooks.

    For programs that run helm themselves, as kustomize does for `helmCharts`.

    Like `renderResources` in `pkg/action/action.go` and `InstallOrder` in
    `pkg/release/v1/util/kind_sorter.go` of Helm 4.2.4.
    """
    rendered = await request_render(release, workers)
    pieces = sorted(_manifest_pieces(rendered.templates), key=lambda piece: piece.rank)
    events = EVENTS | TEST_EVENTS if include_tests else EVENTS
    crds = [crd.text for crd in rendered.crds]
    objects = [text for _, piece_events, text in pieces if piece_events is None]
    hooks = [
        text
        for _, piece_events, text in pieces
        if include_hooks and piece_events is not None and piece_events <= events
    ]
    return "".join(f"---\n{text}\n" for text in (*crds, *objects, *hooks))


def _manifest_pieces(templates: Iterable[RenderedFile]) -> Iterator[_ManifestPiece]:
    for path, number, text in split_templates(templates):
        documents = [*read_rendered_text(text, path, number)]
        if documents:
            first = documents[0]
            # Items of a List are sorted as a List.
            kind = "List" if first.list_path else str(first.body.get("kind"))
            yield _ManifestPiece(
                install_rank(kind), None if first.list_path else hook_events(first), text
            )
