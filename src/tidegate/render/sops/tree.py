"""Decrypt every value of a tree, and count the seal on the way."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from tidegate.documents import FieldPath
from tidegate.documents.document import path_text
from tidegate.errors import Place, RenderError
from tidegate.model.objects import Json
from tidegate.render.sops.cipher import CipherError, open_value, seal_bytes, type_of
from tidegate.render.sops.metadata import KEY, Metadata, chooser


class Seal(StrEnum):
    """What the MAC of a file says about it."""

    INTACT = "intact"
    BROKEN = "broken"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class Opened:
    """Decrypted trees, and the digest of all values."""

    trees: tuple[Json, ...] = field(repr=False)
    digest: str


def open_trees(
    trees: Iterable[Json], key: bytes, metadata: Metadata, where: Place, *, floats: bool = False
) -> Opened:
    """Decrypt the documents of one file. With `floats` whole numbers count as JSON reads them."""
    walk = _Walk(key, metadata, where, floats=floats)
    bare = (without_block(tree) if isinstance(tree, dict) else tree for tree in trees)
    opened = tuple(walk.open(tree, (), ()) for tree in bare)
    return Opened(opened, walk.digest.hexdigest().upper())


def check_seal(opened: Opened, key: bytes, metadata: Metadata) -> Seal:
    """Compare the digest with the one that was sealed."""
    if not metadata.mac:
        return Seal.ABSENT
    try:
        sealed = open_value(metadata.mac, key, metadata.moment)
    except CipherError:
        return Seal.BROKEN
    return Seal.INTACT if sealed == opened.digest else Seal.BROKEN


def encrypted_fields(tree: Json) -> tuple[FieldPath, ...]:
    """The paths of all values that are encrypted, by their look."""
    found: list[FieldPath] = []

    def note(value: str, path: FieldPath) -> Json:
        found.append(path)
        return value

    replace_encrypted(tree, note)
    return tuple(found)


def replace_encrypted(
    tree: Json, replace: Callable[[str, FieldPath], Json], path: FieldPath = ()
) -> Json:
    """The tree without its block, each encrypted value replaced."""
    if isinstance(tree, dict):
        tree = tree if path else without_block(tree)
        return {key: replace_encrypted(item, replace, (*path, key)) for key, item in tree.items()}
    if isinstance(tree, list):
        items = [item for item in tree if type_of(item) != "comment"]
        return [replace_encrypted(item, replace, (*path, at)) for at, item in enumerate(items)]
    return replace(tree, path) if isinstance(tree, str) and type_of(tree) else tree


def without_block(tree: dict[str, Json]) -> dict[str, Json]:
    return {key: value for key, value in tree.items() if key != KEY}


class _Walk:
    def __init__(self, key: bytes, metadata: Metadata, where: Place, *, floats: bool) -> None:
        self._key = key
        self._where = where
        self._floats = floats
        self._is_chosen = chooser(metadata, where)
        self._counts_plain = not metadata.mac_only_encrypted
        self.digest = hashlib.sha512()
        if metadata.mac_only_encrypted:
            # SOPS starts otherwise here, so that no file can be turned from one kind to the other.
            self.digest.update(hashlib.sha256(b"sops").digest())

    def open(self, value: Json, path: FieldPath, keys: tuple[str, ...]) -> Json:
        if isinstance(value, dict):
            return {key: self.open(item, (*path, key), (*keys, key)) for key, item in value.items()}
        if isinstance(value, list):
            # SOPS writes the comments of a list as items of it.
            items = [item for item in value if type_of(item) != "comment"]
            return [self.open(item, (*path, index), keys) for index, item in enumerate(items)]
        return None if value is None else self._leaf(value, path, keys)

    def _leaf(self, value: str | float, path: FieldPath, keys: tuple[str, ...]) -> Json:
        # Comments are gone after a build, so a file chosen by comments is judged by the look.
        chosen = self._is_chosen(keys) if self._is_chosen else bool(type_of(value))
        if not chosen:
            if self._counts_plain:
                self._count(value)
            return value
        opened = self._open_value(value, path, keys)
        self._count(opened)
        return opened

    def _count(self, value: Json) -> None:
        if self._floats and type(value) is int:
            value = float(value)
        self.digest.update(seal_bytes(value))

    def _open_value(self, value: str | float, path: FieldPath, keys: tuple[str, ...]) -> Json:
        if value == "":
            return value
        where = Place(self._where.name, self._where.line, self._where.column, path_text(path))
        if not isinstance(value, str) or not type_of(value):
            problem = "a value that must be encrypted is not"
            hint = "encrypt the file again; a patch cannot put plain text where SOPS expects none"
            raise RenderError("render.sops.plain", problem, where=where, hint=hint)
        try:
            return open_value(value, self._key, ":".join(keys) + ":")
        except CipherError:
            problem = "an encrypted value was changed, or moved from another key"
            hint = "restore it from Git, or encrypt the file again"
            raise RenderError("render.sops.value", problem, where=where, hint=hint) from None
