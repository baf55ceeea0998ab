"""Precompiled forms of files that ship with Tidegate, which load about thirty times as fast.

Reading with locations for errors is slow, and shipped files have no errors; a small plan spent a
fifth of its time on them. `make golden` writes the precompiled form. If its digest does not match
the texts, the texts are read instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import TypeVar

import msgspec

Value = TypeVar("Value")


def digest_texts(texts: Mapping[str, bytes]) -> str:
    """Return a digest of texts and their names."""
    return blake2b(b"\0".join(texts.values()), digest_size=16).hexdigest()


def read_precompiled(content: bytes, texts: Mapping[str, bytes], into: type[Value]) -> Value | None:
    """Return the precompiled value of the texts. Returns None if the texts have changed since."""
    digest, _, value = content.partition(b"\n")
    return msgspec.json.decode(value, type=into) if digest.decode() == digest_texts(texts) else None
