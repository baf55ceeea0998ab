"""Cache of rendered objects, by the content that they were rendered from.

Objects are cached as they were before decryption: nothing that SOPS decrypted is stored here.
Renders that contain secrets are encrypted with the user's local key, or not stored. The caller
chooses the text store. An entry that cannot be stored costs only time.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping
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
"""Changed whenever the same input renders to something else."""
COMPRESSION = 1
MAX_SIZE = 512 * 1024 * 1024
"""Bytes of one render, uncompressed."""
EntryT = TypeVar("EntryT")


class TextStore(Protocol):
    """Storage of texts by name, limited in size."""

    def write(self, name: str, text: bytes) -> None: ...
    def read(self, name: str) -> bytes | None: ...


class _CachedDocument(msgspec.Struct, frozen=True, array_like=True):
    """A document as it is stored."""

    body: Mapping[str, object]
    """The object."""
    location: Location
    """Where the object starts."""
    document_index: int
    """The index of the YAML document in its file."""
    list_path: FieldPath
    """The path to the object, if it is an item of a List."""
    duplicates: tuple[DuplicateKey, ...]
    """Duplicate keys of the object."""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[_CachedDocument, ...]).decode
_decode_rows = msgspec.msgpack.Decoder(tuple[tuple[str, ...], ...]).decode
_decode_dependencies = msgspec.msgpack.Decoder(tuple[ChartDependency, ...]).decode


def unpack(packed: bytes) -> bytes:
    """Decompress an entry, up to the size limit: a file in the cache is untrusted."""
    decompressor = zlib.decompressobj()
    text = decompressor.decompress(packed, MAX_SIZE)
    if decompressor.unconsumed_tail or not decompressor.eof:
        raise zlib.error("it is too large or incomplete")
    return text


class RenderCache:
    """Cache of objects, chart dependencies and template results by key."""

    def __init__(self, store: TextStore, key: LocalKey) -> None:
        self._store = store
        self._key = key
        self.has_grown = False

    @cached_property
    def _format_version(self) -> str:
        from importlib.metadata import version  # noqa: PLC0415 - slow, and rarely needed

        return f"{version('tidegate')} {FORMAT}"

    def find(self, key: str) -> tuple[Document, ...] | None:
        """Return the objects with their locations, in order; None if they are not cached."""
        entries = self._read("objects", key, _decode)
        if entries is None:
            return None
        return tuple(Document(*msgspec.structs.astuple(entry)) for entry in entries)

    def store(self, key: str, documents: Iterable[Document]) -> None:
        """Store the objects of a key."""
        try:
            documents = tuple(documents)
            text = _encode(
                [
                    _CachedDocument(
                        document.body,
                        document.location,
                        document.document_index,
                        document.list_path,
                        document.duplicates,
                    )
                    for document in documents
                ]
            )
        except (OverflowError, UnicodeEncodeError):
            return  # a number or a character that msgpack cannot store
        self._write(self._name("objects", key), text, is_public=has_no_secrets(documents, text))

    def find_dependencies(self, key: str) -> tuple[ChartDependency, ...]:
        """Return the charts that a chart needs from elsewhere; empty if unknown."""
        return self._read("needs", key, _decode_dependencies) or ()

    def store_dependencies(self, key: str, dependencies: Iterable[ChartDependency]) -> None:
        """Store the charts that a chart needs from elsewhere."""
        text = _encode(tuple(dependencies))
        self._write(self._name("needs", key), text, is_public=has_no_secrets((), text))

    def find_rows(self, key: str) -> tuple[tuple[str, ...], ...] | None:
        """Return what templates render to, for each set of parameters; None if not cached."""
        return self._read("rows", key, _decode_rows)

    def store_rows(self, key: str, rows: tuple[tuple[str, ...], ...]) -> None:
        """Store what templates render to."""
        text = _encode(rows)
        self._write(self._name("rows", key), text, is_public=has_no_secrets((), text))

    def _read(self, kind: str, key: str, decode: Callable[[bytes], EntryT]) -> EntryT | None:
        name = self._name(kind, key)
        packed = self._store.read(name) or self._read_encrypted(name)
        try:
            return None if packed is None else decode(unpack(packed))
        except (zlib.error, msgspec.MsgspecError):
            return None

    def _read_encrypted(self, name: str) -> bytes | None:
        key = self._key.find()
        encrypted = self._store.read(hash_name(name, key)) if key else None
        return decrypt(encrypted, key) if encrypted and key else None

    def _write(self, name: str, text: bytes, *, is_public: bool) -> None:
        packed: bytes | None = zlib.compress(text, COMPRESSION)
        if packed and not is_public:
            key = self._key.find_or_create()
            name, packed = (hash_name(name, key), encrypt(packed, key)) if key else (name, None)
        if packed is None:
            return
        try:
            self._store.write(name, packed)
        except TidegateError:
            return
        self.has_grown = True

    def _name(self, kind: str, key: str) -> str:
        return f"{kind} {self._format_version} {key}"
