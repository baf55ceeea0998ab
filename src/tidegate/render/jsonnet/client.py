"""Jsonnet files in plain directories, evaluated by workers as Argo CD evaluates them.

async with jsonnet_workers() as workers:
        directory = Directory(root=root, jsonnet=JsonnetOptions(libraries=("vendor",)))
        documents = await render_directory(directory, workers)

The engine is go-jsonnet, as in Argo CD. A file may import files of its source: from its own
directory, from the libraries, the last one first, or from the directory of the Application.

Like `makeJsonnetVM` in `reposerver/repository/repository.go` of Argo CD 3.5.6.
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
    """Request to a worker: evaluate one file of a source."""

    root: str
    """The root of the source."""
    directory: str
    """The directory of the Application, relative to the root."""
    file: str
    """The file to evaluate, relative to the root."""
    jsonnet: JsonnetOptions
    """Variables, top-level arguments and libraries."""


class JsonnetResult(msgspec.Struct, frozen=True, tag="evaluated"):
    """Reply of a worker: the JSON of the file."""

    text: str
    """The JSON."""


Reply: TypeAlias = JsonnetResult | WorkerError
_encode = msgspec.json.Encoder().encode
_decode: Callable[[bytes], Reply] = msgspec.json.Decoder(Reply).decode


def jsonnet_workers(
    *, count: int = 1, limits: Limits = LIMITS
) -> AbstractAsyncContextManager[Workers]:
    """Open workers that evaluate Jsonnet."""
    return open_workers("tidegate.render.jsonnet.worker", {}, count=count, limits=limits)


async def render_directory(
    directory: Directory,
    workers: Workers,
    rooted_files: RootedFiles | None = None,
    read: DocumentReader = read_documents,
) -> tuple[Document, ...]:
    """Return the objects of a directory, with its Jsonnet files evaluated.

    Files are read here and not in a thread: two threads that read small files at once wait for each
    other at every file, and take twice as long.
    """
    rooted_files = rooted_files or RootedFiles(directory.root)
    files = list_manifest_files(directory, rooted_files)
    names = [name for name in files if directory.jsonnet and is_jsonnet(name)]
    if names and find_spec("_gojsonnet") is None:
        problem = f"`{sanitize(names[0])}` is Jsonnet, but go-jsonnet is not installed"
        hint = "install `tidegate[jsonnet]`"
        raise RenderError("render.jsonnet.missing", problem, location=Location(names[0]), hint=hint)
    jsonnet_results = {name: await _evaluate(name, directory, workers) for name in names}
    return read_directory(
        directory,
        jsonnet_results=jsonnet_results,
        files=files,
        rooted_files=rooted_files,
        read=read,
    )


async def _evaluate(name: str, directory: Directory, workers: Workers) -> str:
    jsonnet = directory.jsonnet or JsonnetOptions()
    external, arguments = (
        tuple(
            JsonnetVariable(variable.name, expand(variable.value, jsonnet.variables), variable.code)
            for variable in values
        )
        for values in (jsonnet.external, jsonnet.arguments)
    )
    request = JsonnetRequest(
        root=str(directory.root.resolve()),
        directory=directory.path,
        file=name,
        jsonnet=JsonnetOptions(external=external, arguments=arguments, libraries=jsonnet.libraries),
    )
    try:
        reply = _decode(await workers.request(_encode(request)))
    except ProcessError as error:
        problem = f"`{sanitize(name)}` cannot be evaluated: {error.problem}"
        raise RenderError(
            "render.jsonnet.limit", problem, location=Location(name), hint=error.hint
        ) from error
    match reply:
        case JsonnetResult(text):
            return text
        case WorkerError():
            raise reply.to_error()
