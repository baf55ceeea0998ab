"""Reads what a stranger's repository names, and nothing else.

Whatever a path says, with `..`, from `/` or through a link: the file must be a regular one inside
the root of the source, and not too large. Runs in the worker.
"""

from __future__ import annotations

import os
from pathlib import Path

from tidegate.errors import Place, RenderError, foreign
from tidegate.files import IrregularFileError, Stray, StrayPathError, follow, open_file

MIB = 1024 * 1024
MAX_FILE = 16 * MIB
MAX_CHART = 256 * MIB
MAX_FILES = 20_000


def find(path: str, *, root: str, start: Path) -> Path:
    """The file for a path that starts at `start`, or with a `/` at the root."""
    top = Path(root).resolve()
    wanted = top / path.lstrip("/") if path.startswith("/") else start / path
    return inside(wanted, top, shown=path)


def inside(wanted: Path, top: Path, *, shown: str) -> Path:
    """Where a path leads, if that is inside `top`."""
    try:
        return follow(wanted, top)
    except StrayPathError as stray:
        raise astray(stray.why, shown) from None


def astray(why: Stray, shown: str) -> RenderError:
    place = Place(foreign(shown))
    if why is not Stray.OUTSIDE:
        return RenderError("render.helm.file", f"`{foreign(shown)}` {why.value}", where=place)
    problem = f"`{foreign(shown)}` leads out of the source"
    hint = "keep charts, values and what they link to inside one source"
    return RenderError("render.helm.outside", problem, where=place, hint=hint)


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
        raise RenderError("render.helm.file", problem, where=Place(shown)) from None
    if len(content) > MAX_FILE:
        problem = f"`{shown}` is larger than {MAX_FILE // MIB} MiB"
        raise RenderError("render.helm.size", problem, where=Place(shown))
    return _decode(content, shown)


def _decode(content: bytes, shown: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        problem = f"`{shown}` is not UTF-8"
        raise RenderError("render.helm.file", problem, where=Place(shown)) from None


def check_chart(chart: Path, root: str) -> None:
    """Helm follows links and reads what it finds, so look at everything before it does."""
    _ChartWalk(Path(root).resolve()).check(str(chart), "", (str(chart),))


class _ChartWalk:
    """One way through a chart, with what has been counted so far.

    Paths are plain text here: a chart has many files, and this is done for every render.
    """

    def __init__(self, top: Path) -> None:
        self._top = top
        self._files = 0
        self._bytes = 0

    def check(self, directory: str, shown: str, above: tuple[str, ...]) -> None:
        with os.scandir(directory) as entries:
            for entry in entries:
                path, name = entry.path, f"{shown}{entry.name}"
                if entry.is_symlink():
                    path = self._follow(path, name, above)
                if entry.is_dir():
                    self.check(path, f"{name}/", (*above, path))
                elif entry.is_file():
                    self._count(entry.stat().st_size, name)
                else:
                    raise _irregular(name)

    def _follow(self, link: str, shown: str, above: tuple[str, ...]) -> str:
        target = inside(Path(link), self._top, shown=shown)
        if str(target) in above:
            problem = f"the link `{shown}` leads back to a directory above it"
            raise RenderError("render.helm.file", problem, where=Place(shown))
        if not target.exists():
            problem = f"the link `{shown}` leads nowhere"
            raise RenderError("render.helm.file", problem, where=Place(shown))
        return str(target)

    def _count(self, size: int, shown: str) -> None:
        self._files += 1
        self._bytes += size
        if self._files > MAX_FILES or self._bytes > MAX_CHART:
            problem = f"the chart has more than {MAX_FILES} files or {MAX_CHART // MIB} MiB"
            hint = "check that `chart` names the chart and not the whole repository"
            raise RenderError("render.helm.size", problem, where=Place(shown), hint=hint)


def _irregular(shown: str) -> RenderError:
    problem = f"`{shown}` is not a regular file"
    hint = "devices, pipes, sockets and directories are not read"
    return RenderError("render.helm.irregular", problem, where=Place(shown), hint=hint)
