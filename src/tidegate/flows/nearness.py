"""Display of file names of a tree, as the user can open them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tidegate.report.places import PathResolver, add_root


def register_display_root(root: Path) -> None:
    """Display files of this tree as paths that the user can open."""
    add_root(str(root), _display_finder(root))


def _display_finder(root: Path) -> PathResolver:
    current_directory = Path.cwd()

    @cache
    def find(name: str) -> str | None:
        """Return a path from the current directory on, else in full; None for no file."""
        try:
            file = root / name
            if not name or not (file.is_file() or file.is_dir()):
                return None
        except (OSError, ValueError):
            return None
        file = _resolve_dots(file)
        return str(
            file.relative_to(current_directory) if file.is_relative_to(current_directory) else file
        )

    return find


def _resolve_dots(file: Path) -> Path:
    """Return a path without `..`, which is resolved through links."""
    return file if ".." not in file.parts else file.resolve()
