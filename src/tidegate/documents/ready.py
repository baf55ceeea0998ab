"""Files of ours that are also there as one that is read thirty times as fast.

Reading for users, with a place for each mistake, takes its time; files that come with tidegate have
no mistakes, and a small plan spent a fifth of its time on them. `make golden` writes what they come
to; while that is not of these very texts, they are read instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import TypeVar

import msgspec

Value = TypeVar("Value")


def digest_of(texts: Mapping[str, bytes]) -> str:
    return blake2b(b"\0".join(texts.values()), digest_size=16).hexdigest()


def read_ready(content: bytes, texts: Mapping[str, bytes], into: type[Value]) -> Value | None:
    """What the texts come to; None where somebody has changed them since."""
    digest, _, value = content.partition(b"\n")
    return msgspec.json.decode(value, type=into) if digest.decode() == digest_of(texts) else None
