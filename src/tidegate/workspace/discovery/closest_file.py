"""Lookup of a name in the file that is closest in the directory tree."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

Name = TypeVar("Name", bound=Hashable)


Value = TypeVar("Value")


class ClosestFileIndex(Generic[Name, Value]):
    """Values of files by name: that of the closest file counts, and in one file the last.

    The distance of two files is the number of directories between them; of two at the same distance
    the first by path counts. A lookup takes as many steps as its directory is deep, however many
    files there are.
    """

    def __init__(self) -> None:
        self._closest: dict[tuple[Name, str], tuple[int, str]] = {}
        self._values: dict[tuple[Name, str], Value] = {}

    def add(self, name: Name, file: str, value: Value) -> None:
        self._values[name, file] = value
        candidate = (file.count("/"), file)
        for folder in _parent_prefixes(file):
            best = self._closest.setdefault((name, folder), candidate)
            if candidate < best:
                self._closest[name, folder] = candidate

    def find(self, name: Name, from_file: str) -> tuple[tuple[int, str], Value] | None:
        """Return distance and name of the closest file, and its value; None without one."""
        candidates = [
            (depth + steps - 2 * folder.count("/"), file)
            for steps, folder in (
                (from_file.count("/"), prefix) for prefix in _parent_prefixes(from_file)
            )
            for depth, file in [self._closest.get((name, folder), (0, ""))]
            if file
        ]
        return (min(candidates), self._values[name, min(candidates)[1]]) if candidates else None


def _parent_prefixes(file: str) -> Iterator[str]:
    """Yield the directories of a file, each with its slash; the tree itself is empty."""
    at = file.rfind("/") + 1
    while at:
        yield file[:at]
        at = file.rfind("/", 0, at - 1) + 1
    yield ""
