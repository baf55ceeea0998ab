"""Reads what a stranger's repository names, and nothing else.

Whatever a path says, with `..`, from `/` or through a link: the file must be a regular one inside
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
MAX_FILE = 16 * MIB
MAX_CHART = 256 * MIB
MAX_FILES = 20_000


def find_file(path: str, *, root: str, start: Path) -> Path:
    """The file for a path that starts at `start`, or with a `/` at the root."""
    top = Path(root).resolve()
    wanted = top / path.lstrip("/") if path.startswith("/") else start / path
    return resolve_inside(wanted, top, shown=path)


def resolve_inside(wanted: Path, top: Path, *, shown: str) -> Path:
    """Where a path leads, if that is inside `top`."""
    try:
        return resolve_within(wanted, top)
    except PathEscapeError as stray:
        raise path_error(stray.violation, shown) from None


def path_error(why: PathViolation, shown: str) -> RenderError:
    place = Location(sanitize(shown))
    if why is not PathViolation.OUTSIDE:
        return RenderError("render.helm.file", f"`{sanitize(shown)}` {why.value}", location=place)
    problem = f"`{sanitize(shown)}` leads out of the source"
    hint = "keep charts, values and what they link to inside one source"
    return RenderError("render.helm.outside", problem, location=place, hint=hint)


def relative_to_source(place: Location, chart: str) -> Location:
    """A place in a chart, seen from the root of its source, as people look for it."""
    name = posixpath.normpath(posixpath.join(chart.lstrip("/"), place.name))
    return place.with_name(name)


def read_text(path: Path, *, shown: str) -> str | None:
    """The text of a file; None when there is none."""
    try:
        with open_file(path) as file:
            content = file.read(MAX_FILE + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except IrregularFileError:
        raise _irregular(shown) from None
    except OSError as error:
        problem = f"`{shown}` cannot be read: {os.strerror(error.errno or 0)}"
        raise RenderError("render.helm.file", problem, location=Location(shown)) from None
    if len(content) > MAX_FILE:
        problem = f"`{shown}` is larger than {MAX_FILE // MIB} MiB"
        raise RenderError("render.helm.size", problem, location=Location(shown))
    try:
        return content.decode()
    except UnicodeDecodeError:
        problem = f"`{shown}` is not UTF-8"
        raise RenderError("render.helm.file", problem, location=Location(shown)) from None


def check_chart(chart: Path, root: str) -> None:
    """Helm follows links and reads what it finds, so look at everything before it does."""
    total = 0
    found = _files(str(chart), "", (str(chart),), Path(root).resolve())
    for number, (shown, size) in enumerate(found, 1):
        total += size
        if number > MAX_FILES or total > MAX_CHART:
            problem = f"the chart has more than {MAX_FILES} files or {MAX_CHART // MIB} MiB"
            hint = "check that `chart` names the chart and not the whole repository"
            raise RenderError("render.helm.size", problem, location=Location(shown), hint=hint)


def _files(
    directory: str, shown: str, above: tuple[str, ...], top: Path
) -> Iterator[tuple[str, int]]:
    """The name and the size of each file of a chart.

    Paths are plain text here: a chart has many files, and this is done for every render.
    """
    with os.scandir(directory) as entries:
        for entry in entries:
            path, name = entry.path, f"{shown}{entry.name}"
            if entry.is_symlink():
                path = _follow(path, name, above, top)
            if entry.is_dir():
                yield from _files(path, f"{name}/", (*above, path), top)
            elif entry.is_file():
                yield name, entry.stat().st_size
            else:
                raise _irregular(name)


def _follow(link: str, shown: str, above: tuple[str, ...], top: Path) -> str:
    target = resolve_inside(Path(link), top, shown=shown)
    if str(target) in above:
        problem = f"the link `{shown}` leads back to a directory above it"
        raise RenderError("render.helm.file", problem, location=Location(shown))
    if not target.exists():
        problem = f"the link `{shown}` leads nowhere"
        raise RenderError("render.helm.file", problem, location=Location(shown))
    return str(target)


def _irregular(shown: str) -> RenderError:
    problem = f"`{shown}` is not a regular file"
    hint = "devices, pipes, sockets and directories are not read"
    return RenderError("render.helm.irregular", problem, location=Location(shown), hint=hint)
