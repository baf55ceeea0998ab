"""What goes by a name in several files of a tree: whose file is the nearest.

How far two files are apart is the number of directories between them; of two that are as far, the
first by path counts. A question costs as many steps as its directory is deep, however many files
there are.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

Name = TypeVar("Name", bound=Hashable)
Thing = TypeVar("Thing")


class Nearest(Generic[Name, Thing]):
    """Things of files by their names; of those with one name in one file the last counts."""

    def __init__(self) -> None:
        self._tops: dict[tuple[Name, str], tuple[int, str]] = {}
        self._things: dict[tuple[Name, str], Thing] = {}

    def add(self, name: Name, file: str, thing: Thing) -> None:
        self._things[name, file] = thing
        spot = (file.count("/"), file)
        for folder in _folders(file):
            known = self._tops.setdefault((name, folder), spot)
            if spot < known:
                self._tops[name, folder] = spot

    def find(self, name: Name, near: str) -> tuple[tuple[int, str], Thing] | None:
        """The thing of the nearest file, behind how far that is, and which."""
        found = [
            (depth + steps - 2 * folder.count("/"), file)
            for steps, folder in ((near.count("/"), one) for one in _folders(near))
            for depth, file in [self._tops.get((name, folder), (0, ""))]
            if file
        ]
        return (min(found), self._things[name, min(found)[1]]) if found else None


def _folders(file: str) -> Iterator[str]:
    """Those that a file lies in, each with its slash; the tree itself is empty."""
    at = file.rfind("/") + 1
    while at:
        yield file[:at]
        at = file.rfind("/", 0, at - 1) + 1
    yield ""
