"""Merge of an intent into a live value, and pruning of fields that no manager owns any more.

Values are not changed in place: parts that an intent does not touch are shared with the live
value, and a merge that changes nothing returns the live value itself.

Fields that an applier owned before and that no manager owns now are pruned. A dropped field is
removed with everything below it, also with changes of an updater below a dropped item. A field
that another manager owns stays, and so do fields below it without an owner: defaults.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto
from typing import NamedTuple, TypeAlias

from tidegate.model.k8s.objects import Json
from tidegate.sandbox.ownership.compare import (
    SCALARS,
    group_by_element,
    is_atomic_value,
    is_same_json,
)
from tidegate.sandbox.ownership.fields import (
    EMPTY,
    FIELD_PREFIX,
    FieldSet,
    PathElement,
    element_for_item,
)
from tidegate.sandbox.ownership.layout import Layout, get_layout
from tidegate.schema.defaulting import reuse_if_unchanged
from tidegate.schema.shape import Shape

FieldSets: TypeAlias = tuple[FieldSet, ...]


def merge(live: Json, intent: Json, shape: Shape) -> Json:
    """Return the live value with the fields of the intent; a merge removes nothing.

    Like `mergingWalker` in `typed/merge.go` of structured-merge-diff 6.3.3.
    """
    return _merge(live, intent, get_layout(shape))


def _merge(live: Json, intent: Json, layout: Layout) -> Json:
    if live is intent:
        return live
    if is_atomic_value(intent, layout) or (is_atomic_value(live, layout) and intent is not None):
        return live if is_same_json(live, intent) else intent
    if not live and not intent:
        return live if is_same_json(live, intent) else intent
    if layout.is_list:
        return _merge_items(live, intent, layout)
    return _merge_fields(live, intent, layout)


def _merge_fields(live: Json, intent: Json, layout: Layout) -> Json:
    if not isinstance(live, dict):
        return intent
    if not isinstance(intent, dict):
        return live
    merged: dict[str, Json] | None = None
    for name, desired in intent.items():
        if name in live:
            live_value = live[name]
            if (
                type(desired) is type(live_value)
                and type(desired) in SCALARS
                and desired == live_value
            ):
                continue
            result = _merge(live_value, desired, layout.children[name])
            if result is live_value:
                continue
        else:
            result = desired
        merged = dict(live) if merged is None else merged
        merged[name] = result
    return live if merged is None else merged


def _merge_items(live: Json, intent: Json, layout: Layout) -> Json:
    if not isinstance(intent, list) or not intent:
        return live
    if not isinstance(live, list) or not live:
        return intent
    return reuse_if_unchanged(live, list(_iterate_merged(live, intent, layout)))


def _iterate_merged(live: list[Json], intent: list[Json], layout: Layout) -> Iterator[Json]:
    live_elements = [element_for_item(item, layout) or "" for item in live]
    desired_elements = [element_for_item(item, layout) or "" for item in intent]
    items = layout.items
    if live_elements == desired_elements:
        yield from (
            _merge(live_item, item, items) for live_item, item in zip(live, intent, strict=True)
        )
        return
    live_by_element = group_by_element(live, layout)
    for element, index in _merge_order(live_elements, desired_elements):
        if element is None:
            yield live[index]
            continue
        # Live items that cannot be distinguished are replaced, not merged.
        live_items = live_by_element.get(element, [])
        yield _merge(live_items[0], intent[index], items) if len(live_items) == 1 else intent[index]


def _merge_order(
    live: list[PathElement], desired: list[PathElement]
) -> Iterator[tuple[PathElement | None, int]]:
    """Yield the order of a merged list: indexes of the live list (no element) and of the intent.

    Both lists are read in parallel. Items that only the live list has keep their position; common
    items follow the order of the intent, and are skipped in the live list until their turn.

    Like `visitListItems` in `typed/merge.go` of structured-merge-diff 6.3.3.
    """
    desired_set, live_set = frozenset(desired), frozenset(live)
    common_elements = iter([element for element in desired if element in live_set])
    next_common = next(common_elements, None)
    live_index = desired_index = 0
    while live_index < len(live) or desired_index < len(desired):
        live_element = live[live_index] if live_index < len(live) else None
        if live_element is not None and live_element not in desired_set:
            yield None, live_index
            live_index += 1
        elif desired_index == len(desired) or (
            live_element
            and next_common
            and live_element not in {desired[desired_index], next_common}
        ):
            live_index += 1
        else:
            element = desired[desired_index]
            live_index += live_element is not None and (
                live_element == element or next_common is None
            )
            next_common = next(common_elements, None) if element == next_common else next_common
            yield element, desired_index
            desired_index += 1


class _Zone(Enum):
    """The state of the fields above a field."""

    UNOWNED = auto()
    """The applier owned none of them before."""
    OWNED = auto()
    """The applier owned one of them before, and it is still owned."""
    DROPPED = auto()
    """As OWNED, with a field in between that has no owner: previous fields below it are removed."""


class _Removal(Enum):
    REMOVED = auto()


class _PrunePosition(NamedTuple):
    """The field sets at one position."""

    previous: FieldSet
    """Fields that the applier owned before."""
    dropped: FieldSet
    """Fields that the applier no longer has in its intent."""
    current: FieldSets
    """Fields of each manager now."""
    zone: _Zone
    """The state of the fields above."""

    def child(self, element: PathElement) -> _PrunePosition:
        dropped = self.previous if self.zone is _Zone.DROPPED else self.dropped
        return _PrunePosition(
            self.previous.children.get(element, EMPTY),
            dropped.children.get(element, EMPTY),
            tuple(node.children[element] for node in self.current if element in node.children),
            self.zone,
        )


def prune_dropped(merged: Json, previous: FieldSet, current: FieldSets, shape: Shape) -> Json:
    """Return the merged value without the fields that only `previous` has.

    `current` are the sets of all managers now, that of the intent first. An emptied container
    becomes null, as on servers.

    Like `prune` in `merge/update.go` and `removingWalker` in `typed/remove.go` of
    structured-merge-diff 6.3.3.
    """
    return _prune(
        merged,
        _PrunePosition(previous, previous - current[0], current, _Zone.UNOWNED),
        get_layout(shape),
    )


def _prune(value: Json, position: _PrunePosition, layout: Layout) -> Json:
    if not value or is_atomic_value(value, layout):
        return value
    if isinstance(value, dict):
        return _prune_fields(value, position, layout)
    if isinstance(value, list):
        return _prune_items(value, position, layout)
    return value


def _prune_fields(value: dict[str, Json], position: _PrunePosition, layout: Layout) -> Json:
    remaining: dict[str, Json] | None = None
    candidates = position.previous if position.zone is _Zone.DROPPED else position.dropped
    for element in candidates.children:
        name = element.removeprefix(FIELD_PREFIX)
        if name not in value:
            continue
        child = value[name]
        is_named = name in layout.shape.fields
        result = _prune_child(
            child, position.child(element), layout.children[name], is_named=is_named
        )
        if result is not child:
            remaining = dict(value) if remaining is None else remaining
            if result is _Removal.REMOVED:
                del remaining[name]
            else:
                remaining[name] = result
    return value if remaining is None else remaining or None


def _prune_items(value: list[Json], position: _PrunePosition, layout: Layout) -> Json:
    remaining: list[Json] = []
    is_same = True
    items = layout.items
    for item in value:
        result = _prune_child(
            item, position.child(element_for_item(item, layout) or ""), items, is_named=False
        )
        is_same = is_same and result is item
        if result is not _Removal.REMOVED:
            remaining.append(result)
    return value if is_same else remaining or None


def _prune_child(
    value: Json, position: _PrunePosition, layout: Layout, *, is_named: bool
) -> Json | _Removal:
    """Return the value of a field or item after pruning.

    A struct field is in a set as soon as a field below it is.
    """
    if position.dropped is EMPTY:
        return value
    is_owned = any(node.is_member or is_named for node in position.current)
    zone = position.zone
    if position.previous.is_member or is_named:
        if not _is_representable(value, layout):
            return value
        if zone is _Zone.DROPPED or not is_owned:
            return _Removal.REMOVED
        zone = _Zone.OWNED
    elif zone is _Zone.OWNED and not is_owned:
        zone = _Zone.DROPPED
    return _prune(value, position._replace(zone=zone), layout)


def _is_representable(value: Json, layout: Layout) -> bool:
    """Return whether a set can contain this value: an empty list of items cannot be in a set."""
    if is_atomic_value(value, layout):
        return True
    if isinstance(value, list):
        return bool(value)
    if isinstance(value, dict) and value:
        return any(
            name not in layout.shape.fields or _is_representable(inner, layout.children[name])
            for name, inner in value.items()
        )
    return True
