"""What is in a value, and what a second value puts there and removes.

Values are taken as their shape says: a field of a field, an item by its keys, or as one piece.
What both values share by identity is not looked at, so a comparison costs what was touched.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from tidegate.model.objects import Json
from tidegate.sandbox.ownership.fields import (
    FIELD,
    LEAF,
    NOTHING,
    Element,
    Fields,
    item_element,
    node,
)
from tidegate.sandbox.ownership.layout import Layout, layout_of
from tidegate.schema.shape import Shape

Below: TypeAlias = dict[Element, Fields]
SCALARS = frozenset({str, int, bool, float})


class Comparison(msgspec.Struct, frozen=True, gc=False):
    """What was put there, be it new or another, and what was removed; both with all inside."""

    put: Fields = NOTHING
    removed: Fields = NOTHING

    def outside(self, fields: Fields) -> Comparison:
        """The comparison but for these places and what is below them."""
        if self is SAME or fields is NOTHING:
            return self
        return Comparison(self.put.outside(fields), self.removed.outside(fields))


SAME = Comparison()
ANOTHER = Comparison(put=LEAF)


def same(one: Json, other: Json) -> bool:
    """Whether two values are the same JSON. Python takes `true` for 1."""
    if one is other:
        return True
    if one != other:
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return all(same(value, other[name]) for name, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return all(map(same, one, other))
    return isinstance(one, bool) is isinstance(other, bool)


def is_one_piece(value: Json, layout: Layout) -> bool:
    """Whether a value is owned as one field. Empty and missing containers are looked at apart."""
    if layout.is_deduced:
        return value is not None and not isinstance(value, dict)
    return layout.is_atomic


def read_intent(value: Json, shape: Shape) -> tuple[Fields, bool]:
    """The fields of an intent, and whether all of it fits its shape."""
    odd: list[str] = []
    fields = _fields(value, layout_of(shape), odd)
    return fields, not odd


def _fields(value: Json, layout: Layout, odd: list[str]) -> Fields:
    if type(value) not in layout.accepted:
        odd.append("")
    if is_one_piece(value, layout):
        _look_into(value, layout, odd)
        return LEAF
    if isinstance(value, dict):
        return node(False, _named_fields(value, layout, odd))
    if isinstance(value, list):
        return node(False, _item_fields(value, layout, odd))
    return NOTHING


def _look_into(value: Json, layout: Layout, odd: list[str]) -> None:
    """What is owned as one piece must fit its shape all the same."""
    if isinstance(value, dict):
        for name, inner in value.items():
            _fields(inner, layout.children[name], odd)
    elif isinstance(value, list) and layout.shape.items is not None:
        items = layout.items
        for item in value:
            _fields(item, items, odd)


def _named_fields(value: dict[str, Json], layout: Layout, odd: list[str]) -> Below:
    below: Below = {}
    children, named = layout.children, layout.shape.fields
    for name, inner in value.items():
        place = children[name]
        if type(inner) in SCALARS:
            below[FIELD + name] = LEAF
            if type(inner) not in place.accepted:
                odd.append(name)
            continue
        found = _fields(inner, place, odd)
        if not found.own and (inner is None or inner == {} or name not in named):
            found = node(True, found.below)
        if found is not NOTHING:
            below[FIELD + name] = found
    return below


def _item_fields(value: list[Json], layout: Layout, odd: list[str]) -> Below:
    below: Below = {}
    items = layout.items
    for item in value:
        element = item_element(item, layout)
        if element is None:
            odd.append("")
        elif element in below:
            odd.append(element)
            below[element] = LEAF
        else:
            below[element] = node(True, _fields(item, items, odd).below)
    return below


def by_element(value: Json, layout: Layout) -> dict[Element, list[Json]]:
    """The items of a list by what tells them apart; live lists may have more than one of each."""
    found: dict[Element, list[Json]] = {}
    for item in value if isinstance(value, list) else ():
        element = item_element(item, layout)
        if element is not None:
            found.setdefault(element, []).append(item)
    return found


def whole(value: Json, layout: Layout) -> Fields:
    """A value with everything in it, containers too: what is added or removed with it."""
    if not value or is_one_piece(value, layout):
        return LEAF
    if isinstance(value, dict):
        children = layout.children
        return Fields(
            True,
            {
                FIELD + name: LEAF if type(inner) in SCALARS else whole(inner, children[name])
                for name, inner in value.items()
            },
        )
    items = layout.items
    return node(
        True,
        {
            element: whole(found[0], items) if len(found) == 1 else LEAF
            for element, found in by_element(value, layout).items()
        },
    )


def compare(before: Json, after: Json, shape: Shape) -> Comparison:
    """What became of a value."""
    return _compare(before, after, layout_of(shape))


def _compare(before: Json, after: Json, layout: Layout) -> Comparison:
    if before is after:
        return SAME
    if is_one_piece(before, layout) or is_one_piece(after, layout):
        return _compare_pieces(before, after, layout)
    if not before and not after:
        return SAME if same(before, after) else ANOTHER
    if layout.is_list:
        return _compare_items(before, after, layout)
    return _compare_fields(_map(before), _map(after), layout)


def _compare_pieces(before: Json, after: Json, layout: Layout) -> Comparison:
    """Values of one piece; where a map became one or was one, its fields go or come as well."""
    if same(before, after):
        return SAME
    if layout.is_atomic:
        return ANOTHER
    inner = _compare_fields(_map(before), _map(after), layout)
    return Comparison(node(True, inner.put.below), inner.removed)


def _map(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def _compare_fields(before: dict[str, Json], after: dict[str, Json], layout: Layout) -> Comparison:
    found = _Found()
    for name, old in before.items():
        if name not in after:
            found.removed[FIELD + name] = whole(old, layout.children[name])
            continue
        new = after[name]
        if old is not new and not (type(old) is type(new) and type(old) in SCALARS and old == new):
            found.add(FIELD + name, _compare(old, new, layout.children[name]))
    for name, new in after.items():
        if name not in before:
            found.put[FIELD + name] = whole(new, layout.children[name])
    return found.comparison()


def _compare_items(before: Json, after: Json, layout: Layout) -> Comparison:
    found = _Found()
    old, new = by_element(before, layout), by_element(after, layout)
    items = layout.items
    for element in {**old, **new}:
        ours, theirs = old.get(element, []), new.get(element, [])
        if len(ours) <= 1 and len(theirs) <= 1:
            _compare_item(element, ours, theirs, found, items)
        elif len(ours) > 1 and len(theirs) > 1:
            if not same([*ours], [*theirs]):
                found.put[element] = LEAF
        else:
            _compare_repeated(element, ours, theirs, found, items)
    return found.comparison()


def _compare_item(
    element: Element, old: list[Json], new: list[Json], found: _Found, layout: Layout
) -> None:
    if old and new:
        found.add(element, _compare(old[0], new[0], layout))
    elif new:
        found.put[element] = whole(new[0], layout)
    else:
        found.removed[element] = whole(old[0], layout)


def _compare_repeated(
    element: Element, old: list[Json], new: list[Json], found: _Found, layout: Layout
) -> None:
    """Items that cannot be told apart are one piece; one of them alone is looked into."""
    if len(old) > 1:
        found.removed[element] = LEAF
        if new:
            found.put[element] = whole(new[0], layout)
    else:
        found.put[element] = LEAF
        if old:
            found.removed[element] = whole(old[0], layout)


class _Found:
    """A comparison in the making."""

    __slots__ = ("put", "removed")

    def __init__(self) -> None:
        self.put: Below = {}
        self.removed: Below = {}

    def add(self, element: Element, inner: Comparison) -> None:
        if inner.put is not NOTHING:
            self.put[element] = inner.put
        if inner.removed is not NOTHING:
            self.removed[element] = inner.removed

    def comparison(self) -> Comparison:
        if not (self.put or self.removed):
            return SAME
        return Comparison(node(False, self.put), node(False, self.removed))
