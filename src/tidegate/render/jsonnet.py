"""Jsonnet files in plain directories, evaluated as Argo CD evaluates them, in workers.

    async with jsonnet_workers() as workers:
        documents = await render_directory(directory, Jsonnet(libraries=("vendor",)), workers)

The engine is go-jsonnet, which is also Argo CD's. A file may import what lies in its source: from
beside itself, from the libraries, the last one first, or from the directory of the Application.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import TypeAlias

import msgspec

from tidegate.documents import Document
from tidegate.errors import Place, ProcessError, RenderError, foreign
from tidegate.external.process import MIB, Command, Limits
from tidegate.external.worker import Workers
from tidegate.model.moment import SECOND, Ms
from tidegate.model.rendering import Directory
from tidegate.render.argo_build import expand
from tidegate.render.plain import jsonnet_files, read_directory
from tidegate.render.scratch import scratch_directory

LIMITS = Limits(time=Ms(30 * SECOND), memory=1024 * MIB, output=32 * MIB)


class Variable(msgspec.Struct, frozen=True):
    """A value by its name: a text, or with `code` an expression."""

    name: str
    value: str
    code: bool = False

    def __repr__(self) -> str:
        return f"Variable({self.name})"


class Jsonnet(msgspec.Struct, frozen=True, kw_only=True):
    """`directory.jsonnet` of an Application: `extVars`, `tlas` and `libs`.

    Libraries start at the root of the source. Values may name `variables` of the build.
    """

    external: tuple[Variable, ...] = ()
    arguments: tuple[Variable, ...] = ()
    libraries: tuple[str, ...] = ()
    variables: Mapping[str, str] = {}


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker is asked: to evaluate one file of a source."""

    root: str
    directory: str
    file: str
    external: tuple[Variable, ...]
    arguments: tuple[Variable, ...]
    libraries: tuple[str, ...]


class Evaluated(msgspec.Struct, frozen=True, tag="evaluated"):
    """A worker's good answer: what the file comes to, as JSON."""

    text: str


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """A worker's other answer: the parts of an error."""

    code: str
    problem: str
    place: str
    line: int = 0
    column: int = 0
    hint: str = ""


Answer: TypeAlias = Evaluated | Refused
_encode = msgspec.json.Encoder().encode
_decode: Callable[[bytes], Answer] = msgspec.json.Decoder(Answer).decode


@asynccontextmanager
async def jsonnet_workers(*, count: int = 1, limits: Limits = LIMITS) -> AsyncIterator[Workers]:
    """Workers that evaluate Jsonnet. They start when they are needed and end with the block."""
    with scratch_directory() as scratch:
        environment = {"GOMAXPROCS": "1", "GOTRACEBACK": "none", "TMPDIR": str(scratch)}
        argv = (sys.executable, "-I", "-X", "utf8", "-m", "tidegate.render.jsonnet_engine")
        command = Command(argv=argv, env=environment, cwd=scratch)
        async with Workers(command, count=count, limits=limits) as workers:
            yield workers


async def render_directory(
    directory: Directory, jsonnet: Jsonnet, workers: Workers
) -> tuple[Document, ...]:
    """As `read_directory`, with what Jsonnet files come to in their places."""
    names = await asyncio.to_thread(jsonnet_files, directory)
    if names and find_spec("_gojsonnet") is None:
        problem = f"`{foreign(names[0])}` is Jsonnet, and go-jsonnet is not installed"
        hint = "install `tidegate[jsonnet]`"
        raise RenderError("render.jsonnet.missing", problem, where=Place(names[0]), hint=hint)
    evaluated = {name: await _evaluate(name, directory, jsonnet, workers) for name in names}
    return await asyncio.to_thread(read_directory, directory, evaluated=evaluated)


async def _evaluate(name: str, directory: Directory, jsonnet: Jsonnet, workers: Workers) -> str:
    question = Question(
        root=str(directory.root.resolve()),
        directory=directory.path,
        file=name,
        external=_expanded(jsonnet.external, jsonnet),
        arguments=_expanded(jsonnet.arguments, jsonnet),
        libraries=jsonnet.libraries,
    )
    try:
        answer = _decode(await workers.ask(_encode(question)))
    except ProcessError as error:
        problem = f"`{foreign(name)}` cannot be evaluated: {error.problem}"
        raise RenderError(
            "render.jsonnet.limit", problem, where=Place(name), hint=error.hint
        ) from error
    match answer:
        case Evaluated(text):
            return text
        case Refused(code, problem, place, line, column, hint):
            raise RenderError(code, problem, where=Place(place, line, column), hint=hint)


def _expanded(values: tuple[Variable, ...], jsonnet: Jsonnet) -> tuple[Variable, ...]:
    return tuple(
        Variable(one.name, expand(one.value, jsonnet.variables), one.code) for one in values
    )
