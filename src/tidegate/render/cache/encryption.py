"""Encryption of cached renders that contain secrets, with the user's local key."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable

from tidegate.documents import Document
from tidegate.model.k8s.secret import leaf_texts, secret_field_paths, value_at_path
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.render.sops.tree import encrypted_type

NONCE_SIZE = 12
_USER_IN_ADDRESS = lazy_regex(rb"://[^/\s\x00-\x1f]*@")


def has_no_secrets(documents: Iterable[Document], encoded: bytes) -> bool:
    """Return whether no value of a Secret is in plain text, and no address has a user."""
    if _USER_IN_ADDRESS.search(encoded):
        return False
    return all(
        bool(encrypted_type(text))
        for document in documents
        for path in secret_field_paths(document.body)
        for text in leaf_texts(value_at_path(document.body, path))
    )


def hash_name(name: str, key: bytes) -> str:
    """Return a keyed hash of a name, so that values in it cannot be guessed."""
    return hashlib.blake2b(name.encode(), key=key, digest_size=32).hexdigest()


def encrypt(text: bytes, key: bytes) -> bytes | None:
    """Encrypt a text; None if `cryptography` is not installed."""
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - an extra
    except ImportError:
        return None
    nonce = secrets.token_bytes(NONCE_SIZE)
    return nonce + AESGCM(key).encrypt(nonce, text, None)


def decrypt(encrypted: bytes, key: bytes) -> bytes | None:
    """Decrypt a text; None if the key does not fit, or the text was changed."""
    try:
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - an extra
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415
    except ImportError:
        return None
    try:
        return AESGCM(key).decrypt(encrypted[:NONCE_SIZE], encrypted[NONCE_SIZE:], None)
    except (InvalidTag, ValueError):
        return None
