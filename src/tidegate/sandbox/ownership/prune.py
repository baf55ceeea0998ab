"""Take out of a merged value what its applier named last time and nobody names now.

A place that is dropped goes with all that is below it, so an updater's change below a dropped item
goes too. A place that somebody else names stays, and so does what nobody ever named below it: a
default. One walk, along what was dropped.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple, TypeAlias

from tidegate.model.objects import Json
from tidegate.sandbox.ownership.compare import is_one_piece
from tidegate.sandbox.ownership.elements import FIELD, Element, item_element
from tidegate.sandbox.ownership.fields import NOTHING, Fields
from tidegate.sandbox.ownership.layout import Layout, layout_of
from tidegate.schema.shape import Shape

Nodes: TypeAlias = tuple[Fields, ...]


class _Zone(Enum):
    """What is above a place."""

    OPEN = auto()
    """Nothing that was named last time."""
    NAMED = auto()
    """A place that was named last time, and is named still."""
    LOST = auto()
    """Such a place, and one below it that nobody names: what was named below that one goes."""


class _Gone(Enum):
    GONE = auto()


class _Spot(NamedTuple):
    """What the sets say of one place."""

    last: Fields
    dropped: Fields
    now: Nodes
    zone: _Zone

    def below(self, element: Element) -> _Spot:
        dropped = self.last if self.zone is _Zone.LOST else self.dropped
        return _Spot(
            self.last.below.get(element, NOTHING),
            dropped.below.get(element, NOTHING),
            tuple(node.below[element] for node in self.now if element in node.below),
            self.zone,
        )


def pruned(merged: Json, last: Fields, now: Nodes, shape: Shape) -> Json:
    """The merged value without what only `last` names.

    `now` are all sets that count now, the first that of the intent. A container that has nothing
    left is null, as on servers.
    """
    return _walk(merged, _Spot(last, last - now[0], now, _Zone.OPEN), layout_of(shape))


def _walk(value: Json, spot: _Spot, layout: Layout) -> Json:
    if not value or is_one_piece(value, layout):
        return value
    if isinstance(value, dict):
        return _walk_fields(value, spot, layout)
    if isinstance(value, list):
        return _walk_items(value, spot, layout)
    return value


def _walk_fields(value: dict[str, Json], spot: _Spot, layout: Layout) -> Json:
    left: dict[str, Json] | None = None
    walked = spot.last if spot.zone is _Zone.LOST else spot.dropped
    for element in walked.below:
        name = element.removeprefix(FIELD)
        if name not in value:
            continue
        there = value[name]
        is_named = name in layout.shape.fields
        fate = _fate(there, spot.below(element), layout.children[name], is_named=is_named)
        if fate is not there:
            left = dict(value) if left is None else left
            if fate is _Gone.GONE:
                del left[name]
            else:
                left[name] = fate
    return value if left is None else left or None


def _walk_items(value: list[Json], spot: _Spot, layout: Layout) -> Json:
    left: list[Json] = []
    is_same = True
    items = layout.items
    for item in value:
        fate = _fate(item, spot.below(item_element(item, layout) or ""), items, is_named=False)
        is_same = is_same and fate is item
        if fate is not _Gone.GONE:
            left.append(fate)
    return value if is_same else left or None


def _fate(value: Json, spot: _Spot, layout: Layout, *, is_named: bool) -> Json | _Gone:
    """What becomes of a value. Named fields are in a set as soon as something below them is."""
    if spot.dropped is NOTHING:
        return value
    is_wanted = any(node.own or is_named for node in spot.now)
    zone = spot.zone
    if spot.last.own or is_named:
        if not _is_told(value, layout):
            return value
        if zone is _Zone.LOST or not is_wanted:
            return _Gone.GONE
        zone = _Zone.NAMED
    elif zone is _Zone.NAMED and not is_wanted:
        zone = _Zone.LOST
    return _walk(value, spot._replace(zone=zone), layout)


def _is_told(value: Json, layout: Layout) -> bool:
    """Whether a set can have this value at all: it cannot have an empty list of items."""
    if is_one_piece(value, layout):
        return True
    if isinstance(value, list):
        return bool(value)
    if isinstance(value, dict) and value:
        return any(
            name not in layout.shape.fields or _is_told(inner, layout.children[name])
            for name, inner in value.items()
        )
    return True
