"""Objects that were rendered before, found again by the content they were rendered from.

What is kept is as it was before decryption: nothing that SOPS has opened is ever handed in here.
What holds a secret all the same is sealed with the user's own key, or not kept.
Where it is kept is the caller's business; what cannot be kept costs time and nothing else.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Protocol, TypeVar

import msgspec

from tidegate.documents import Document, DuplicateKey
from tidegate.errors import Location, TidegateError
from tidegate.model.k8s.objects import FieldPath
from tidegate.model.units.chart_request import ChartDependency
from tidegate.render.cache.encryption import decrypt, encrypt, has_no_secrets, hash_name
from tidegate.render.cache.local_key import LocalKey

FORMAT = "1"
"""Changed with whatever changes what the same input comes to."""
COMPRESSION = 1
LARGEST = 512 * 1024 * 1024
"""Bytes of one render, unpacked."""
Shape = TypeVar("Shape")


class TextStore(Protocol):
    """Keeps texts by name, for as long as there is room."""

    def write(self, name: str, text: bytes) -> None: ...
    def read(self, name: str) -> bytes | None: ...


class _Kept(msgspec.Struct, frozen=True, array_like=True):
    body: dict[str, object]
    place: Location
    part: int
    inside: FieldPath
    duplicates: tuple[DuplicateKey, ...]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[_Kept, ...]).decode
_decode_rows = msgspec.msgpack.Decoder(tuple[tuple[str, ...], ...]).decode
_decode_needs = msgspec.msgpack.Decoder(tuple[ChartDependency, ...]).decode


def unpack(kept: bytes) -> bytes:
    """No more than what could be rendered: a file in the cache may be anybody's."""
    machine = zlib.decompressobj()
    text = machine.decompress(kept, LARGEST)
    if machine.unconsumed_tail or not machine.eof:
        raise zlib.error("it is too large, or not whole")
    return text


class RenderCache:
    """What a key was rendered to, and what it turned out to need."""

    def __init__(self, store: TextStore, key: LocalKey) -> None:
        self._store = store
        self._key = key
        self.has_grown = False

    @cached_property
    def _series(self) -> str:
        from importlib.metadata import version  # noqa: PLC0415 - slow, and rarely needed

        return f"{version('tidegate')} {FORMAT}"

    def find(self, key: str) -> tuple[Document, ...] | None:
        """The objects with their places, in their order."""
        found = self._recall("objects", key, _decode)
        if found is None:
            return None
        return tuple(Document(*msgspec.structs.astuple(one)) for one in found)

    def keep(self, key: str, documents: Iterable[Document]) -> None:
        try:
            documents = tuple(documents)
            text = _encode([_Kept(*msgspec.structs.astuple(one)) for one in documents])
        except (OverflowError, UnicodeEncodeError):
            return  # a number or a character that only Python knows
        self._note(self._name("objects", key), text, is_public=has_no_secrets(documents, text))

    def find_needs(self, key: str) -> tuple[ChartDependency, ...]:
        """What a chart turned out to need from elsewhere."""
        return self._recall("needs", key, _decode_needs) or ()

    def keep_needs(self, key: str, needs: Iterable[ChartDependency]) -> None:
        text = _encode(tuple(needs))
        self._note(self._name("needs", key), text, is_public=has_no_secrets((), text))

    def find_rows(self, key: str) -> tuple[tuple[str, ...], ...] | None:
        """What templates came to, for each set of parameters."""
        return self._recall("rows", key, _decode_rows)

    def keep_rows(self, key: str, rows: tuple[tuple[str, ...], ...]) -> None:
        text = _encode(rows)
        self._note(self._name("rows", key), text, is_public=has_no_secrets((), text))

    def _recall(self, what: str, key: str, decode: Callable[[bytes], Shape]) -> Shape | None:
        name = self._name(what, key)
        kept = self._store.read(name) or self._recall_sealed(name)
        try:
            return None if kept is None else decode(unpack(kept))
        except (zlib.error, msgspec.MsgspecError):
            return None

    def _recall_sealed(self, name: str) -> bytes | None:
        key = self._key.peek()
        kept = self._store.read(hash_name(name, key)) if key else None
        return decrypt(kept, key) if kept and key else None

    def _note(self, name: str, text: bytes, *, is_public: bool) -> None:
        packed: bytes | None = zlib.compress(text, COMPRESSION)
        if packed and not is_public:
            key = self._key.take()
            name, packed = (hash_name(name, key), encrypt(packed, key)) if key else (name, None)
        if packed is None:
            return
        try:
            self._store.write(name, packed)
        except TidegateError:
            return
        self.has_grown = True

    def _name(self, what: str, key: str) -> str:
        return f"{what} {self._series} {key}"
