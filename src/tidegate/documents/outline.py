"""The shape of one document with the place of every key and item: made on demand, never kept.

Takes a part that `build` has read before. Through an alias or a merge key it leads to where the
value is written.
"""

from __future__ import annotations

import msgspec
from yaml import events

from tidegate.documents.document import Duplicate, FieldPath
from tidegate.documents.events import events_of, spot_of
from tidegate.documents.scalars import is_merge, read_key
from tidegate.documents.stream import FilePart
from tidegate.errors import Place


class OutlineNode(msgspec.Struct, gc=False):
    """Where a value starts, where its keys stand, and what is in it; lines count from 0.

    Scalars share the empty mappings: a file has many of them.
    """

    start: tuple[int, int]
    keys: dict[str | int, tuple[int, int]]
    values: dict[str | int, OutlineNode]


_NO_KEYS: dict[str | int, tuple[int, int]] = {}
_NO_VALUES: dict[str | int, OutlineNode] = {}


class Outline(msgspec.Struct, frozen=True, gc=False):
    """A document's shape, and the keys that are written twice in it."""

    part: FilePart
    root: OutlineNode
    duplicates: tuple[Duplicate, ...]

    def find(self, path: FieldPath) -> Place:
        """The place of a key or an item; of the nearest thing above it if it is not there."""
        spot, found = self.root, self.root.start
        for key in path:
            if key not in spot.values:
                break
            found = spot.keys.get(key) or spot.values[key].start
            spot = spot.values[key]
        return self.part.place(*found)

    def find_value(self, path: FieldPath) -> Place:
        """The place where the value at a path starts."""
        spot = self.root
        for key in path:
            spot = spot.values.get(key, spot)
        return self.part.place(*spot.start)


def outline(part: FilePart) -> Outline:
    """Read a part again, this time for its places."""
    outliner = _Outliner(part)
    root = outliner.root()
    return Outline(part, root, tuple(outliner.duplicates))


class _Outliner:
    def __init__(self, part: FilePart) -> None:
        self._part = part
        self._next = events_of(part)
        self._anchors: dict[str | None, OutlineNode] = {}
        self._scalars: dict[str | None, events.ScalarEvent] = {}
        self.duplicates: list[Duplicate] = []

    def root(self) -> OutlineNode:
        self._next()
        self._next()
        return self._node(self._next(), ())

    def _node(self, event: events.Event | None, path: FieldPath) -> OutlineNode:
        if isinstance(event, events.AliasEvent):
            return self._anchors[event.anchor]
        if isinstance(event, events.ScalarEvent):
            return self._scalar(event)
        spot = OutlineNode(spot_of(event), {}, {})
        if isinstance(event, events.NodeEvent) and event.anchor is not None:
            self._anchors[event.anchor] = spot
        if isinstance(event, events.MappingStartEvent):
            self._mapping(spot, path)
        else:
            self._sequence(spot, path)
        return spot

    def _scalar(self, event: events.ScalarEvent) -> OutlineNode:
        spot = OutlineNode(spot_of(event), _NO_KEYS, _NO_VALUES)
        if event.anchor is not None:
            self._anchors[event.anchor] = spot
            self._scalars[event.anchor] = event
        return spot

    def _mapping(self, spot: OutlineNode, path: FieldPath) -> None:
        written: dict[str, tuple[int, int]] = {}
        while not isinstance(event := self._next(), events.MappingEndEvent):
            if is_merge(event):
                self._merge(spot, path)
                continue
            key, place = self._key(event), spot_of(event)
            inner = (*path, key)
            if key in written:
                first, last = self._part.place(*written[key]), self._part.place(*place)
                self.duplicates.append(Duplicate(inner, first, last))
            written[key] = spot.keys[key] = place
            spot.values[key] = self._node(self._next(), inner)

    def _sequence(self, spot: OutlineNode, path: FieldPath) -> None:
        index = 0
        while not isinstance(event := self._next(), events.SequenceEndEvent):
            spot.values[index] = self._node(event, (*path, index))
            index += 1

    def _key(self, event: events.Event | None) -> str:
        if isinstance(event, events.ScalarEvent):
            if event.anchor is not None:
                self._scalar(event)
            return read_key(event)
        return read_key(self._scalars[event.anchor]) if isinstance(event, events.AliasEvent) else ""

    def _merge(self, spot: OutlineNode, path: FieldPath) -> None:
        event = self._next()
        value = self._node(event, (*path, "<<"))
        in_list = isinstance(event, events.SequenceStartEvent)
        for source in reversed(value.values.values()) if in_list else [value]:
            spot.keys.update(source.keys)
            spot.values.update(source.values)
