"""The nouns of reading: a document, and a key that is written twice in it."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from tidegate.errors import Place
from tidegate.model import objects
from tidegate.model.objects import Json

FieldPath: TypeAlias = objects.FieldPath


class Duplicate(msgspec.Struct, frozen=True, order=True, gc=False):
    """A key that is written twice in one mapping. The last one counts."""

    path: FieldPath
    first: Place
    last: Place


class Document(msgspec.Struct, frozen=True, gc=False):
    """One object as it stands in a file.

    `part` and `inside` say where it was found: the number of the YAML document in its file, and the
    path to it when it is an item of a List. A body is never changed: parts of it may be shared.
    """

    body: dict[str, Json]
    place: Place
    part: int = 0
    inside: FieldPath = ()
    duplicates: tuple[Duplicate, ...] = ()

    def __repr__(self) -> str:
        # A body may be a Secret, and what is printed ends in logs.
        return f"Document({self.place})"


def path_text(path: FieldPath) -> str:
    """A path as people write it: `spec.ports[0]`, and `metadata.labels["app.dev/name"]`."""
    text = ""
    for key in path:
        if isinstance(key, int):
            text += f"[{key}]"
        elif not key or any(sign in key for sign in '.[]" '):
            text += '["' + key.replace('"', '\\"') + '"]'
        else:
            text += f".{key}" if text else key
    return text
