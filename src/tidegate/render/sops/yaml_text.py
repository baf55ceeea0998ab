"""Rewrite an encrypted YAML text: values and comments opened in place, the `sops` block cut out."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal

from yaml.events import (
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from tidegate.documents.events import events_of
from tidegate.documents.stream import FilePart, split
from tidegate.model.objects import Json
from tidegate.render.envsubst.layout import write_string
from tidegate.render.sops.cipher import CipherError, open_value, type_of
from tidegate.render.sops.metadata import KEY

INDENT = 4

_COMMENT = re.compile(r"#(ENC\[[^\n]*,type:comment\])")
_FIRST_LARGE_EXPONENT = 6
_LEAST_PLAIN_EXPONENT = -4


@dataclass(slots=True)
class _Frame:
    """A mapping or a list that is being read; `key` is the one whose value comes next."""

    path: tuple[str, ...]
    is_list: bool
    column: int = 0
    key: str | None = None


@dataclass(slots=True)
class _Edits:
    key: bytes
    found: list[tuple[int, int, str]] = field(default_factory=list)
    paths: set[tuple[str, ...]] = field(default_factory=set)


def rewrite_yaml(text: str, key: bytes) -> str:
    """The whole file, decrypted."""
    return "---".join(_rewrite(part, key) for part in split(text, ""))


def _rewrite(part: FilePart, key: bytes) -> str:
    edits = _Edits(key)
    _walk(part, edits)
    text = part.text
    for start, end, new in sorted(edits.found, reverse=True):
        text = text[:start] + new + text[end:]
    return _COMMENT.sub(lambda found: "#" + _open_comment(found[1], edits), text)


def _walk(part: FilePart, edits: _Edits) -> None:
    next_event = events_of(part)
    stack: list[_Frame] = []
    block = -1
    while not isinstance(event := next_event(), StreamEndEvent):
        if isinstance(event, MappingEndEvent | SequenceEndEvent):
            stack.pop()
        elif isinstance(event, MappingStartEvent | SequenceStartEvent):
            stack.append(_enter(event, stack, edits))
        elif isinstance(event, ScalarEvent) and stack:
            if block >= 0 and len(stack) == 1 and stack[0].key is None:
                edits.found.append((block, _index(event), ""))
                block = -1
            if _is_block_key(event, stack):
                block = _index(event)
            _scalar(event, stack[-1], edits, inside_block=block >= 0)
    if block >= 0:
        edits.found.append((block, len(part.text), ""))


def _is_block_key(event: ScalarEvent, stack: list[_Frame]) -> bool:
    return len(stack) == 1 and stack[0].key is None and event.value == KEY


def _enter(event: Event, stack: list[_Frame], edits: _Edits) -> _Frame:
    path = _take_path(stack[-1]) if stack else ()
    edits.paths.add(path)
    return _Frame(path, isinstance(event, SequenceStartEvent))


def _take_path(frame: _Frame) -> tuple[str, ...]:
    """The path of the value that comes now. Places in a list are no part of it."""
    path = frame.path if frame.key is None else (*frame.path, frame.key)
    frame.key = None
    return path


def _scalar(event: ScalarEvent, frame: _Frame, edits: _Edits, *, inside_block: bool) -> None:
    column = event.start_mark.column if event.start_mark else 0
    if not frame.is_list and frame.key is None:
        frame.key, frame.column = event.value, column
        return
    path = _take_path(frame)
    kind = type_of(event.value)
    if not kind or inside_block:
        return
    value = open_value(event.value, edits.key, ":".join(path) + ":")
    start, end = _index(event), _index(event, end=True)
    if kind == "comment":
        # SOPS writes the comments of a list as items; its `- ` goes as well.
        edits.found.append((start - 2, end, f"#{value}"))
        return
    indent = column if frame.is_list else INDENT * (frame.column // INDENT + 1)
    edits.found.append((start, end, _written(value, kind, indent)))


def _index(event: ScalarEvent, *, end: bool = False) -> int:
    mark = event.end_mark if end else event.start_mark
    return mark.index if mark else 0


def _written(value: Json, kind: str, indent: int) -> str:
    """A value as the YAML library of SOPS writes it."""
    if isinstance(value, str):
        lines = [value] if kind == "time" else write_string(value, indent=INDENT, modern=True)
        return "\n".join([lines[0], *(" " * indent + line if line else "" for line in lines[1:])])
    if isinstance(value, float):
        return _float(value)
    return str(value).lower()


def _float(value: float) -> str:
    number = Decimal(repr(value)).normalize()
    exponent = number.adjusted()
    if _LEAST_PLAIN_EXPONENT <= exponent < _FIRST_LARGE_EXPONENT:
        return format(number, "f")
    digits = f"{number:e}".partition("e")[0]
    return f"{digits}e{'+' if exponent > 0 else '-'}{abs(exponent):02}"


def _open_comment(envelope: str, edits: _Edits) -> str:
    """A comment is bound to the mapping it stands in, which the text does not tell: each is tried.

    One that fits nowhere stays as it is, as with SOPS.
    """
    for path in sorted(edits.paths):
        try:
            return str(open_value(envelope, edits.key, ":".join(path) + ":"))
        except CipherError:
            continue
    return envelope
