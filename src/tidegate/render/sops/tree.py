"""Decryption of every value of a tree, with the digest for the MAC.

An encrypted value is `ENC[AES256_GCM,data:…,iv:…,tag:…,type:…]`. It is bound to the path of its
keys; under another path it cannot be decrypted.
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

_ChangeValue: TypeAlias = Callable[[Json, FieldPath], Json]
_ENVELOPE = lazy_regex(
    r"ENC\[AES256_GCM,data:(?P<data>[^,]+),iv:(?P<iv>[^,]+),tag:(?P<tag>[^,]+),type:(?P<type>[a-z]+)\]"
)


class CipherError(ValueError):
    """An error: a value cannot be decrypted. Callers add the location."""


class MacStatus(StrEnum):
    """Result of the MAC check of a file."""

    INTACT = "intact"
    BROKEN = "broken"
    ABSENT = "absent"


class DecryptedTrees(msgspec.Struct, frozen=True):
    """Decrypted trees, and the digest of all values."""

    trees: tuple[Json, ...]
    """The documents."""
    digest: str
    """The digest of all values."""

    def __repr__(self) -> str:
        return f"DecryptedTrees({self.digest})"


def decrypt_trees(
    trees: Iterable[Json],
    key: bytes,
    metadata: Metadata,
    location: Location,
    *,
    floats: bool = False,
) -> DecryptedTrees:
    """Decrypt the documents of one file.

    With `floats`, integers are digested as floats, as SOPS does for JSON.

    Like `Decrypt` in `sops.go` of SOPS 3.13.2.
    """
    decryptor = _Decryptor(key, metadata, location, floats=floats)
    decrypted = tuple(_map_values(tree, decryptor.decrypt) for tree in trees)
    return DecryptedTrees(decrypted, decryptor.digest.hexdigest().upper())


def check_mac(decrypted: DecryptedTrees, key: bytes, metadata: Metadata) -> MacStatus:
    """Compare the digest with the decrypted MAC.

    Like `DecryptTree` in `cmd/sops/common/common.go` of SOPS 3.13.2.
    """
    if not metadata.mac:
        return MacStatus.ABSENT
    try:
        mac = decrypt_value(metadata.mac, key, metadata.mac_time)
    except CipherError:
        return MacStatus.BROKEN
    return MacStatus.INTACT if mac == decrypted.digest else MacStatus.BROKEN


def encrypted_fields(tree: Json) -> tuple[FieldPath, ...]:
    """Return the paths of all encrypted values, by their form."""
    paths: list[FieldPath] = []

    def record(value: str, path: FieldPath) -> Json:
        paths.append(path)
        return value

    replace_encrypted(tree, record)
    return tuple(paths)


def replace_encrypted(tree: Json, replacement: Callable[[str, FieldPath], Json]) -> Json:
    """Return the tree without its block, each encrypted value replaced."""

    def change(value: Json, path: FieldPath) -> Json:
        return (
            replacement(value, path) if isinstance(value, str) and encrypted_type(value) else value
        )

    return _map_values(tree, change)


def _map_values(tree: Json, change: _ChangeValue, path: FieldPath = ()) -> Json:
    """Return the tree without its block, each value changed."""
    if isinstance(tree, dict):
        entries = [(key, item) for key, item in tree.items() if path or key != KEY]
        return {key: _map_values(item, change, (*path, key)) for key, item in entries}
    if isinstance(tree, list):
        # SOPS writes the comments of a list as items of it.
        items = [item for item in tree if encrypted_type(item) != "comment"]
        return [_map_values(item, change, (*path, index)) for index, item in enumerate(items)]
    return change(tree, path)


class _Decryptor:
    """The decryption of the values of one file, and the digest for its MAC."""

    def __init__(self, key: bytes, metadata: Metadata, location: Location, *, floats: bool) -> None:
        self._key = key
        self._location = location
        self._floats = floats
        self._is_encrypted = encryption_selector(metadata, location)
        self._digests_plain = not metadata.mac_only_encrypted
        self.digest = hashlib.sha512()
        if metadata.mac_only_encrypted:
            # SOPS starts with another digest, so that the two kinds are not interchangeable.
            self.digest.update(hashlib.sha256(b"sops").digest())

    def decrypt(self, value: Json, path: FieldPath) -> Json:
        """Return the decrypted value and add it to the digest."""
        if value is None:
            return None
        keys = tuple(key for key in path if isinstance(key, str))
        # A build drops comments; without them, the form of a value decides.
        is_encrypted = (
            self._is_encrypted(keys) if self._is_encrypted else bool(encrypted_type(value))
        )
        decrypted = self._decrypt_value(value, path, keys) if is_encrypted else value
        if is_encrypted or self._digests_plain:
            digested = float(decrypted) if self._floats and type(decrypted) is int else decrypted
            self.digest.update(mac_bytes(digested))
        return decrypted

    def _decrypt_value(self, value: Json, path: FieldPath, keys: tuple[str, ...]) -> Json:
        if value == "":
            return value
        location = self._location.with_field(format_path(path))
        if not isinstance(value, str) or not encrypted_type(value):
            problem = "a value that must be encrypted is plain text"
            hint = "encrypt the file again; a patch must not add plain text to encrypted fields"
            raise RenderError("render.sops.plain", problem, location=location, hint=hint)
        try:
            return decrypt_value(value, self._key, ":".join(keys) + ":")
        except CipherError:
            problem = "an encrypted value was changed, or moved from another key"
            hint = "restore it from Git, or encrypt the file again"
            raise RenderError("render.sops.value", problem, location=location, hint=hint) from None


def encrypted_type(value: Json) -> str:
    """Return the type in an encrypted value; empty for a plain value."""
    match = _ENVELOPE.match(value) if isinstance(value, str) else None
    return match["type"] if match else ""


def decrypt_value(envelope: str, key: bytes, bound_to: str) -> Json:
    """Decrypt one value and convert it to its type.

    Raises CipherError.

    Like `Decrypt` in `aes/cipher.go` of SOPS 3.13.2.
    """
    match = _ENVELOPE.match(envelope)
    if match is None:
        raise CipherError
    try:
        data, iv, tag = (
            base64.b64decode(match[part], validate=True) for part in ("data", "iv", "tag")
        )
    except binascii.Error:
        raise CipherError from None
    return _convert(_decrypt(key, iv, data + tag, bound_to.encode()), match["type"])


def mac_bytes(value: Json) -> bytes:
    """Return a value as the MAC covers it.

    Like `ToBytes` in `sops.go` of SOPS 3.13.2.
    """
    if isinstance(value, bool):
        return b"True" if value else b"False"
    if isinstance(value, float):
        text = format(Decimal(repr(value)), "f")
        return (text.rstrip("0").rstrip(".") if "." in text else text).encode()
    return str(value).encode("utf-8", "surrogateescape")


def _decrypt(key: bytes, iv: bytes, encrypted: bytes, bound_to: bytes) -> bytes:
    try:
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415  (an extra)
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415
    except ImportError:
        raise missing_extra_error("cryptography") from None
    try:
        return AESGCM(key).decrypt(iv, encrypted, bound_to)
    except (InvalidTag, ValueError):
        raise CipherError from None


def _convert(raw: bytes, type_name: str) -> Json:
    text = raw.decode("utf-8", "surrogateescape")
    try:
        match type_name:
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
    """Return the error for a missing package: decryption is an optional extra."""
    return RenderError(
        "render.sops.extra",
        f"reading SOPS files needs the Python package `{module}`",
        hint="install it: `pip install 'tidegate[sops]'`",
    )
