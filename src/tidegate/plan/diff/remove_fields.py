"""Removal of fields from an object by path: from its body, and from its managed fields.

All paths are collected first, so that indexes stay valid after the first removal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

import msgspec

from tidegate.model.k8s.objects import Json
from tidegate.model.units.ignore_differences import DifferencePath
from tidegate.plan.diff.owned_fields import (
    SELF,
    Fields,
    is_scalar,
    key_values,
    parse_key,
    parse_value,
)

PathStep = TypeVar("PathStep", str, int)


class RemovedFields(msgspec.Struct):
    """Tree of the fields to remove below a value."""

    is_removed: bool = False
    """Whether the whole value is removed."""
    children: dict[str | int, RemovedFields] = msgspec.field(default_factory=dict)

    @classmethod
    def from_paths(cls, paths: Iterable[DifferencePath]) -> RemovedFields:
        root = cls()
        for path in paths:
            node = root
            for step in path:
                node = node.children.setdefault(step, cls())
            node.is_removed = True
        return root


def strip_fields(value: Json, removed: RemovedFields, *, drop_empty: bool = False) -> Json:
    """Return a value without the removed fields. `drop_empty`: also without values that become
    empty.
    """
    if isinstance(value, dict):
        return dict(_strip_parts(value.items(), removed, drop_empty=drop_empty))
    if isinstance(value, list):
        return [
            inner for _, inner in _strip_parts(enumerate(value), removed, drop_empty=drop_empty)
        ]
    return value


def _strip_parts(
    parts: Iterable[tuple[PathStep, Json]], removed: RemovedFields, *, drop_empty: bool
) -> Iterator[tuple[PathStep, Json]]:
    for step, inner in parts:
        child = removed.children.get(step)
        if child is None:
            yield step, inner
        elif not child.is_removed:
            remaining = strip_fields(inner, child, drop_empty=drop_empty)
            if remaining or not inner or not drop_empty:
                yield step, remaining


def strip_managed_fields(fields: Fields, value: Json, removed: RemovedFields) -> Fields:
    """Return the managed fields of a value without removed fields and empty parents."""
    remaining: Fields = {}
    for element, inner in fields.items():
        step = find_step(element, value)
        child = None if step is None else removed.children.get(step)
        if child is None:
            remaining[element] = inner
        elif not child.is_removed:
            remaining_inner = strip_managed_fields(inner, _child_value(value, step), child)
            if not inner or not remaining_inner.keys() <= {SELF}:
                remaining[element] = remaining_inner
    return remaining


def managed_paths(
    fields: Fields, value: Json, path: DifferencePath = ()
) -> Iterator[DifferencePath]:
    """Yield the paths of managed fields in a value."""
    for element, inner in fields.items():
        step = find_step(element, value)
        if step is None:
            continue
        if inner.keys() - {SELF}:
            yield from managed_paths(inner, _child_value(value, step), (*path, step))
        elif not inner:
            yield (*path, step)


def find_step(element: str, value: Json) -> str | int | None:
    """Return the field or the list index of an element of managed fields, or None."""
    if isinstance(value, dict):
        name = element[2:]
        return name if element.startswith("f:") and name in value else None
    if not isinstance(value, list) or element == SELF:
        return None
    match element[0]:
        case "k":
            names, values = parse_key(element)
            return _first_index(
                isinstance(item, dict) and key_values(item, names) == values for item in value
            )
        case "v":
            set_value = parse_value(element)
            return _first_index(is_scalar(item) and item == set_value for item in value)
        case _:
            return int(element[2:])


def _first_index(matches: Iterable[bool]) -> int | None:
    """Return the index of the first match, or None."""
    return next((index for index, is_match in enumerate(matches) if is_match), None)


def _child_value(value: Json, step: str | int | None) -> Json:
    if isinstance(value, dict) and isinstance(step, str):
        return value.get(step)
    if isinstance(value, list) and isinstance(step, int) and step < len(value):
        return value[step]
    return None
