"""Files and directories that overlays include, and those that they only use."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from tidegate.model.k8s.json_fields import get_list
from tidegate.model.k8s.objects import Json

INCLUDE_KEYS = ("resources", "bases", "components")
INPUT_KEYS = (
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
"""Keys of a kustomization that refer to files without objects."""


class OverlayIndex(msgspec.Struct, frozen=True):
    """Index of the paths that overlays include or use."""

    overlays: Mapping[str, list[str]]
    """By path, the directories of the overlays that include it."""
    inputs: frozenset[str]
    """Paths of patches and other files that overlays use."""

    @classmethod
    def from_kustomizations(
        cls, kustomizations: Iterable[tuple[str, dict[str, Json]]]
    ) -> OverlayIndex:
        """Return the index of the kustomizations of these directories."""
        overlays, inputs = dict[str, list[str]](), set[str]()
        for folder, body in kustomizations:
            for key in INCLUDE_KEYS:
                for path in _paths(folder, get_list(body, key)):
                    overlays.setdefault(path, []).append(folder)
            inputs |= {path for key in INPUT_KEYS for path in _paths(folder, body.get(key))}
        return cls(overlays, frozenset(inputs))

    def is_input(self, path: str) -> bool:
        """Return whether overlays use the path as a patch or the like, and none includes it."""
        return path in self.inputs and path not in self.overlays

    def uses(self, path: str) -> bool:
        """Return whether an overlay includes a path, or uses it as a patch or the like."""
        return path in self.inputs or path in self.overlays

    def including(self, path: str) -> list[str]:
        """Return the overlays that include a file or a directory."""
        return self.overlays.get(path, [])

    def all_including(self, path: str) -> set[str]:
        """Return the overlays that include a file or directory, and those that include them."""
        seen, pending = set[str](), [*self.including(path)]
        for overlay in pending:  # the list grows during the loop
            if overlay not in seen:
                seen.add(overlay)
                pending += self.including(overlay)
        return seen

    def topmost_including(self, path: str) -> list[str]:
        """Return the overlays that include a file, and that no other overlay includes."""
        seen, topmost, pending = set[str](), list[str](), [*self.including(path)]
        for overlay in pending:  # the list grows during the loop
            if overlay not in seen:
                seen.add(overlay)
                parents = [parent for parent in self.including(overlay) if parent not in seen]
                topmost += [] if parents else [overlay]
                pending += parents
        return sorted(topmost)


def _paths(folder: str, value: Json) -> Iterator[str]:
    """Yield all strings of a value, as paths from a directory on."""
    if isinstance(value, str) and "://" not in value and "\n" not in value:
        yield posixpath.normpath(posixpath.join(folder, value.rpartition("=")[2]))
    elif isinstance(value, list | dict):
        for item in value if isinstance(value, list) else value.values():
            yield from _paths(folder, item)
