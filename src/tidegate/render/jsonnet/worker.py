"""Main program of a Jsonnet worker: a file in, JSON or an error out.

python -m tidegate.render.jsonnet.worker

Imports are read here and not by the library: only from inside the source.
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

MAX_FILE_SIZE = 16 * 1024 * 1024

# `app/a.jsonnet:3:5-9`, or `app/a.jsonnet:(3:5)-(7:2)`.
_POSITION = lazy_regex(r"(?P<file>[^\s:][^:\n]*):\(?(?P<line>\d+):(?P<column>\d+)")
_decode = msgspec.json.Decoder(JsonnetRequest).decode
_encode = msgspec.json.Encoder().encode


class _Library(Protocol):
    """The function of go-jsonnet that is used here."""

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
    """Return the reply to one request."""
    jsonnet_request = _decode(request)
    reply: Reply
    try:
        reply = JsonnetResult(evaluate(jsonnet_request))
    except RenderError as error:
        location = error.location or Location(jsonnet_request.file)
        reply = WorkerError(error.code, error.problem, location, error.hint)
    return _encode(reply)


def evaluate(request: JsonnetRequest) -> str:
    """Return the JSON of a file."""
    importer = _Importer(request)
    source = importer.read(request.file)
    if source is None:
        problem = f"`{sanitize(request.file)}` not found"
        raise RenderError("render.jsonnet.import", problem, location=Location(request.file))
    library = cast("_Library", import_module("_gojsonnet"))
    try:
        text = library.evaluate_snippet(
            request.file,
            source.decode(errors="replace"),
            ext_vars=_variables(request.jsonnet.external, code=False),
            ext_codes=_variables(request.jsonnet.external, code=True),
            tla_vars=_variables(request.jsonnet.arguments, code=False),
            tla_codes=_variables(request.jsonnet.arguments, code=True),
            import_callback=importer.find,
        )
    except RuntimeError as error:
        raise importer.error or _evaluation_error(str(error), request.file) from None
    if importer.error:
        raise importer.error
    return text


def _variables(values: Iterable[JsonnetVariable], *, code: bool) -> dict[str, str]:
    return {variable.name: variable.value for variable in values if variable.code is code}


class _Importer:
    """A finder of imported files. Paths are relative to the source."""

    def __init__(self, request: JsonnetRequest) -> None:
        self._root = Path(request.root).resolve()
        self._search_directories = (*reversed(request.jsonnet.libraries), request.directory)
        self.error: RenderError | None = None

    def find(self, base: str, path: str) -> tuple[str, bytes]:
        """Return an imported file.

        The library calls it and does not survive exceptions: errors are stored for later.

        Like `confinedImporter` in `reposerver/repository/repository.go` of Argo CD 3.5.6.
        """
        try:
            return self._find(base, path)
        except RenderError as error:
            self.error = self.error or error
            return path, b"error 'refused'"

    def _find(self, base: str, path: str) -> tuple[str, bytes]:
        for start in (base, *self._search_directories):
            found_path = posixpath.normpath(posixpath.join(start, path))
            content = self.read(found_path)
            if content is not None:
                return found_path, content
        problem = f"`{sanitize(path)}` is imported but does not exist"
        hint = "set library directories in `libs`, relative to the root of the source"
        location = Location(base.rstrip("/") or ".")
        raise RenderError("render.jsonnet.import", problem, location=location, hint=hint)

    def read(self, path: str) -> bytes | None:
        """Return the content of a file; None if there is no file."""
        try:
            with open_file(resolve_within(self._root / path, self._root)) as file:
                content = file.read(MAX_FILE_SIZE + 1)
        except PathEscapeError as error:
            if error.violation is not PathViolation.OUTSIDE:
                return None
            problem = f"`{sanitize(path)}` points outside the source"
            raise RenderError(
                "render.directory.outside", problem, location=Location(path)
            ) from None
        except OSError:
            return None
        if len(content) > MAX_FILE_SIZE:
            problem = f"`{sanitize(path)}` is larger than {MAX_FILE_SIZE // 1024**2} MiB"
            raise RenderError("render.directory.size", problem, location=Location(path))
        return content


def _evaluation_error(text: str, file: str) -> RenderError:
    """Return the error for a message of go-jsonnet: the reason, and the innermost location."""
    first, _, trace = text.partition("\n")
    static_position = _POSITION.match(first)
    if static_position is not None:
        reason = first[static_position.end() :].lstrip(")-0123456789: ")
    else:
        reason = first.removeprefix("RUNTIME ERROR: ")
    position = static_position or _POSITION.search(trace.replace("\t", "\n"))
    location = (
        Location(position["file"].strip(), int(position["line"]), int(position["column"]))
        if position
        else Location(file)
    )
    problem = f"the file cannot be evaluated: {sanitize(reason)}"
    return RenderError("render.jsonnet.evaluation", problem, location=location)


if __name__ == "__main__":
    serve(answer)
