"""Files of an untrusted repository, and nothing else.

A path may have `..`, start with `/` or lead through a link: the file must be a regular one below
the root of the source, and not too large. Runs in the worker.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator
from pathlib import Path

from tidegate.errors import Location, RenderError, sanitize
from tidegate.files import (
    IrregularFileError,
    PathEscapeError,
    PathViolation,
    open_file,
    resolve_within,
)

MIB = 1024 * 1024
MAX_FILE_SIZE = 16 * MIB
MAX_CHART_SIZE = 256 * MIB
MAX_FILES = 20_000


def find_file(path: str, *, root: str, start: Path) -> Path:
    """Resolve a path that is relative to `start`, or, with a `/`, to the root."""
    top = Path(root).resolve()
    joined = top / path.lstrip("/") if path.startswith("/") else start / path
    return resolve_inside(joined, top, display_path=path)


def resolve_inside(path: Path, top: Path, *, display_path: str) -> Path:
    """Resolve a path.

    Raises RenderError if it leads out of `top`.
    """
    try:
        return resolve_within(path, top)
    except PathEscapeError as error:
        raise path_error(error.violation, display_path) from None


def path_error(violation: PathViolation, display_path: str) -> RenderError:
    """Return the error for a path that points outside the source, or cannot be resolved."""
    location = Location(sanitize(display_path))
    if violation is not PathViolation.OUTSIDE:
        return RenderError(
            "render.helm.file", f"`{sanitize(display_path)}` {violation.value}", location=location
        )
    problem = f"`{sanitize(display_path)}` points outside the source"
    hint = "keep charts, values and the targets of links inside one source"
    return RenderError("render.helm.outside", problem, location=location, hint=hint)


def relative_to_source(location: Location, chart: str) -> Location:
    """Return a location in a chart, relative to the root of its source."""
    name = posixpath.normpath(posixpath.join(chart.lstrip("/"), location.name))
    return location.with_name(name)


def read_text(path: Path, *, display_path: str) -> str | None:
    """Return the text of a file; None if there is none."""
    try:
        with open_file(path) as file:
            content = file.read(MAX_FILE_SIZE + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except IrregularFileError:
        raise _irregular_file_error(display_path) from None
    except OSError as error:
        problem = f"`{display_path}` cannot be read: {os.strerror(error.errno or 0)}"
        raise RenderError("render.helm.file", problem, location=Location(display_path)) from None
    if len(content) > MAX_FILE_SIZE:
        problem = f"`{display_path}` is larger than {MAX_FILE_SIZE // MIB} MiB"
        raise RenderError("render.helm.size", problem, location=Location(display_path))
    try:
        return content.decode()
    except UnicodeDecodeError:
        problem = f"`{display_path}` is not UTF-8"
        raise RenderError("render.helm.file", problem, location=Location(display_path)) from None


def check_chart(chart: Path, root: str) -> None:
    """Check all files of a chart, because Helm follows links and reads everything.

    Raises RenderError.
    """
    total = 0
    files = _walk_files(str(chart), "", (str(chart),), Path(root).resolve())
    for number, (file, size) in enumerate(files, 1):
        total += size
        if number > MAX_FILES or total > MAX_CHART_SIZE:
            problem = f"the chart has more than {MAX_FILES} files or {MAX_CHART_SIZE // MIB} MiB"
            hint = "check that `chart` is the path of the chart, not of the whole repository"
            raise RenderError("render.helm.size", problem, location=Location(file), hint=hint)


def _walk_files(
    directory: str, prefix: str, ancestors: tuple[str, ...], top: Path
) -> Iterator[tuple[str, int]]:
    """Yield the name and the size of each file of a chart.

    Paths are strings here for speed: a chart has many files.
    """
    with os.scandir(directory) as entries:
        for entry in entries:
            path, name = entry.path, f"{prefix}{entry.name}"
            if entry.is_symlink():
                path = _follow_link(path, name, ancestors, top)
            if entry.is_dir():
                yield from _walk_files(path, f"{name}/", (*ancestors, path), top)
            elif entry.is_file():
                yield name, entry.stat().st_size
            else:
                raise _irregular_file_error(name)


def _follow_link(link: str, display_path: str, ancestors: tuple[str, ...], top: Path) -> str:
    target = resolve_inside(Path(link), top, display_path=display_path)
    if str(target) in ancestors:
        problem = f"the link `{display_path}` points to one of its parent directories"
        raise RenderError("render.helm.file", problem, location=Location(display_path))
    if not target.exists():
        problem = f"the link `{display_path}` is broken"
        raise RenderError("render.helm.file", problem, location=Location(display_path))
    return str(target)


def _irregular_file_error(display_path: str) -> RenderError:
    problem = f"`{display_path}` is not a regular file"
    hint = "devices, pipes, sockets and directories are not read"
    return RenderError("render.helm.irregular", problem, location=Location(display_path), hint=hint)
