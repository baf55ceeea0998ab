"""Bring an intent into a live value, and take out of it what nobody wants there any more.

Nothing is changed in place: what an intent does not touch is shared with the live value, and a
merge that changes nothing gives back the live value itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.model.objects import Json
from tidegate.sandbox.ownership.compare import SCALARS, by_element, is_one_piece, same
from tidegate.sandbox.ownership.elements import Element, item_element
from tidegate.sandbox.ownership.layout import Layout, layout_of
from tidegate.schema.shape import Shape


def merge(live: Json, intent: Json, shape: Shape) -> Json:
    """The live value with what the intent names; an intent takes nothing away."""
    return _merge(live, intent, layout_of(shape))


def _merge(live: Json, intent: Json, layout: Layout) -> Json:
    if live is intent:
        return live
    if is_one_piece(intent, layout) or (is_one_piece(live, layout) and intent is not None):
        return live if same(live, intent) else intent
    if not live and not intent:
        return live if same(live, intent) else intent
    if layout.is_list:
        return _merge_items(live, intent, layout)
    return _merge_fields(live, intent, layout)


def _merge_fields(live: Json, intent: Json, layout: Layout) -> Json:
    if not isinstance(live, dict):
        return intent
    if not isinstance(intent, dict):
        return live
    merged: dict[str, Json] | None = None
    for name, wanted in intent.items():
        if name in live:
            there = live[name]
            if type(wanted) is type(there) and type(wanted) in SCALARS and wanted == there:
                continue
            found = _merge(there, wanted, layout.children[name])
            if found is there:
                continue
        else:
            found = wanted
        merged = dict(live) if merged is None else merged
        merged[name] = found
    return live if merged is None else merged


def _merge_items(live: Json, intent: Json, layout: Layout) -> Json:
    if not isinstance(intent, list) or not intent:
        return live
    if not isinstance(live, list) or not live:
        return intent
    merged = list(_merged_items(live, intent, layout))
    is_same = len(merged) == len(live) and all(
        one is other for one, other in zip(merged, live, strict=True)
    )
    return live if is_same else merged


def _merged_items(live: list[Json], intent: list[Json], layout: Layout) -> Iterator[Json]:
    known = [item_element(item, layout) or "" for item in live]
    wanted = [item_element(item, layout) or "" for item in intent]
    items = layout.items
    if known == wanted:
        yield from (_merge(there, item, items) for there, item in zip(live, intent, strict=True))
        return
    ours = by_element(live, layout)
    for element, place in _in_order(known, wanted):
        if element is None:
            yield live[place]
        else:
            yield _merged_item(ours.get(element, []), intent[place], items)


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


def _merged_item(live: list[Json], intent: Json, layout: Layout) -> Json:
    """Live items that cannot be told apart are not merged but replaced."""
    return _merge(live[0], intent, layout) if len(live) == 1 else intent
