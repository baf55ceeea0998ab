"""How lists and mappings of built-in kinds merge, where only the names of fields are known.

Places are told by a field's name and the name of the field it is in. What is merged one way in one
kind and another way in another is not known here: its owners tell.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from tidegate.schema.builtin import served_kinds, shape_of
from tidegate.schema.shape import Merge, Shape, Type

LEFT_OUT = frozenset({"CustomResourceDefinition", "ResourceSlice"})
"""Definitions hold schemas, whose names are anybody's, and slices are written by drivers."""


class Merging(NamedTuple):
    """By which fields the items of a list are told apart; whether it is a set; or in one piece."""

    keys: tuple[str, ...] = ()
    is_set: bool = False
    is_one_piece: bool = False


UNKNOWN = Merging()


def merging_of(parent: str, name: str) -> Merging:
    """How the field `name` of what stands in `parent` merges."""
    return _places().get((parent, name), UNKNOWN)


@cache
def _places() -> dict[tuple[str, str], Merging]:
    found: dict[tuple[str, str], Merging] = {}
    seen: set[tuple[str, str]] = set()
    for served in served_kinds():
        shape = shape_of(served.kind)
        if shape is not None and "create" in served.verbs and served.kind.name not in LEFT_OUT:
            _note_fields("", shape, found, seen)
    return found


def _note_fields(
    parent: str,
    shape: Shape,
    found: dict[tuple[str, str], Merging],
    seen: set[tuple[str, str]],
) -> None:
    """Note what is below a place that is not in one piece itself."""
    if (parent, shape.name) in seen:
        return
    seen.add((parent, shape.name))
    for name, asked in shape.fields.items():
        if name == "status":
            continue
        inner = asked()
        if inner.type in {Type.ARRAY, Type.OBJECT}:
            own = _read(inner)
            is_same = found.setdefault((parent, name), own) == own
            found[parent, name] = own if is_same else UNKNOWN
        if inner.merge is not Merge.ATOMIC:
            _note_fields(name, inner if inner.items is None else inner.items(), found, seen)


def _read(shape: Shape) -> Merging:
    if shape.type is Type.ARRAY:
        return Merging(shape.keys, is_set=shape.merge is Merge.SET)
    return Merging(is_one_piece=shape.merge is Merge.ATOMIC)
