"""A watch's bytes as facts.

The server sends one JSON event a line, of any length, cut anywhere by the network.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tidegate.kube.replies import Status, refusal_of
from tidegate.model.objects import Kind, read_live
from tidegate.world.calls import Ticket
from tidegate.world.facts import Bookmark, Change, Changed, Ended


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


_decode_event = msgspec.json.Decoder(_Event).decode
_decode_status = msgspec.json.Decoder(Status).decode

CHANGES = {"ADDED": Change.ADDED, "MODIFIED": Change.MODIFIED, "DELETED": Change.DELETED}


class LineSplitter:
    """Whole lines out of chunks; what is left of the last one waits for the next chunk."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []

    def split(self, chunk: bytes) -> Iterator[bytes]:
        head, newline, tail = chunk.partition(b"\n")
        while newline:
            self._rest.append(head)
            line = b"".join(self._rest)
            self._rest.clear()
            if line:
                yield line
            head, newline, tail = tail.partition(b"\n")
        if head:
            self._rest.append(head)


def read_event(line: bytes, ticket: Ticket, kind: Kind) -> Changed | Bookmark | Ended:
    """One event of a watch."""
    event = _decode_event(line)
    if event.type == "ERROR":
        return Ended(ticket, refusal_of(_decode_status(event.object)))
    live = read_live(bytes(event.object), kind)
    if event.type == "BOOKMARK":
        return Bookmark(ticket, live.version)
    return Changed(ticket, CHANGES[event.type], live)
