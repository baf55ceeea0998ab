"""Field sets of values, and comparison of two values.

Values are read by their schema: as fields, as items with keys, or as atomic values. Parts that
both values share by identity are skipped, so a comparison costs only what changed.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from tidegate.model.k8s.objects import Json
from tidegate.sandbox.ownership.fields import (
    EMPTY,
    FIELD_PREFIX,
    LEAF,
    FieldSet,
    PathElement,
    element_for_item,
    make_node,
)
from tidegate.sandbox.ownership.layout import Layout, get_layout
from tidegate.schema.shape import Shape

ChildSets: TypeAlias = dict[PathElement, FieldSet]
SCALARS = frozenset({str, int, bool, float})


class Comparison(msgspec.Struct, frozen=True, gc=False):
    """The result of a comparison. Both sets include everything inside of the fields."""

    written: FieldSet = EMPTY
    """Fields that were added or modified."""
    removed: FieldSet = EMPTY
    """Fields that were removed."""

    def exclude_fields(self, fields: FieldSet) -> Comparison:
        """Return the comparison without these fields and everything below them."""
        if self is NO_CHANGE or fields is EMPTY:
            return self
        return Comparison(
            self.written.recursive_difference(fields), self.removed.recursive_difference(fields)
        )


NO_CHANGE = Comparison()
VALUE_CHANGE = Comparison(written=LEAF)


def is_same_json(left: Json, right: Json) -> bool:
    """Return whether two values are the same JSON. In Python `True == 1`."""
    if left is right:
        return True
    if left != right:
        return False
    if isinstance(left, dict) and isinstance(right, dict):
        return all(is_same_json(value, right[name]) for name, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return all(map(is_same_json, left, right))
    return isinstance(left, bool) is isinstance(right, bool)


def is_atomic_value(value: Json, layout: Layout) -> bool:
    """Return whether a value is owned as one field; callers handle empty containers themselves."""
    if layout.is_deduced:
        return value is not None and not isinstance(value, dict)
    return layout.is_atomic


def collect_fields(value: Json, shape: Shape) -> tuple[FieldSet, bool]:
    """Return the fields of an intent, and whether all of it matches the schema.

    Like `toFieldSetWalker` in `typed/tofieldset.go` of structured-merge-diff 6.3.3.
    """
    mismatches: list[str] = []
    fields = _collect(value, get_layout(shape), mismatches)
    return fields, not mismatches


def _collect(value: Json, layout: Layout, mismatches: list[str]) -> FieldSet:
    if type(value) not in layout.accepted:
        mismatches.append("")
    if is_atomic_value(value, layout):
        _check_atomic(value, layout, mismatches)
        return LEAF
    if isinstance(value, dict):
        return make_node(False, _collect_named(value, layout, mismatches))
    if isinstance(value, list):
        return make_node(False, _collect_items(value, layout, mismatches))
    return EMPTY


def _check_atomic(value: Json, layout: Layout, mismatches: list[str]) -> None:
    """Check that the content of an atomic value matches the schema."""
    if isinstance(value, dict):
        for name, inner in value.items():
            _collect(inner, layout.children[name], mismatches)
    elif isinstance(value, list) and layout.shape.items is not None:
        items = layout.items
        for item in value:
            _collect(item, items, mismatches)


def _collect_named(value: dict[str, Json], layout: Layout, mismatches: list[str]) -> ChildSets:
    child_sets: ChildSets = {}
    children, schema_fields = layout.children, layout.shape.fields
    for name, inner in value.items():
        child_layout = children[name]
        if type(inner) in SCALARS:
            child_sets[FIELD_PREFIX + name] = LEAF
            if type(inner) not in child_layout.accepted:
                mismatches.append(name)
            continue
        child = _collect(inner, child_layout, mismatches)
        if not child.is_member and (inner is None or inner == {} or name not in schema_fields):
            child = make_node(True, child.children)
        if child is not EMPTY:
            child_sets[FIELD_PREFIX + name] = child
    return child_sets


def _collect_items(value: list[Json], layout: Layout, mismatches: list[str]) -> ChildSets:
    child_sets: ChildSets = {}
    items = layout.items
    for item in value:
        element = element_for_item(item, layout)
        if element is None:
            mismatches.append("")
        elif element in child_sets:
            mismatches.append(element)
            child_sets[element] = LEAF
        else:
            child_sets[element] = make_node(True, _collect(item, items, mismatches).children)
    return child_sets


def group_by_element(value: Json, layout: Layout) -> dict[PathElement, list[Json]]:
    """Return the items of a list by their element; live lists can have several of each."""
    items: dict[PathElement, list[Json]] = {}
    for item in value if isinstance(value, list) else ():
        element = element_for_item(item, layout)
        if element is not None:
            items.setdefault(element, []).append(item)
    return items


def collect_all_fields(value: Json, layout: Layout) -> FieldSet:
    """Return the fields of a value that is added or removed, with containers."""
    if not value or is_atomic_value(value, layout):
        return LEAF
    if isinstance(value, dict):
        children = layout.children
        return FieldSet(
            True,
            {
                FIELD_PREFIX + name: LEAF
                if type(inner) in SCALARS
                else collect_all_fields(inner, children[name])
                for name, inner in value.items()
            },
        )
    items = layout.items
    return make_node(
        True,
        {
            element: collect_all_fields(same_items[0], items) if len(same_items) == 1 else LEAF
            for element, same_items in group_by_element(value, layout).items()
        },
    )


def compare(before: Json, after: Json, shape: Shape) -> Comparison:
    """Return what changed from one value to another.

    Like `Comparison` in `typed/compare.go` of structured-merge-diff 6.3.3.
    """
    return _compare(before, after, get_layout(shape))


def _compare(before: Json, after: Json, layout: Layout) -> Comparison:
    if before is after:
        return NO_CHANGE
    if is_atomic_value(before, layout) or is_atomic_value(after, layout):
        return _compare_atomic(before, after, layout)
    if not before and not after:
        return NO_CHANGE if is_same_json(before, after) else VALUE_CHANGE
    if layout.is_list:
        return _compare_items(before, after, layout)
    return _compare_fields(_as_mapping(before), _as_mapping(after), layout)


def _compare_atomic(before: Json, after: Json, layout: Layout) -> Comparison:
    """Compare atomic values; fields of a map that became atomic, or was atomic, count as well."""
    if is_same_json(before, after):
        return NO_CHANGE
    if layout.is_atomic:
        return VALUE_CHANGE
    inner = _compare_fields(_as_mapping(before), _as_mapping(after), layout)
    return Comparison(make_node(True, inner.written.children), inner.removed)


def _as_mapping(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def _compare_fields(before: dict[str, Json], after: dict[str, Json], layout: Layout) -> Comparison:
    builder = _ComparisonBuilder()
    for name, old in before.items():
        if name not in after:
            builder.removed[FIELD_PREFIX + name] = collect_all_fields(old, layout.children[name])
            continue
        new = after[name]
        if old is not new and not (type(old) is type(new) and type(old) in SCALARS and old == new):
            builder.add_child(FIELD_PREFIX + name, _compare(old, new, layout.children[name]))
    for name, new in after.items():
        if name not in before:
            builder.written[FIELD_PREFIX + name] = collect_all_fields(new, layout.children[name])
    return builder.build()


def _compare_items(before: Json, after: Json, layout: Layout) -> Comparison:
    builder = _ComparisonBuilder()
    old, new = group_by_element(before, layout), group_by_element(after, layout)
    items = layout.items
    for element in {**old, **new}:
        old_items, new_items = old.get(element, []), new.get(element, [])
        if len(old_items) <= 1 and len(new_items) <= 1:
            _compare_item(element, old_items, new_items, builder, items)
        elif len(old_items) > 1 and len(new_items) > 1:
            if not is_same_json([*old_items], [*new_items]):
                builder.written[element] = LEAF
        else:
            _compare_duplicates(element, old_items, new_items, builder, items)
    return builder.build()


def _compare_item(
    element: PathElement,
    old: list[Json],
    new: list[Json],
    builder: _ComparisonBuilder,
    layout: Layout,
) -> None:
    if old and new:
        builder.add_child(element, _compare(old[0], new[0], layout))
    elif new:
        builder.written[element] = collect_all_fields(new[0], layout)
    else:
        builder.removed[element] = collect_all_fields(old[0], layout)


def _compare_duplicates(
    element: PathElement,
    old: list[Json],
    new: list[Json],
    builder: _ComparisonBuilder,
    layout: Layout,
) -> None:
    """Compare items with the same keys: several are atomic, a single one is not."""
    if len(old) > 1:
        builder.removed[element] = LEAF
        if new:
            builder.written[element] = collect_all_fields(new[0], layout)
    else:
        builder.written[element] = LEAF
        if old:
            builder.removed[element] = collect_all_fields(old[0], layout)


class _ComparisonBuilder:
    """A comparison under construction."""

    __slots__ = ("removed", "written")

    def __init__(self) -> None:
        self.written: ChildSets = {}
        self.removed: ChildSets = {}

    def add_child(self, element: PathElement, inner: Comparison) -> None:
        if inner.written is not EMPTY:
            self.written[element] = inner.written
        if inner.removed is not EMPTY:
            self.removed[element] = inner.removed

    def build(self) -> Comparison:
        if not (self.written or self.removed):
            return NO_CHANGE
        return Comparison(make_node(False, self.written), make_node(False, self.removed))
