"""Objects that were rendered before, found again by the content they were rendered from.

What is kept is as it was before decryption: nothing that SOPS has opened is ever handed in here.
Where it is kept is the caller's business; what cannot be kept costs time and nothing else.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from importlib.metadata import version
from typing import Protocol, TypeVar

import msgspec

from tidegate.documents import Document, Duplicate, FieldPath
from tidegate.errors import Place, TidegateError
from tidegate.model.release import ChartDependency

FORMAT = "1"
"""Changed with whatever changes what the same input comes to."""
COMPRESSION = 1
Shape = TypeVar("Shape")


class TextStore(Protocol):
    """Keeps texts by name, for as long as there is room."""

    def note(self, name: str, text: bytes) -> None: ...
    def recall(self, name: str) -> bytes | None: ...


class _Kept(msgspec.Struct, frozen=True, array_like=True):
    body: dict[str, object]
    place: Place
    part: int
    inside: FieldPath
    duplicates: tuple[Duplicate, ...]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[_Kept, ...]).decode
_decode_rows = msgspec.msgpack.Decoder(tuple[tuple[str, ...], ...]).decode
_decode_needs = msgspec.msgpack.Decoder(tuple[ChartDependency, ...]).decode


class RenderCache:
    """What a key was rendered to, and what it turned out to need."""

    def __init__(self, store: TextStore) -> None:
        self._store = store
        self._series = f"{version('tidegate')} {FORMAT}"
        self.has_grown = False

    def find(self, key: str) -> tuple[Document, ...] | None:
        """The objects with their places, in their order."""
        found = self._recall("objects", key, _decode)
        if found is None:
            return None
        return tuple(Document(*msgspec.structs.astuple(one)) for one in found)

    def keep(self, key: str, documents: Iterable[Document]) -> None:
        try:
            text = _encode([_Kept(*msgspec.structs.astuple(one)) for one in documents])
        except (OverflowError, UnicodeEncodeError):
            return  # a number or a character that only Python knows
        self._note(self._name("objects", key), text)

    def find_needs(self, key: str) -> tuple[ChartDependency, ...]:
        """What a chart turned out to need from elsewhere."""
        return self._recall("needs", key, _decode_needs) or ()

    def keep_needs(self, key: str, needs: Iterable[ChartDependency]) -> None:
        self._note(self._name("needs", key), _encode(tuple(needs)))

    def find_rows(self, key: str) -> tuple[tuple[str, ...], ...] | None:
        """What templates came to, for each set of parameters."""
        return self._recall("rows", key, _decode_rows)

    def keep_rows(self, key: str, rows: tuple[tuple[str, ...], ...]) -> None:
        self._note(self._name("rows", key), _encode(rows))

    def _recall(self, what: str, key: str, decode: Callable[[bytes], Shape]) -> Shape | None:
        kept = self._store.recall(self._name(what, key))
        try:
            return None if kept is None else decode(zlib.decompress(kept))
        except (zlib.error, msgspec.MsgspecError):
            return None

    def _note(self, name: str, text: bytes) -> None:
        try:
            self._store.note(name, zlib.compress(text, COMPRESSION))
        except TidegateError:
            return
        self.has_grown = True

    def _name(self, what: str, key: str) -> str:
        return f"{what} {self._series} {key}"
