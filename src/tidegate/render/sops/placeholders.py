"""Stand-ins for what we have no key for: of the right type, easy to know, and saying nothing."""

from __future__ import annotations

import base64

import msgspec

from tidegate.documents import Document, FieldPath
from tidegate.model.objects import Json
from tidegate.render.sops.cipher import type_of
from tidegate.render.sops.formats import detect
from tidegate.render.sops.metadata import KEY
from tidegate.render.sops.tree import replace_encrypted

PLACEHOLDER = "tidegate-placeholder"
"""What stands for a string. It can also be a name or a label."""

_BY_TYPE: dict[str, Json] = {"int": 0, "float": 0.5, "bool": False, "time": "1970-01-01T00:00:00Z"}
_ENCODED = base64.b64encode(PLACEHOLDER.encode()).decode()


def placeholders(document: Document) -> Document:
    """The document with a placeholder for each encrypted value, and without its `sops` block."""
    is_secret = document.body.get("kind") == "Secret"

    def stand_in(value: str, path: FieldPath) -> Json:
        if is_secret and path[:1] == ("data",):
            return _ENCODED
        return _BY_TYPE.get(type_of(value), PLACEHOLDER)

    if KEY in document.body:
        body = replace_encrypted(document.body, stand_in)
        return msgspec.structs.replace(document, body=body)
    entries = document.body.get("data")
    if not is_secret or not isinstance(entries, dict):
        return document
    replaced = {name: _ENCODED if _is_file(name, text) else text for name, text in entries.items()}
    return msgspec.structs.replace(document, body={**document.body, "data": replaced})


def _is_file(name: str, value: Json) -> bool:
    try:
        return isinstance(value, str) and detect(base64.b64decode(value), name) is not None
    except ValueError:
        return False
