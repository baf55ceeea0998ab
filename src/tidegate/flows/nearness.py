"""Where the user stands: how a file of a tree is told, so that it can be opened from there."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tidegate.report.places import Finder, add_tree


def stand_before(root: Path) -> None:
    """Tell files of this tree, and all others by their whole path, as the user can open them."""
    add_tree(str(root), _finder(root))


def _finder(root: Path) -> Finder:
    here = Path.cwd()

    @cache
    def find(name: str) -> str | None:
        """From here if it lies below, else in full."""
        try:
            file = root / name
            if not name or not (file.is_file() or file.is_dir()):
                return None
        except (OSError, ValueError):
            return None
        file = _plain(file)
        return str(file.relative_to(here) if file.is_relative_to(here) else file)

    return find


def _plain(file: Path) -> Path:
    """Without the dots of `a/./b`; `..` is for whoever follows links."""
    return file if ".." not in file.parts else file.resolve()
