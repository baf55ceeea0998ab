"""What an overlay may be made of, and the files in it that may be encrypted."""

from __future__ import annotations

from enum import StrEnum

import msgspec

KUSTOMIZATION_NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
LARGEST_TREE = 256 * 1024 * 1024
"""Bytes of all files that one overlay may reach."""


class Use(StrEnum):
    """What a file is there for that may be encrypted."""

    FILE = "a file of a Secret"
    ENV = "a file of variables of a Secret"
    PATCH = "a patch"


class Input(msgspec.Struct, frozen=True, kw_only=True):
    """A file that Flux decrypts before it builds. The ending of `name` says its format."""

    path: str
    name: str
    use: Use
    content: bytes

    def __repr__(self) -> str:
        return f"Input(path={self.path!r})"
