"""Jsonnet files in plain directories, evaluated as Argo CD evaluates them, in workers.

    async with jsonnet_workers() as workers:
        directory = Directory(root=root, jsonnet=Jsonnet(libraries=("vendor",)))
        documents = await render_directory(directory, workers)

The engine is go-jsonnet, which is also Argo CD's. A file may import what lies in its source: from
beside itself, from the libraries, the last one first, or from the directory of the Application.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from importlib.util import find_spec
from typing import TypeAlias

import msgspec

from tidegate.documents import Document, DocumentReader, read_documents
from tidegate.errors import Location, ProcessError, RenderError, sanitize
from tidegate.external.process import Limits
from tidegate.external.worker import Workers
from tidegate.files import RootedFiles
from tidegate.model.units.rendering import Directory, JsonnetOptions, JsonnetVariable
from tidegate.render.argocd_variables import expand
from tidegate.render.plain import is_jsonnet, list_manifest_files, read_directory
from tidegate.render.workers import LIMITS, WorkerError, open_workers


class JsonnetRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker is asked: to evaluate one file of a source."""

    root: str
    directory: str
    file: str
    jsonnet: JsonnetOptions


class JsonnetResult(msgspec.Struct, frozen=True, tag="evaluated"):
    """A worker's good answer: what the file comes to, as JSON."""

    text: str


Reply: TypeAlias = JsonnetResult | WorkerError
_encode = msgspec.json.Encoder().encode
_decode: Callable[[bytes], Reply] = msgspec.json.Decoder(Reply).decode


def jsonnet_workers(
    *, count: int = 1, limits: Limits = LIMITS
) -> AbstractAsyncContextManager[Workers]:
    """Workers that evaluate Jsonnet."""
    return open_workers("tidegate.render.jsonnet.worker", {}, count=count, limits=limits)


async def render_directory(
    directory: Directory,
    workers: Workers,
    within: RootedFiles | None = None,
    read: DocumentReader = read_documents,
) -> tuple[Document, ...]:
    """As `read_directory`, with what Jsonnet files come to in their places.

    Files are read here and not in a thread: two threads that read small files at once wait for each
    other at every file, and take twice as long.
    """
    within = within or RootedFiles(directory.root)
    files = list_manifest_files(directory, within)
    names = [name for name in files if directory.jsonnet and is_jsonnet(name)]
    if names and find_spec("_gojsonnet") is None:
        problem = f"`{sanitize(names[0])}` is Jsonnet, and go-jsonnet is not installed"
        hint = "install `tidegate[jsonnet]`"
        raise RenderError("render.jsonnet.missing", problem, location=Location(names[0]), hint=hint)
    evaluated = {name: await _evaluate(name, directory, workers) for name in names}
    return read_directory(directory, evaluated=evaluated, files=files, within=within, read=read)


async def _evaluate(name: str, directory: Directory, workers: Workers) -> str:
    jsonnet = directory.jsonnet or JsonnetOptions()
    external, arguments = (
        tuple(
            JsonnetVariable(one.name, expand(one.value, jsonnet.variables), one.code)
            for one in values
        )
        for values in (jsonnet.external, jsonnet.arguments)
    )
    question = JsonnetRequest(
        root=str(directory.root.resolve()),
        directory=directory.path,
        file=name,
        jsonnet=JsonnetOptions(external=external, arguments=arguments, libraries=jsonnet.libraries),
    )
    try:
        answer = _decode(await workers.request(_encode(question)))
    except ProcessError as error:
        problem = f"`{sanitize(name)}` cannot be evaluated: {error.problem}"
        raise RenderError(
            "render.jsonnet.limit", problem, location=Location(name), hint=error.hint
        ) from error
    match answer:
        case JsonnetResult(text):
            return text
        case WorkerError():
            raise answer.error()
