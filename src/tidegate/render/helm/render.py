"""Renders a release: asks a worker, and makes documents of what comes back.

    async with helm_workers() as workers:
        documents = await render(release, workers)

Hooks stay objects like others, with their annotations; test hooks and notes are left out.
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

# Not `---` alone on a line, as YAML has it: Helm also parts `---apiVersion: v1`.
_SEPARATOR = lazy_regex(r"(?:^|\s*\n)---\s*")
EVENTS = frozenset(
    f"{when}-{what}"
    for when in ("pre", "post")
    for what in ("install", "delete", "upgrade", "rollback")
)
"""What hooks may be for, tests aside."""
TEST_EVENTS = frozenset({"test", "test-success"})
_encode = msgspec.json.Encoder().encode
_decode: Callable[[bytes], Reply] = msgspec.json.Decoder(Reply).decode


@asynccontextmanager
async def helm_workers(
    *, count: int = 2, limits: Limits = LIMITS, offline: bool = False
) -> AsyncIterator[Workers]:
    """Workers that render charts. They start when they are needed and end with the block.

    Helm fetches schemas that a chart's schema names, unless it is to be `offline`.
    """
    if find_spec("helm_python") is None:
        problem = "Helm charts cannot be rendered: the Helm SDK is not installed"
        hint = "install `tidegate[helm]`"
        raise RenderError("render.helm.missing", problem, hint=hint)
    environment = {
        "GOGC": "400",  # most charts need less than is collected late
        "GOMEMLIMIT": f"{limits.memory * 3 // 4}",
        **(NO_NETWORK if offline else {}),
    }
    module = "tidegate.render.helm.worker.main"
    async with open_workers(module, environment, count=count, limits=limits) as workers:
        yield workers


async def render(release: ChartRequest, workers: Workers) -> tuple[Document, ...]:
    """The objects of a release: CRDs first, then template by template in the order of their paths.

    A document's place is the template's path inside the chart, which may lie elsewhere the next
    time. Where something is wrong, that is told as seen from the root of the source.
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
    """What a worker makes of a release, as text."""
    try:
        answer = _decode(await workers.request(_encode(release)))
    except ProcessError as error:
        raise _lost(error, release) from error
    match answer:
        case WorkerError(missing_charts=missing, location=Location() as location) if missing:
            raise dependency_error(missing, where=location)
        case WorkerError(missing_lookups=paths) if paths:
            raise lookups_error(paths, where=Location(release.chart))
        case WorkerError():
            raise answer.to_error()
        case RenderedChart():
            return answer


def _objects(templates: tuple[RenderedFile, ...], release: ChartRequest) -> Iterator[Document]:
    for path, number, piece in split_templates(templates):
        for document in read_rendered_text(piece, path, number):
            if is_included(document, release):
                yield document


def is_included(document: Document, release: ChartRequest) -> bool:
    """Whether a release is to have it: no hooks of unknown events, and tests where they are run."""
    events, known = hook_events(document), EVENTS
    return events is None or events <= (known | TEST_EVENTS if release.include_tests else known)


def split_templates(templates: Iterable[RenderedFile]) -> Iterator[tuple[str, int, str]]:
    """The text of each object: its template, its number there, and the text itself."""
    for template in templates:
        if template.path.endswith(NOTES):
            continue
        pieces = _SEPARATOR.split(template.text.lstrip())
        for number, piece in enumerate(each for each in pieces if each.strip()):
            # Helm ends every object with a line break, which a block of text at its end keeps.
            yield template.path, number, piece.lstrip() + "\n"


def read_rendered_text(text: str, path: str, number: int) -> Iterator[Document]:
    """The objects in a piece of text; a List becomes its items."""
    try:
        documents = read_documents(text, path)
    except DocumentError as error:
        line = (
            f" in line {error.location.line} of it"
            if error.location and error.location.line
            else ""
        )
        problem = f"object {number + 1} that the template comes to cannot be read{line}"
        where = Location(path)
        raise RenderError(
            "render.helm.yaml", f"{problem}: {error.problem}", location=where, hint=error.hint
        ) from error
    for document in documents:
        # Lines of the text are not lines of the template.
        yield msgspec.structs.replace(
            document,
            location=Location(path),
            document_index=number or document.document_index,
            duplicates=(),
        )


def hook_events(document: Document) -> frozenset[str] | None:
    """The events that a hook is for. None for what is no hook.

    Helm drops a hook with an event that it does not know, without a word.
    """
    annotations = get_mapping(document.body, "metadata", "annotations")
    if HOOK not in annotations:
        return None
    return frozenset(event.strip().lower() for event in str(annotations[HOOK] or "").split(","))


def _lost(error: ProcessError, release: ChartRequest) -> RenderError:
    """A worker did not survive the chart. The next one to ask gets a new worker."""
    where = Location(release.chart)
    what = f"the chart for `{sanitize(release.name)}` cannot be rendered: {error.problem}"
    match error.code:
        case "external.worker.timeout":
            hint = "look for a template that loops, or give it more time"
            return RenderError("render.helm.timeout", what, location=where, hint=hint)
        case "external.worker.memory":
            return RenderError("render.helm.memory", what, location=where, hint=error.hint)
        case "external.worker.output":
            return RenderError("render.helm.size", what, location=where)
        case _:
            return RenderError("render.helm.crash", what, location=where, hint=error.hint)


class _Piece(NamedTuple):
    rank: tuple[int, str]
    events: frozenset[str] | None
    text: str


async def print_manifest(
    release: ChartRequest, workers: Workers, *, include_hooks: bool, include_tests: bool
) -> str:
    """What `helm template` prints: CRDs, then objects as Helm installs them, then hooks.

    Programs that run helm themselves, as kustomize does for `helmCharts`, want this.
    """
    rendered = await request_render(release, workers)
    pieces = sorted(_pieces(rendered.templates), key=lambda piece: piece.rank)
    events = EVENTS | TEST_EVENTS if include_tests else EVENTS
    crds = [crd.text for crd in rendered.crds]
    objects = [text for _, own, text in pieces if own is None]
    wanted = [
        text for _, own, text in pieces if include_hooks and own is not None and own <= events
    ]
    return "".join(f"---\n{text}\n" for text in (*crds, *objects, *wanted))


def _pieces(templates: Iterable[RenderedFile]) -> Iterator[_Piece]:
    for path, number, text in split_templates(templates):
        documents = [*read_rendered_text(text, path, number)]
        if documents:
            first = documents[0]
            # What stood in a List is sorted as a List.
            kind = "List" if first.list_path else str(first.body.get("kind"))
            yield _Piece(install_rank(kind), None if first.list_path else hook_events(first), text)
