"""What is in a value, and what a second value adds, changes and removes.

Values are taken as their shape says: a field of a field, an item by its keys, or as one piece.
What both values share by identity is not looked at, so a comparison costs what was touched.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from tidegate.model.objects import Json
from tidegate.sandbox.api.elements import FIELD, Element, item_element
from tidegate.sandbox.api.fields import LEAF, NOTHING, Fields, node
from tidegate.sandbox.api.plan import Plan, plan_of
from tidegate.sandbox.api.shape import Shape

Below: TypeAlias = dict[Element, Fields]
SCALARS = frozenset({str, int, bool, float})


class Comparison(NamedTuple):
    """What was added, changed and removed, containers with what is in them."""

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


def is_one_piece(value: Json, plan: Plan) -> bool:
    """Whether a value is owned as one field. Empty and missing containers are looked at apart."""
    if plan.is_deduced:
        return value is not None and not isinstance(value, dict)
    return plan.is_atomic


def fields_of(value: Json, shape: Shape) -> Fields:
    """What an applier says by naming a value: its leaves, items and free names."""
    return read_intent(value, shape)[0]


def read_intent(value: Json, shape: Shape) -> tuple[Fields, bool]:
    """The fields of an intent, and whether all of it fits its shape."""
    odd: list[str] = []
    fields = _fields(value, plan_of(shape), odd)
    return fields, not odd


def _fields(value: Json, plan: Plan, odd: list[str]) -> Fields:
    if type(value) not in plan.accepted:
        odd.append("")
    if is_one_piece(value, plan):
        _look_into(value, plan, odd)
        return LEAF
    if isinstance(value, dict):
        return node(False, _named_fields(value, plan, odd))
    if isinstance(value, list):
        return node(False, _item_fields(value, plan, odd))
    return NOTHING


def _look_into(value: Json, plan: Plan, odd: list[str]) -> None:
    """What is owned as one piece must fit its shape all the same."""
    if isinstance(value, dict):
        for name, inner in value.items():
            _fields(inner, plan.children[name], odd)
    elif isinstance(value, list) and plan.shape.items is not None:
        items = plan.items
        for item in value:
            _fields(item, items, odd)


def _named_fields(value: dict[str, Json], plan: Plan, odd: list[str]) -> Below:
    below: Below = {}
    children, named = plan.children, plan.shape.fields
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


def _item_fields(value: list[Json], plan: Plan, odd: list[str]) -> Below:
    below: Below = {}
    items = plan.items
    for item in value:
        element = item_element(item, plan)
        if element is None:
            odd.append("")
        elif element in below:
            odd.append(element)
            below[element] = LEAF
        else:
            below[element] = node(True, _fields(item, items, odd).below)
    return below


def by_element(value: Json, plan: Plan) -> dict[Element, list[Json]]:
    """The items of a list by what tells them apart; live lists may have more than one of each."""
    found: dict[Element, list[Json]] = {}
    for item in value if isinstance(value, list) else ():
        element = item_element(item, plan)
        if element is not None:
            found.setdefault(element, []).append(item)
    return found


def whole(value: Json, shape: Shape) -> Fields:
    """A value with everything in it, containers too: what is added or removed with it."""
    return _whole(value, plan_of(shape))


def _whole(value: Json, plan: Plan) -> Fields:
    if not value or is_one_piece(value, plan):
        return LEAF
    if isinstance(value, dict):
        children = plan.children
        return Fields(
            True, {FIELD + name: _whole(inner, children[name]) for name, inner in value.items()}
        )
    items = plan.items
    return node(
        True,
        {
            element: _whole(found[0], items) if len(found) == 1 else LEAF
            for element, found in by_element(value, plan).items()
        },
    )


def compare(before: Json, after: Json, shape: Shape) -> Comparison:
    """What became of a value."""
    return _compare(before, after, plan_of(shape))


def _compare(before: Json, after: Json, plan: Plan) -> Comparison:
    if before is after:
        return SAME
    if is_one_piece(before, plan) or is_one_piece(after, plan):
        return _compare_pieces(before, after, plan)
    if not before and not after:
        return SAME if same(before, after) else MODIFIED
    if plan.is_list:
        return _compare_items(before, after, plan)
    return _compare_fields(_map(before), _map(after), plan)


def _compare_pieces(before: Json, after: Json, plan: Plan) -> Comparison:
    """Values of one piece; where a map became one or was one, its fields go or come as well."""
    if same(before, after):
        return SAME
    if plan.is_atomic:
        return MODIFIED
    inner = _compare_fields(_map(before), _map(after), plan)
    return Comparison(inner.added, LEAF, inner.removed)


def _map(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def _compare_fields(before: dict[str, Json], after: dict[str, Json], plan: Plan) -> Comparison:
    found = _Found()
    for name, old in before.items():
        if name not in after:
            found.removed[FIELD + name] = _whole(old, plan.children[name])
            continue
        new = after[name]
        if old is not new and not (type(old) is type(new) and type(old) in SCALARS and old == new):
            found.put(FIELD + name, _compare(old, new, plan.children[name]))
    for name, new in after.items():
        if name not in before:
            found.added[FIELD + name] = _whole(new, plan.children[name])
    return found.comparison()


def _compare_items(before: Json, after: Json, plan: Plan) -> Comparison:
    found = _Found()
    old, new = by_element(before, plan), by_element(after, plan)
    items = plan.items
    for element in {**old, **new}:
        ours, theirs = old.get(element, []), new.get(element, [])
        if len(ours) <= 1 and len(theirs) <= 1:
            _compare_item(element, ours, theirs, found, items)
        elif len(ours) > 1 and len(theirs) > 1:
            if not same([*ours], [*theirs]):
                found.modified[element] = LEAF
        else:
            _compare_repeated(element, ours, theirs, found, items)
    return found.comparison()


def _compare_item(
    element: Element, old: list[Json], new: list[Json], found: _Found, plan: Plan
) -> None:
    if old and new:
        found.put(element, _compare(old[0], new[0], plan))
    elif new:
        found.added[element] = _whole(new[0], plan)
    else:
        found.removed[element] = _whole(old[0], plan)


def _compare_repeated(
    element: Element, old: list[Json], new: list[Json], found: _Found, plan: Plan
) -> None:
    """Items that cannot be told apart are one piece; one of them alone is looked into."""
    if len(old) > 1:
        found.removed[element] = LEAF
        if new:
            found.added[element] = _whole(new[0], plan)
    else:
        found.added[element] = LEAF
        if old:
            found.removed[element] = _whole(old[0], plan)


class _Found:
    """A comparison in the making."""

    __slots__ = ("added", "modified", "removed")

    def __init__(self) -> None:
        self.added: Below = {}
        self.modified: Below = {}
        self.removed: Below = {}

    def put(self, element: Element, inner: Comparison) -> None:
        if inner is SAME:
            return
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
