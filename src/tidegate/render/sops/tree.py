"""Decrypt every value of a tree, and count the seal on the way.

An encrypted value is `ENC[AES256_GCM,data:…,iv:…,tag:…,type:…]`. It is bound to the path of keys it
stands under; moved elsewhere it does not open.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable, Iterable
from decimal import Decimal
from enum import StrEnum
from typing import TypeAlias

import msgspec

from tidegate.documents.document import format_path
from tidegate.errors import Location, RenderError
from tidegate.model.k8s.objects import FieldPath, Json
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.render.sops.metadata import KEY, Metadata, encryption_selector

_Change: TypeAlias = Callable[[Json, FieldPath], Json]
_ENVELOPE = lazy_regex(
    r"ENC\[AES256_GCM,data:(?P<data>[^,]+),iv:(?P<iv>[^,]+),tag:(?P<tag>[^,]+),type:(?P<type>[a-z]+)\]"
)


class CipherError(ValueError):
    """A value that does not open; whoever knows the place makes an error of it."""


class MacStatus(StrEnum):
    """What the MAC of a file says about it."""

    INTACT = "intact"
    BROKEN = "broken"
    ABSENT = "absent"


class DecryptedTrees(msgspec.Struct, frozen=True):
    """Decrypted trees, and the digest of all values."""

    trees: tuple[Json, ...]
    digest: str

    def __repr__(self) -> str:
        return f"Opened({self.digest})"


def decrypt_trees(
    trees: Iterable[Json], key: bytes, metadata: Metadata, where: Location, *, floats: bool = False
) -> DecryptedTrees:
    """Decrypt the documents of one file. With `floats` whole numbers count as JSON reads them."""
    opening = _Opening(key, metadata, where, floats=floats)
    opened = tuple(_map_values(tree, opening.open) for tree in trees)
    return DecryptedTrees(opened, opening.digest.hexdigest().upper())


def check_mac(opened: DecryptedTrees, key: bytes, metadata: Metadata) -> MacStatus:
    """Compare the digest with the one that was sealed."""
    if not metadata.mac:
        return MacStatus.ABSENT
    try:
        sealed = decrypt_value(metadata.mac, key, metadata.moment)
    except CipherError:
        return MacStatus.BROKEN
    return MacStatus.INTACT if sealed == opened.digest else MacStatus.BROKEN


def encrypted_fields(tree: Json) -> tuple[FieldPath, ...]:
    """The paths of all values that are encrypted, by their look."""
    found: list[FieldPath] = []

    def note(value: str, path: FieldPath) -> Json:
        found.append(path)
        return value

    replace_encrypted(tree, note)
    return tuple(found)


def replace_encrypted(tree: Json, stand_in: Callable[[str, FieldPath], Json]) -> Json:
    """The tree without its block, each encrypted value replaced."""

    def change(value: Json, path: FieldPath) -> Json:
        return stand_in(value, path) if isinstance(value, str) and encrypted_type(value) else value

    return _map_values(tree, change)


def _map_values(tree: Json, change: _Change, path: FieldPath = ()) -> Json:
    """The tree without its block, each value changed."""
    if isinstance(tree, dict):
        entries = [(key, item) for key, item in tree.items() if path or key != KEY]
        return {key: _map_values(item, change, (*path, key)) for key, item in entries}
    if isinstance(tree, list):
        # SOPS writes the comments of a list as items of it.
        items = [item for item in tree if encrypted_type(item) != "comment"]
        return [_map_values(item, change, (*path, index)) for index, item in enumerate(items)]
    return change(tree, path)


class _Opening:
    """Opens the values of one file, and counts its seal."""

    def __init__(self, key: bytes, metadata: Metadata, where: Location, *, floats: bool) -> None:
        self._key = key
        self._where = where
        self._floats = floats
        self._is_chosen = encryption_selector(metadata, where)
        self._counts_plain = not metadata.mac_only_encrypted
        self.digest = hashlib.sha512()
        if metadata.mac_only_encrypted:
            # SOPS starts otherwise here, so that no file can be turned from one kind to the other.
            self.digest.update(hashlib.sha256(b"sops").digest())

    def open(self, value: Json, path: FieldPath) -> Json:
        if value is None:
            return None
        keys = tuple(key for key in path if isinstance(key, str))
        # Comments are gone after a build, so a file chosen by comments is judged by the look.
        chosen = self._is_chosen(keys) if self._is_chosen else bool(encrypted_type(value))
        opened = self._open(value, path, keys) if chosen else value
        if chosen or self._counts_plain:
            counted = float(opened) if self._floats and type(opened) is int else opened
            self.digest.update(mac_bytes(counted))
        return opened

    def _open(self, value: Json, path: FieldPath, keys: tuple[str, ...]) -> Json:
        if value == "":
            return value
        where = self._where.with_field(format_path(path))
        if not isinstance(value, str) or not encrypted_type(value):
            problem = "a value that must be encrypted is not"
            hint = "encrypt the file again; a patch cannot put plain text where SOPS expects none"
            raise RenderError("render.sops.plain", problem, location=where, hint=hint)
        try:
            return decrypt_value(value, self._key, ":".join(keys) + ":")
        except CipherError:
            problem = "an encrypted value was changed, or moved from another key"
            hint = "restore it from Git, or encrypt the file again"
            raise RenderError("render.sops.value", problem, location=where, hint=hint) from None


def encrypted_type(value: Json) -> str:
    """The type inside an encrypted value; empty if it is none."""
    found = _ENVELOPE.match(value) if isinstance(value, str) else None
    return found["type"] if found else ""


def decrypt_value(envelope: str, key: bytes, bound_to: str) -> Json:
    """Decrypt one value and give it its type back."""
    found = _ENVELOPE.match(envelope)
    if found is None:
        raise CipherError
    try:
        data, iv, tag = (
            base64.b64decode(found[part], validate=True) for part in ("data", "iv", "tag")
        )
    except binascii.Error:
        raise CipherError from None
    return _typed(_decrypt(key, iv, data + tag, bound_to.encode()), found["type"])


def mac_bytes(value: Json) -> bytes:
    """A value as the seal counts it."""
    if isinstance(value, bool):
        return b"True" if value else b"False"
    if isinstance(value, float):
        text = format(Decimal(repr(value)), "f")
        return (text.rstrip("0").rstrip(".") if "." in text else text).encode()
    return str(value).encode("utf-8", "surrogateescape")


def _decrypt(key: bytes, iv: bytes, sealed: bytes, bound_to: bytes) -> bytes:
    try:
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415  (an extra)
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415
    except ImportError:
        raise missing_extra_error("cryptography") from None
    try:
        return AESGCM(key).decrypt(iv, sealed, bound_to)
    except (InvalidTag, ValueError):
        raise CipherError from None


def _typed(raw: bytes, name: str) -> Json:
    text = raw.decode("utf-8", "surrogateescape")
    try:
        match name:
            case "str" | "bytes" | "time" | "comment":
                return text
            case "int":
                return int(text)
            case "float":
                return float(text)
            case "bool":
                return {"true": True, "false": False}[text.lower()]
            case _:
                raise CipherError
    except (ValueError, KeyError):
        raise CipherError from None


def missing_extra_error(module: str) -> RenderError:
    """Decryption is an extra, so that those without secrets need not carry it."""
    return RenderError(
        "render.sops.extra",
        f"SOPS files can only be read with the Python package `{module}`",
        hint="install it: `pip install 'tidegate[sops]'`",
    )
