"""What overlays name: the files and directories that they bring, and those that are their parts."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from tidegate.model.objects import Json
from tidegate.model.reading import listed

INCLUDES = ("resources", "bases", "components")
PARTS = (
    "patches",
    "patchesStrategicMerge",
    "patchesJson6902",
    "replacements",
    "transformers",
    "generators",
    "validators",
    "configurations",
    "crds",
    "configMapGenerator",
    "secretGenerator",
    "helmCharts",
)
"""What of a kustomization names files that are no objects by themselves."""


class Inclusions(msgspec.Struct, frozen=True):
    """By path, the directories of the overlays that bring it; and what they only use."""

    overlays: Mapping[str, list[str]]
    parts: frozenset[str]

    @classmethod
    def of(cls, kustomizations: Iterable[tuple[str, dict[str, Json]]]) -> Inclusions:
        """`kustomizations`: by directory, what the file there says."""
        overlays, parts = dict[str, list[str]](), set[str]()
        for folder, body in kustomizations:
            for key in INCLUDES:
                for path in _paths(folder, listed(body, key)):
                    overlays.setdefault(path, []).append(folder)
            parts |= {path for key in PARTS for path in _paths(folder, body.get(key))}
        return cls(overlays, frozenset(parts))

    def is_part(self, path: str) -> bool:
        """Whether overlays use it as a patch or the like, and none brings it."""
        return path in self.parts and path not in self.overlays

    def by(self, path: str) -> list[str]:
        """The overlays that name a file or a directory."""
        return self.overlays.get(path, [])

    def tops_of(self, path: str) -> list[str]:
        """The overlays that bring a file, and that no other overlay brings."""
        seen, tops, pending = set[str](), list[str](), [*self.by(path)]
        for one in pending:  # it grows meanwhile
            if one not in seen:
                seen.add(one)
                above = [each for each in self.by(one) if each not in seen]
                tops += [] if above else [one]
                pending += above
        return sorted(tops)


def _paths(folder: str, value: Json) -> Iterator[str]:
    """All texts in a value, read as paths from a directory on."""
    if isinstance(value, str) and "://" not in value and "\n" not in value:
        yield posixpath.normpath(posixpath.join(folder, value.rpartition("=")[2]))
    elif isinstance(value, list | dict):
        for one in value if isinstance(value, list) else value.values():
            yield from _paths(folder, one)
