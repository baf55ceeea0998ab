"""Bring an intent into a live value, and take out of it what nobody wants there any more.

Nothing is changed in place: what an intent does not touch is shared with the live value, and a
merge that changes nothing gives back the live value itself.

What an applier named last time and nobody names now is pruned, in one walk along what was dropped.
A place that is dropped goes with all that is below it, so an updater's change below a dropped item
goes too. A place that somebody else names stays, and so does what nobody ever named below it: a
default.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto
from typing import NamedTuple, TypeAlias

from tidegate.model.objects import Json
from tidegate.sandbox.ownership.compare import SCALARS, by_element, is_one_piece, same
from tidegate.sandbox.ownership.fields import FIELD, NOTHING, Element, Fields, item_element
from tidegate.sandbox.ownership.layout import Layout, layout_of
from tidegate.schema.mending import unless_same
from tidegate.schema.shape import Shape

Nodes: TypeAlias = tuple[Fields, ...]


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
    return unless_same(live, list(_merged_items(live, intent, layout)))


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
            continue
        # Live items that cannot be told apart are not merged but replaced.
        there = ours.get(element, [])
        yield _merge(there[0], intent[place], items) if len(there) == 1 else intent[place]


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
    return _prune(merged, _Spot(last, last - now[0], now, _Zone.OPEN), layout_of(shape))


def _prune(value: Json, spot: _Spot, layout: Layout) -> Json:
    if not value or is_one_piece(value, layout):
        return value
    if isinstance(value, dict):
        return _prune_fields(value, spot, layout)
    if isinstance(value, list):
        return _prune_items(value, spot, layout)
    return value


def _prune_fields(value: dict[str, Json], spot: _Spot, layout: Layout) -> Json:
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


def _prune_items(value: list[Json], spot: _Spot, layout: Layout) -> Json:
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
    return _prune(value, spot._replace(zone=zone), layout)


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
