"""The worker's own program: a Jsonnet file in, JSON or the parts of an error out.

    python -m tidegate.render.jsonnet.worker

What a file imports is read by us and not by the library: from inside its source, and nothing else.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

import msgspec

from tidegate.errors import Location, RenderError, sanitize
from tidegate.external.worker_main import serve
from tidegate.files import PathEscapeError, PathViolation, open_file, resolve_within
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.units.rendering import JsonnetVariable
from tidegate.render.jsonnet.client import JsonnetRequest, JsonnetResult, Reply
from tidegate.render.workers import WorkerError

MAX_FILE = 16 * 1024 * 1024

# `app/a.jsonnet:3:5-9`, or `app/a.jsonnet:(3:5)-(7:2)`.
_AT = lazy_regex(r"(?P<file>[^\s:][^:\n]*):\(?(?P<line>\d+):(?P<column>\d+)")
_decode = msgspec.json.Decoder(JsonnetRequest).decode
_encode = msgspec.json.Encoder().encode


class _Library(Protocol):
    """As much of go-jsonnet as we use."""

    def evaluate_snippet(
        self,
        filename: str,
        src: str,
        *,
        ext_vars: dict[str, str],
        ext_codes: dict[str, str],
        tla_vars: dict[str, str],
        tla_codes: dict[str, str],
        import_callback: Callable[[str, str], tuple[str, bytes]],
    ) -> str: ...


def answer(request: bytes) -> bytes:
    """One request of the worker's line."""
    question = _decode(request)
    reply: Reply
    try:
        reply = JsonnetResult(evaluate(question))
    except RenderError as error:
        where = error.location or Location(question.file)
        reply = WorkerError(error.code, error.problem, where, error.hint)
    return _encode(reply)


def evaluate(question: JsonnetRequest) -> str:
    """The JSON that a file comes to."""
    imports = _Imports(question)
    source = imports.read(question.file)
    if source is None:
        problem = f"`{sanitize(question.file)}` is not there"
        raise RenderError("render.jsonnet.import", problem, location=Location(question.file))
    library = cast("_Library", import_module("_gojsonnet"))
    try:
        text = library.evaluate_snippet(
            question.file,
            source.decode(errors="replace"),
            ext_vars=_pairs(question.jsonnet.external, code=False),
            ext_codes=_pairs(question.jsonnet.external, code=True),
            tla_vars=_pairs(question.jsonnet.arguments, code=False),
            tla_codes=_pairs(question.jsonnet.arguments, code=True),
            import_callback=imports.find,
        )
    except RuntimeError as error:
        raise imports.refused or _explain(str(error), question.file) from None
    if imports.refused:
        raise imports.refused
    return text


def _pairs(values: Iterable[JsonnetVariable], *, code: bool) -> dict[str, str]:
    return {one.name: one.value for one in values if one.code is code}


class _Imports:
    """Finds what files import. Paths are those inside the source."""

    def __init__(self, question: JsonnetRequest) -> None:
        self._root = Path(question.root).resolve()
        self._searched = (*reversed(question.jsonnet.libraries), question.directory)
        self.refused: RenderError | None = None

    def find(self, base: str, wanted: str) -> tuple[str, bytes]:
        """Called by the library, which does not survive exceptions: errors are kept for later."""
        try:
            return self._find(base, wanted)
        except RenderError as error:
            self.refused = self.refused or error
            return wanted, b"error 'refused'"

    def _find(self, base: str, wanted: str) -> tuple[str, bytes]:
        for start in (base, *self._searched):
            path = posixpath.normpath(posixpath.join(start, wanted))
            content = self.read(path)
            if content is not None:
                return path, content
        problem = f"`{sanitize(wanted)}` is imported, and is not there"
        hint = "libraries are named by `libs`, from the root of the source on"
        where = Location(base.rstrip("/") or ".")
        raise RenderError("render.jsonnet.import", problem, location=where, hint=hint)

    def read(self, path: str) -> bytes | None:
        """A file's content; None where there is no file."""
        try:
            with open_file(resolve_within(self._root / path, self._root)) as file:
                content = file.read(MAX_FILE + 1)
        except PathEscapeError as stray:
            if stray.violation is not PathViolation.OUTSIDE:
                return None
            problem = f"`{sanitize(path)}` leads out of the source"
            raise RenderError(
                "render.directory.outside", problem, location=Location(path)
            ) from None
        except OSError:
            return None
        if len(content) > MAX_FILE:
            problem = f"`{sanitize(path)}` is larger than {MAX_FILE // 1024**2} MiB"
            raise RenderError("render.directory.size", problem, location=Location(path))
        return content


def _explain(text: str, file: str) -> RenderError:
    """go-jsonnet's words: why, and the innermost place."""
    first, _, trace = text.partition("\n")
    static = _AT.match(first)
    if static is not None:
        why = first[static.end() :].lstrip(")-0123456789: ")
    else:
        why = first.removeprefix("RUNTIME ERROR: ")
    at = static or _AT.search(trace.replace("\t", "\n"))
    place = (
        Location(at["file"].strip(), int(at["line"]), int(at["column"])) if at else Location(file)
    )
    problem = f"the file cannot be evaluated: {sanitize(why)}"
    return RenderError("render.jsonnet.evaluation", problem, location=place)


if __name__ == "__main__":
    serve(answer)
