"""What is in a value, and what a second value adds, changes and removes.

Values are taken as their shape says: a field of a field, an item by its keys, or as one piece.
What both values share by identity is not looked at, so a comparison costs what was touched.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from tidegate.model.objects import Json
from tidegate.sandbox.api.elements import FIELD, Element, item_element
from tidegate.sandbox.api.fields import LEAF, NOTHING, Fields, node
from tidegate.sandbox.api.shape import DEDUCED, Merge, Shape, Type, child

Below: TypeAlias = dict[Element, Fields]


class Comparison(NamedTuple):
    """No place is in two of these."""

    added: Fields = NOTHING
    modified: Fields = NOTHING
    removed: Fields = NOTHING

    def outside(self, fields: Fields) -> Comparison:
        """The comparison but for these places and what is below them."""
        return Comparison(
            self.added.outside(fields), self.modified.outside(fields), self.removed.outside(fields)
        )


SAME = Comparison()
MODIFIED = Comparison(modified=LEAF)


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


def shape_below(shape: Shape, name: str) -> Shape:
    return child(shape, name) or DEDUCED


def items_shape(shape: Shape) -> Shape:
    return shape.items() if shape.items is not None else DEDUCED


def is_one_piece(value: Json, shape: Shape) -> bool:
    """Whether a value is owned as one field. Empty and missing containers are looked at apart."""
    match shape.merge:
        case Merge.ATOMIC:
            return True
        case Merge.FIELDS:
            return shape.type is Type.ANY and value is not None and not isinstance(value, dict)
        case Merge.KEYED | Merge.SET:
            return False


def fields_of(value: Json, shape: Shape) -> Fields:
    """What an applier says by naming a value: its leaves, items and free names."""
    if is_one_piece(value, shape):
        return LEAF
    if isinstance(value, dict):
        return node(False, dict(_named_fields(value, shape)))
    if isinstance(value, list):
        return node(False, _item_fields(value, shape))
    return NOTHING


def _named_fields(value: dict[str, Json], shape: Shape) -> Iterator[tuple[Element, Fields]]:
    for name, inner in value.items():
        found = fields_of(inner, shape_below(shape, name))
        if not found.own and (inner is None or inner == {} or name not in shape.fields):
            found = node(True, found.below)
        if found is not NOTHING:
            yield FIELD + name, found


def _item_fields(value: list[Json], shape: Shape) -> Below:
    below: Below = {}
    inner = items_shape(shape)
    for element, items in by_element(value, shape).items():
        is_single = len(items) == 1
        below[element] = node(True, fields_of(items[0], inner).below) if is_single else LEAF
    return below


def by_element(value: Json, shape: Shape) -> dict[Element, list[Json]]:
    """The items of a list by what tells them apart; live lists may have more than one of each."""
    found: dict[Element, list[Json]] = {}
    for item in value if isinstance(value, list) else ():
        element = item_element(item, shape)
        if element is not None:
            found.setdefault(element, []).append(item)
    return found


def whole(value: Json, shape: Shape) -> Fields:
    """A value with everything in it, containers too: what is added or removed with it."""
    if not value or is_one_piece(value, shape):
        return LEAF
    if isinstance(value, dict):
        return Fields(
            True,
            {FIELD + name: whole(inner, shape_below(shape, name)) for name, inner in value.items()},
        )
    inner_shape = items_shape(shape)
    return node(
        True,
        {
            element: whole(items[0], inner_shape) if len(items) == 1 else LEAF
            for element, items in by_element(value, shape).items()
        },
    )


def compare(before: Json, after: Json, shape: Shape) -> Comparison:
    """What became of a value."""
    if before is after:
        return SAME
    if is_one_piece(before, shape) or is_one_piece(after, shape):
        return _pieces(before, after, shape)
    if not before and not after:
        return SAME if same(before, after) else MODIFIED
    if shape.merge is Merge.FIELDS:
        return _compare_fields(_map(before), _map(after), shape)
    return _compare_items(before, after, shape)


def _pieces(before: Json, after: Json, shape: Shape) -> Comparison:
    """Values of one piece; where a map became one or was one, its fields go or come as well."""
    if same(before, after):
        return SAME
    if shape.merge is Merge.ATOMIC:
        return MODIFIED
    inner = _compare_fields(_map(before), _map(after), shape)
    return Comparison(inner.added, LEAF, inner.removed)


def _map(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def _compare_fields(before: dict[str, Json], after: dict[str, Json], shape: Shape) -> Comparison:
    found = _Found()
    for name, old in before.items():
        if name not in after:
            found.removed[FIELD + name] = whole(old, shape_below(shape, name))
            continue
        new = after[name]
        if old is not new:
            found.put(FIELD + name, compare(old, new, shape_below(shape, name)))
    for name, new in after.items():
        if name not in before:
            found.added[FIELD + name] = whole(new, shape_below(shape, name))
    return found.comparison()


def _compare_items(before: Json, after: Json, shape: Shape) -> Comparison:
    found = _Found()
    old, new = by_element(before, shape), by_element(after, shape)
    for element in {**old, **new}:
        ours, theirs = old.get(element, []), new.get(element, [])
        if len(ours) <= 1 and len(theirs) <= 1:
            _compare_item(element, ours, theirs, found, items_shape(shape))
        elif len(ours) > 1 and len(theirs) > 1:
            if not same([*ours], [*theirs]):
                found.modified[element] = LEAF
        else:
            _compare_repeated(element, ours, theirs, found, items_shape(shape))
    return found.comparison()


def _compare_item(
    element: Element, old: list[Json], new: list[Json], found: _Found, shape: Shape
) -> None:
    if old and new:
        found.put(element, compare(old[0], new[0], shape))
    elif new:
        found.added[element] = whole(new[0], shape)
    else:
        found.removed[element] = whole(old[0], shape)


def _compare_repeated(
    element: Element, old: list[Json], new: list[Json], found: _Found, shape: Shape
) -> None:
    """Items that cannot be told apart are one piece; one of them alone is looked into."""
    if len(old) > 1:
        found.removed[element] = LEAF
        if new:
            found.added[element] = whole(new[0], shape)
    else:
        found.added[element] = LEAF
        if old:
            found.removed[element] = whole(old[0], shape)


class _Found:
    """A comparison in the making."""

    __slots__ = ("added", "modified", "removed")

    def __init__(self) -> None:
        self.added: Below = {}
        self.modified: Below = {}
        self.removed: Below = {}

    def put(self, element: Element, inner: Comparison) -> None:
        added, modified, removed = inner
        if added is not NOTHING:
            self.added[element] = added
        if modified is not NOTHING:
            self.modified[element] = modified
        if removed is not NOTHING:
            self.removed[element] = removed

    def comparison(self) -> Comparison:
        if not (self.added or self.modified or self.removed):
            return SAME
        return Comparison(
            node(False, self.added), node(False, self.modified), node(False, self.removed)
        )
