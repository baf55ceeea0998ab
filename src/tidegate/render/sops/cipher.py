"""One encrypted value: `ENC[AES256_GCM,data:…,iv:…,tag:…,type:…]`.

A value is bound to the path of keys it stands under; moved elsewhere it does not open.
"""

from __future__ import annotations

import base64
import binascii
import re
from decimal import Decimal

from tidegate.errors import RenderError
from tidegate.model.objects import Json

_ENVELOPE = re.compile(
    r"ENC\[AES256_GCM,data:(?P<data>[^,]+),iv:(?P<iv>[^,]+),tag:(?P<tag>[^,]+),type:(?P<type>[a-z]+)\]"
)


class CipherError(ValueError):
    """A value that does not open; whoever knows the place makes an error of it."""


def type_of(value: Json) -> str:
    """The type inside an encrypted value; empty if it is none."""
    found = _ENVELOPE.match(value) if isinstance(value, str) else None
    return found["type"] if found else ""


def open_value(envelope: str, key: bytes, bound_to: str) -> Json:
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


def seal_bytes(value: Json) -> bytes:
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
        raise missing_extra("cryptography") from None
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


def missing_extra(module: str) -> RenderError:
    """Decryption is an extra, so that those without secrets need not carry it."""
    return RenderError(
        "render.sops.extra",
        f"SOPS files can only be read with the Python package `{module}`",
        hint="install it: `pip install 'tidegate[sops]'`",
    )
