"""Parser for one YAML document, as fast as Python can consume libyaml's events.

Only the value and its location are kept. A possible duplicate key is only flagged; `outline`
finds its location.
"""

from __future__ import annotations

from sys import intern

import msgspec
from yaml.error import YAMLError
from yaml.events import (
    AliasEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from tidegate.documents.events import event_position, event_source
from tidegate.documents.scalars import ScalarError, is_merge, read_key, read_scalar
from tidegate.documents.split import DocumentText
from tidegate.documents.syntax_errors import explain_syntax_error, is_template, template_error
from tidegate.errors import DocumentError, Location
from tidegate.model.k8s.objects import Json

DEPTH_LIMIT = 256
"""Maximum nesting of mappings and lists. Kubernetes allows 10,000, Python far fewer."""
_FEW_ALIASED = 100
_FEW_NODES = 1_000
_MANY_NODES = 400_000
_TOO_MANY_NODES = 4_000_000


class ParsedDocument(msgspec.Struct, frozen=True, gc=False):
    """The value of a document, its location, and whether it may contain duplicate keys."""

    value: Json
    """The value."""
    location: Location
    """Where the value starts."""
    may_have_duplicates: bool
    """Whether a mapping may have duplicate keys."""


class _Anchor(msgspec.Struct, gc=False):
    """The value of an anchor; `size` (in nodes) is 0 until the end of the value was read."""

    value: Json = None
    """The value."""
    size: int = 0
    """The number of nodes; 0 until the end of the value was read."""
    height: int = 0
    """The nesting depth of the value."""
    scalar: ScalarEvent | None = None
    """The event of a scalar; None for other values."""
    nodes_before: int = 0
    """The number of nodes before the value."""
    peak_before: int = 0
    """The greatest nesting depth before the value."""


def parse_document(part: DocumentText) -> ParsedDocument | None:
    """Parse one document. Returns None if it is empty."""
    try:
        return _Parser(part).parse()
    except YAMLError as error:
        raise explain_syntax_error(error, part) from error


class _Parser:
    """Parser that walks the events of one document once."""

    __slots__ = (
        "_aliased",
        "_anchors",
        "_depth",
        "_next",
        "_nodes",
        "_part",
        "_peak",
        "_suspicious",
    )

    def __init__(self, part: DocumentText) -> None:
        self._part = part
        self._next = event_source(part)
        self._anchors: dict[str | None, _Anchor] = {}
        self._depth = 0
        self._peak = 0
        self._nodes = 1
        self._aliased = 0
        self._suspicious = False

    def parse(self) -> ParsedDocument | None:
        self._next()
        if isinstance(self._next(), StreamEndEvent):
            return None
        root = self._next()
        value = self._node(root)
        self._next()
        trailing = self._next()
        if not isinstance(trailing, StreamEndEvent):
            problem = "Kubernetes ignores text after `...`"
            hint = "separate documents by a line `---`"
            raise self._error("documents.separator", problem, trailing, hint)
        return ParsedDocument(value, self._location(root), self._suspicious)

    def _node(self, event: Event | None) -> Json:
        if isinstance(event, ScalarEvent):
            return self._scalar(event)
        if isinstance(event, MappingStartEvent):
            return self._mapping(event)
        if isinstance(event, SequenceStartEvent):
            return self._sequence(event)
        return self._alias(event).value

    def _scalar(self, event: ScalarEvent) -> Json:
        self._nodes += 1
        try:
            value = read_scalar(event)
        except ScalarError as error:
            raise self._error(error.code, error.problem, event, error.hint) from None
        if event.anchor is not None:
            self._anchors[event.anchor] = _Anchor(value, 1, scalar=event)
        return value

    def _mapping(self, start: MappingStartEvent) -> dict[str, Json]:
        anchor = self._enter(start)
        next_event = self._next
        body: dict[str, Json] = {}
        while not isinstance(event := next_event(), MappingEndEvent):
            key = self._key(event)
            if key == "<<" and is_merge(event):
                self._merge(body)
                continue
            if key in body:
                self._suspicious = True
            body[key] = self._node(next_event())
        self._exit(anchor, body)
        return body

    def _sequence(self, start: SequenceStartEvent) -> list[Json]:
        anchor = self._enter(start)
        next_event = self._next
        items: list[Json] = []
        while not isinstance(event := next_event(), SequenceEndEvent):
            items.append(self._node(event))
        self._exit(anchor, items)
        return items

    def _key(self, event: Event | None) -> str:
        self._nodes += 1
        scalar = event
        if isinstance(event, AliasEvent):
            scalar = self._alias(event).scalar
        if not isinstance(scalar, ScalarEvent):
            raise self._invalid_key_error(event)
        try:
            key = read_key(scalar)
        except ScalarError as error:
            raise self._error(error.code, error.problem, event, error.hint) from None
        if scalar.anchor is not None:
            self._anchors[scalar.anchor] = _Anchor(key, 1, scalar=scalar)
        return intern(key)  # thousands of documents have the same few

    def _invalid_key_error(self, event: Event | None) -> DocumentError:
        line = event_position(event)[0]
        if is_template(self._part, line):
            return template_error(self._part, line)
        problem = "a mapping or a list cannot be a key"
        hint = "put a value that starts with `{` or `[` in quotes"
        return self._error("documents.key", problem, event, hint)

    def _merge(self, body: dict[str, Json]) -> None:
        """Merge the mappings of a `<<` key.

        Later keys win, whether merged or written: a `<<` overrides the keys before it.

        Like `merge` in `decode.go` of go.yaml.in/yaml 2.4.3.
        """
        event = self._next()
        value = self._node(event)
        if isinstance(event, SequenceStartEvent) and isinstance(value, list):
            sources = value[::-1]
        else:
            sources = [value]
        for source in sources:
            if not isinstance(source, dict):
                problem = "the merge key `<<` takes a mapping or a list of mappings"
                hint = "put `<<` in quotes to use it as a plain key"
                raise self._error("documents.merge", problem, event, hint)
            body.update(source)

    def _alias(self, event: Event | None) -> _Anchor:
        name = event.anchor if isinstance(event, NodeEvent) else None
        anchor = self._anchors.get(name)
        if anchor is None:
            problem = (
                "a value that starts with `*` is an alias, but its anchor is not defined before"
            )
            hint = "put a value that starts with `*` in quotes"
            raise self._error("documents.alias.unknown", problem, event, hint)
        if not anchor.size:
            problem = "the value of an anchor contains itself"
            raise self._error("documents.alias.loop", problem, event, "")
        self._check_depth(self._depth + anchor.height, event)
        self._nodes += 1 + anchor.size
        self._aliased += anchor.size
        if self._is_bomb():
            problem = "the aliases expand to more than Kubernetes accepts"
            raise self._error("documents.alias.excess", problem, event, "write the values out")
        return anchor

    def _is_bomb(self) -> bool:
        """Return whether the share of aliased nodes exceeds Kubernetes' limit.

        The more nodes, the smaller the allowed share.

        Like `allowedAliasRatio` in `decode.go` of go.yaml.in/yaml 2.4.3.
        """
        if self._aliased <= _FEW_ALIASED or self._nodes <= _FEW_NODES:
            return False
        surplus = min(max(self._nodes, _MANY_NODES), _TOO_MANY_NODES) - _MANY_NODES
        allowed = 0.99 - 0.89 * surplus / (_TOO_MANY_NODES - _MANY_NODES)
        return self._aliased / self._nodes > allowed

    def _enter(self, start: NodeEvent) -> _Anchor | None:
        self._nodes += 1
        self._depth += 1
        self._check_depth(self._depth, start)
        if start.anchor is None:
            return None
        anchor = _Anchor(nodes_before=self._nodes - 1, peak_before=self._peak)
        self._anchors[start.anchor] = anchor
        self._peak = self._depth
        return anchor

    def _exit(self, anchor: _Anchor | None, value: Json) -> None:
        self._depth -= 1
        if anchor is not None:
            anchor.value = value
            anchor.size = self._nodes - anchor.nodes_before
            anchor.height = self._peak - self._depth
            self._peak = max(self._peak, anchor.peak_before)

    def _check_depth(self, depth: int, event: Event | None) -> None:
        if depth > DEPTH_LIMIT:
            problem = f"mappings and lists are nested more than {DEPTH_LIMIT} deep"
            raise self._error("documents.depth", problem, event, "")
        self._peak = max(self._peak, depth)

    def _location(self, event: Event | None) -> Location:
        return self._part.location(*event_position(event))

    def _error(self, code: str, problem: str, event: Event | None, hint: str) -> DocumentError:
        return DocumentError(code, problem, location=self._location(event), hint=hint)
