"""A document of a file, and its duplicate keys."""

from __future__ import annotations

import msgspec

from tidegate.errors import Location
from tidegate.model.k8s.objects import FieldPath, Json

MAX_PARTS = 2
"""Levels of inner fields that are the value of a field, such as the name in an item of a list."""


class DuplicateKey(msgspec.Struct, frozen=True, order=True, gc=False):
    """A key that occurs twice in one mapping. The last one wins."""

    path: FieldPath
    """The path of the key."""
    first: Location
    """The location of the first occurrence."""
    last: Location
    """The location of the last occurrence."""


class Document(msgspec.Struct, frozen=True, gc=False):
    """One object as written in a file.

    The body is never changed: parts of it may be shared.
    """

    body: dict[str, Json]
    """The object."""
    location: Location
    """Where the object starts."""
    document_index: int = 0
    """The index of the YAML document in its file."""
    list_path: FieldPath = ()
    """The path to the object, if it is an item of a List."""
    duplicates: tuple[DuplicateKey, ...] = ()
    """Duplicate keys of the object."""
    unknown_fields: tuple[FieldPath, ...] = ()
    """Fields with variables whose values are unknown; they have example values."""

    def is_unknown(self, path: FieldPath) -> bool:
        """Return whether a field has an example value, or a part of one, or consists of one."""
        return any(
            path[: len(unknown)] == unknown
            or (unknown[: len(path)] == path and len(unknown) <= len(path) + MAX_PARTS)
            for unknown in self.unknown_fields
        )

    def __repr__(self) -> str:
        # A body may be a Secret, and printed values end up in logs.
        return f"Document({self.location})"


def format_path(path: FieldPath) -> str:
    """Format a field path: `spec.ports[0]`, `metadata.labels["app.dev/name"]`."""
    text = ""
    for key in path:
        if isinstance(key, int):
            text += f"[{key}]"
        elif not key or any(char in key for char in '.[]" '):
            text += '["' + key.replace('"', '\\"') + '"]'
        else:
            text += f".{key}" if text else key
    return text
