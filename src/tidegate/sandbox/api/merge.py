"""Bring an intent into a live value, and take places out of a value.

Nothing is changed in place: what an intent does not touch is shared with the live value, and a
merge that changes nothing gives back the live value itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.model.objects import Json
from tidegate.sandbox.api.compare import (
    by_element,
    is_one_piece,
    items_shape,
    same,
    shape_below,
)
from tidegate.sandbox.api.elements import FIELD, Element, item_element
from tidegate.sandbox.api.fields import NOTHING, Fields
from tidegate.sandbox.api.shape import Merge, Shape


def merge(live: Json, intent: Json, shape: Shape) -> Json:
    """The live value with what the intent names; an intent takes nothing away."""
    if live is intent:
        return live
    if is_one_piece(intent, shape) or (is_one_piece(live, shape) and intent is not None):
        return live if same(live, intent) else intent
    if not live and not intent:
        return live if same(live, intent) else intent
    if shape.merge is Merge.FIELDS:
        return _merge_fields(live, intent, shape)
    return _merge_items(live, intent, shape)


def _merge_fields(live: Json, intent: Json, shape: Shape) -> Json:
    if not isinstance(live, dict):
        return intent
    merged: dict[str, Json] | None = None
    for name, wanted in intent.items() if isinstance(intent, dict) else ():
        if name in live:
            found = merge(live[name], wanted, shape_below(shape, name))
            if found is live[name]:
                continue
        else:
            found = wanted
        merged = dict(live) if merged is None else merged
        merged[name] = found
    return live if merged is None else merged


def _merge_items(live: Json, intent: Json, shape: Shape) -> Json:
    if not isinstance(intent, list) or not intent:
        return live
    if not isinstance(live, list) or not live:
        return intent
    merged = list(_merged_items(live, intent, shape))
    is_same = len(merged) == len(live) and all(
        one is other for one, other in zip(merged, live, strict=True)
    )
    return live if is_same else merged


def _merged_items(live: list[Json], intent: list[Json], shape: Shape) -> Iterator[Json]:
    ours = by_element(live, shape)
    inner = items_shape(shape)
    wanted = [item_element(item, shape) or "" for item in intent]
    for element, place in _in_order([item_element(item, shape) or "" for item in live], wanted):
        if element is None:
            yield live[place]
        else:
            yield _merged_item(ours.get(element, []), intent[place], inner)


def _in_order(live: list[Element], wanted: list[Element]) -> Iterator[tuple[Element | None, int]]:
    """The order of a merged list: places in the live list (no element) and in the intent.

    Both lists are walked at once. What only live has stays where it is met; what both have comes
    in the order of the intent, so it is passed over in live until its turn.
    """
    named, known = frozenset(wanted), frozenset(live)
    turns = iter([element for element in wanted if element in known])
    awaited = next(turns, None)
    here = there = 0
    while here < len(live) or there < len(wanted):
        met = live[here] if here < len(live) else None
        if met is not None and met not in named:
            yield None, here
            here += 1
        elif there == len(wanted) or (met and awaited and met not in {wanted[there], awaited}):
            here += 1
        else:
            element = wanted[there]
            here += met is not None and (met == element or awaited is None)
            awaited = next(turns, None) if element == awaited else awaited
            yield element, there
            there += 1


def _merged_item(live: list[Json], intent: Json, shape: Shape) -> Json:
    """Live items that cannot be told apart are not merged but replaced."""
    return merge(live[0], intent, shape) if len(live) == 1 else intent


def without(value: Json, fields: Fields, shape: Shape) -> Json:
    """The value but for these places. A container that has nothing left is null, as on servers."""
    if fields is NOTHING or not isinstance(value, dict | list):
        return value
    if not value or is_one_piece(value, shape):
        return None
    if isinstance(value, dict):
        return _without_fields(value, fields, shape)
    return _without_items(value, fields, shape)


def _without_fields(value: dict[str, Json], fields: Fields, shape: Shape) -> Json:
    left: dict[str, Json] | None = None
    for element, inner in fields.below.items():
        name = element.removeprefix(FIELD)
        if name not in value or not element.startswith(FIELD):
            continue
        if inner.own:
            left = dict(value) if left is None else left
            del left[name]
            continue
        found = without(value[name], inner, shape_below(shape, name))
        if found is not value[name]:
            left = dict(value) if left is None else left
            left[name] = found
    if left is None:
        return value
    return left or None


def _without_items(value: list[Json], fields: Fields, shape: Shape) -> Json:
    left: list[Json] = []
    is_changed = False
    inner = items_shape(shape)
    for item in value:
        gone = fields.below.get(item_element(item, shape) or "", NOTHING)
        if gone.own:
            is_changed = True
            continue
        found = without(item, gone, inner)
        is_changed = is_changed or found is not item
        left.append(found)
    if not is_changed:
        return value
    return left or None
