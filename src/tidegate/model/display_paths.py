"""Display of file locations as paths that the user can open.

Internally, a path is relative to the root of its tree and equal on every machine. It is
displayed relative to the working directory, or as an absolute path.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from tidegate.errors import Location, TidegateError
from tidegate.model.text.lazy_regex import lazy_regex

PathResolver: TypeAlias = Callable[[str], str | None]
"""Returns a path of a tree as the user would write it; None if it is not a file of the tree."""


class DirectoryCopy(NamedTuple):
    """What a copied directory contains, and what the user calls the original."""

    original: str
    files: frozenset[str]


_FILE_WITH_LINE = lazy_regex(r"(?<![\w/.:-])(?P<name>[\w.@+][\w./@+-]*)(?=:\d)")
_RESOLVERS: dict[str, PathResolver] = {}
_COPIES: dict[str, DirectoryCopy] = {}
"""Directories that are copies of others."""


def add_root(root: str, resolve: PathResolver) -> None:
    """Register a tree for displaying paths; the newest has priority."""
    _RESOLVERS.setdefault(root, resolve)


def prefer_root(root: str) -> None:
    """Prefer a registered tree to the others."""
    if root in _RESOLVERS:
        _RESOLVERS[root] = _RESOLVERS.pop(root)


def add_copy(directory: str, copy: DirectoryCopy) -> None:
    """Display the files of a copied directory as those of the original, also when it is gone."""
    add_root(directory, lambda _: None)
    _COPIES[directory] = copy


def clear_roots() -> None:
    """Remove all trees, before the next command."""
    _RESOLVERS.clear()
    _COPIES.clear()


def display_path(name: str) -> str:
    """Return a path of a tree as the user would write it; other strings unchanged."""
    for root, resolve in reversed(_RESOLVERS.items()):
        path = _path_in_copy(f"{root}/{name}") or resolve(name)
        if path is not None:
            return path
    return _path_in_copy(name) or name


def _path_in_copy(path: str) -> str | None:
    """Return the path of a copied file in the original; None if it is no copied file."""
    for directory, copy in _COPIES.items():
        name = path.removeprefix(f"{directory}/")
        if name != path and name in copy.files:
            return posixpath.normpath(f"{copy.original}/{name}")
    return None


def display_location(location: Location) -> Location:
    return location.with_name(display_path(location.name))


def location_text(location: Location | str | None) -> str:
    """Return a location, or a location in text form, for display; empty for None."""
    if isinstance(location, str):
        name, line, field = _split_location(location)
        return f"{display_path(name)}{line}{field}"
    return str(display_location(location)) if location is not None else ""


def display_paths_in(message: str) -> str:
    """Return a message with its file names, recognized by a line number, for display."""
    return _FILE_WITH_LINE.sub(lambda match: display_path(match["name"]), message)


def display_error(error: TidegateError) -> TidegateError:
    """Return the error with file names for display."""
    location = display_location(error.location) if error.location else None
    problem, hint = display_paths_in(error.problem), display_paths_in(error.hint)
    return TidegateError(error.code, problem, location=location, hint=hint)


def _split_location(text: str) -> tuple[str, str, str]:
    name, separator, field = text.partition(" (")
    match = re.fullmatch(r"(?P<name>.+?)(?P<line>(?::\d+){0,2})", name)
    return (match["name"], match["line"], separator + field) if match else (text, "", "")
