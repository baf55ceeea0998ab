"""How far a path reaches: the tree that its files may be read from."""

from __future__ import annotations

from collections.abc import Iterator
from os.path import commonpath
from pathlib import Path

from tidegate.documents import read
from tidegate.errors import DocumentError, Place, WordsError
from tidegate.files import IrregularFileError, read_whole
from tidegate.model.objects import Json
from tidegate.render.kustomize.tree import KUSTOMIZATION_NAMES

FOLLOWED = (
    *("resources", "bases", "components", "crds", "configurations"),
    *("generators", "transformers", "validators", "patchesStrategicMerge"),
)
"""What of a kustomization names other files and directories."""


def root_of(path: Path, bound: str | None = None) -> Path:
    """The tree of a directory: overlays and charts may reach that far, and no farther.

    It is the `bound` that a user gives, else the repository; outside of Git the outermost directory
    that the overlay names, unless that is a whole home or disk.
    """
    if bound:
        return _within(path, Path(bound).resolve())
    repository = next((one for one in (path, *path.parents) if (one / ".git").exists()), None)
    if repository is not None:
        return repository
    reached = Path(commonpath([path, *_reached(path)]))
    return path if reached in {Path.home(), Path(reached.anchor)} else reached


def _within(path: Path, root: Path) -> Path:
    if not path.is_relative_to(root):
        problem = f"`{path}` is not inside `{root}`, which is to be its root"
        raise WordsError("words.root", problem, where=Place(str(path)), hint="give another --root")
    return root


def _reached(path: Path) -> set[Path]:
    """The directories that an overlay names, and those that these name."""
    found: set[Path] = set()
    pending = [path]
    while pending:
        folder = pending.pop()
        for name in _named(folder):
            place = (folder / name).resolve()
            home = place if place.is_dir() else place.parent
            if home not in found and place.exists():
                found.add(home)
                pending += [place] if place.is_dir() else []
    return found


def _named(folder: Path) -> Iterator[str]:
    for file in (folder / name for name in KUSTOMIZATION_NAMES):
        try:
            documents = read(read_whole(file), file.name) if file.is_file() else ()
        except (OSError, IrregularFileError, DocumentError, ValueError):
            documents = ()  # whoever builds it says so
        for document in documents:
            for key in FOLLOWED:
                yield from _texts(document.body.get(key))


def _texts(part: Json) -> list[str]:
    return [one for one in part if isinstance(one, str)] if isinstance(part, list) else []
