"""Fields that are no difference, as Argo CD's `ignoreDifferences` names them."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import TypeAlias

import msgspec

from tidegate.model.objects import Json, Ref

Path: TypeAlias = tuple[str | int, ...]
Paths: TypeAlias = tuple[Path, ...]
FindPaths: TypeAlias = Callable[[tuple[str, ...], tuple[dict[str, Json], ...]], tuple[Paths, ...]]
"""Where expressions lead in each of some objects: the places where something stands."""


class Ignored(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which objects, and which fields of them.

    `group` and `kind` are patterns; an empty name or namespace is any. `pointers` are JSON
    pointers, `expressions` are jq's. What one of the `managers` owns is ignored, too.
    """

    kind: str
    group: str = ""
    name: str = ""
    namespace: str = ""
    pointers: tuple[str, ...] = ()
    expressions: tuple[str, ...] = ()
    managers: tuple[str, ...] = ()

    def fits(self, ref: Ref) -> bool:
        """Whether an object is meant, in whichever version of its kind."""
        return (
            fnmatchcase(ref.kind.group, self.group)
            and fnmatchcase(ref.kind.name, self.kind)
            and self.name in {"", ref.name}
            and self.namespace in {"", ref.namespace}
        )
