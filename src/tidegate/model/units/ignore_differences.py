"""Fields that are ignored in comparisons, as in Argo CD's `ignoreDifferences`."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import TypeAlias

import msgspec

from tidegate.model.k8s.objects import Json, Ref

DifferencePath: TypeAlias = tuple[str | int, ...]
DifferencePaths: TypeAlias = tuple[DifferencePath, ...]
DifferencePathFinder: TypeAlias = Callable[
    [tuple[str, ...], tuple[dict[str, Json], ...]], tuple[DifferencePaths, ...]
]
"""A function that evaluates jq expressions on objects and returns the existing paths per object."""


class IgnoreDifference(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An `ignoreDifferences` entry: a selection of objects and of their fields."""

    kind: str
    """A pattern for the kind."""
    group: str = ""
    """A pattern for the API group."""
    name: str = ""
    """The name. Empty for any."""
    namespace: str = ""
    """The namespace. Empty for any."""
    pointers: tuple[str, ...] = ()
    """JSON pointers of ignored fields."""
    expressions: tuple[str, ...] = ()
    """jq expressions of ignored fields."""
    managers: tuple[str, ...] = ()
    """Field managers whose fields are ignored."""

    def matches(self, ref: Ref) -> bool:
        """Return whether the entry selects an object, in any version of its kind."""
        return (
            fnmatchcase(ref.kind.group, self.group)
            and fnmatchcase(ref.kind.name, self.kind)
            and self.name in {"", ref.name}
            and self.namespace in {"", ref.namespace}
        )
