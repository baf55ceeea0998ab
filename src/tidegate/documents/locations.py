"""Locations of all keys and items of a document, computed on demand.

Requires a document that `parse_document` accepts. Aliases and merge keys resolve to the location
where the value is written.
"""

from __future__ import annotations

import msgspec
from yaml import events

from tidegate.documents.document import DuplicateKey
from tidegate.documents.events import event_position, event_source
from tidegate.documents.scalars import is_merge, read_key
from tidegate.documents.split import DocumentText
from tidegate.errors import Location
from tidegate.model.k8s.objects import FieldPath


class OutlineNode(msgspec.Struct, gc=False):
    """Start of a value, positions of its keys, and its child nodes; lines are counted from 0.

    Scalars share the empty mappings, because a file has many of them.
    """

    start: tuple[int, int]
    """Line and column of the start of the value."""
    keys: dict[str | int, tuple[int, int]]
    """Line and column of each key or item."""
    values: dict[str | int, OutlineNode]
    """The values by key or index."""


_NO_KEYS: dict[str | int, tuple[int, int]] = {}
_NO_VALUES: dict[str | int, OutlineNode] = {}


class Outline(msgspec.Struct, frozen=True, gc=False):
    """Locations in a document, and its duplicate keys."""

    part: DocumentText
    """The text of the document."""
    root: OutlineNode
    """The outline of the whole document."""
    duplicates: tuple[DuplicateKey, ...]
    """The duplicate keys of the document."""

    def find_location(self, path: FieldPath) -> Location:
        """Return the location of a key or an item, or of its closest existing parent."""
        node, position = self.root, self.root.start
        for key in path:
            if key not in node.values:
                break
            position = node.keys.get(key) or node.values[key].start
            node = node.values[key]
        return self.part.location(*position)

    def find_value_location(self, path: FieldPath) -> Location:
        """Return the location where the value at a path starts."""
        node = self.root
        for key in path:
            node = node.values.get(key, node)
        return self.part.location(*node.start)


def build_outline(part: DocumentText) -> Outline:
    """Read the text of a document again and record its locations."""
    builder = _OutlineBuilder(part)
    root = builder.build()
    return Outline(part, root, tuple(builder.duplicates))


class _OutlineBuilder:
    def __init__(self, part: DocumentText) -> None:
        self._part = part
        self._next = event_source(part)
        self._anchors: dict[str | None, OutlineNode] = {}
        self._scalars: dict[str | None, events.ScalarEvent] = {}
        self.duplicates: list[DuplicateKey] = []

    def build(self) -> OutlineNode:
        self._next()
        self._next()
        return self._node(self._next(), ())

    def _node(self, event: events.Event | None, path: FieldPath) -> OutlineNode:
        if isinstance(event, events.AliasEvent):
            return self._anchors[event.anchor]
        if isinstance(event, events.ScalarEvent):
            return self._scalar(event)
        node = OutlineNode(event_position(event), {}, {})
        if isinstance(event, events.NodeEvent) and event.anchor is not None:
            self._anchors[event.anchor] = node
        if isinstance(event, events.MappingStartEvent):
            self._mapping(node, path)
        else:
            self._sequence(node, path)
        return node

    def _scalar(self, event: events.ScalarEvent) -> OutlineNode:
        node = OutlineNode(event_position(event), _NO_KEYS, _NO_VALUES)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
            self._scalars[event.anchor] = event
        return node

    def _mapping(self, node: OutlineNode, path: FieldPath) -> None:
        positions: dict[str, tuple[int, int]] = {}
        while not isinstance(event := self._next(), events.MappingEndEvent):
            if is_merge(event):
                self._merge(node, path)
                continue
            key, position = self._key(event), event_position(event)
            key_path = (*path, key)
            if key in positions:
                first, last = self._part.location(*positions[key]), self._part.location(*position)
                self.duplicates.append(DuplicateKey(key_path, first, last))
            positions[key] = node.keys[key] = position
            node.values[key] = self._node(self._next(), key_path)

    def _sequence(self, node: OutlineNode, path: FieldPath) -> None:
        index = 0
        while not isinstance(event := self._next(), events.SequenceEndEvent):
            node.values[index] = self._node(event, (*path, index))
            index += 1

    def _key(self, event: events.Event | None) -> str:
        if isinstance(event, events.ScalarEvent):
            if event.anchor is not None:
                self._scalar(event)
            return read_key(event)
        return read_key(self._scalars[event.anchor]) if isinstance(event, events.AliasEvent) else ""

    def _merge(self, node: OutlineNode, path: FieldPath) -> None:
        event = self._next()
        value = self._node(event, (*path, "<<"))
        in_list = isinstance(event, events.SequenceStartEvent)
        for source in reversed(value.values.values()) if in_list else [value]:
            node.keys.update(source.keys)
            node.values.update(source.values)
