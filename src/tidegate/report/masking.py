"""Rendered objects as text, with secret values masked."""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.model.change import MASK
from tidegate.model.objects import FieldPath, Json
from tidegate.model.secret import secret_field_paths


def mask_secrets(body: dict[str, Json], hidden: Iterable[FieldPath] = ()) -> dict[str, Json]:
    """Return the object without the values of a Secret and without values encrypted in Git."""
    shown: Json = body
    for path in (*secret_field_paths(body), *hidden):
        shown = _mask_field(shown, path)
    if not isinstance(shown, dict):
        raise TypeError(shown)
    return shown


def _mask_field(value: Json, path: FieldPath) -> Json:
    """Return the value with a mask at a path; unchanged where the path does not exist."""
    if not path:
        return MASK
    head, subpath = path[0], path[1:]
    if isinstance(value, dict) and isinstance(head, str) and head in value:
        return {**value, head: _mask_field(value[head], subpath)}
    if isinstance(value, list) and isinstance(head, int) and head < len(value):
        return [*value[:head], _mask_field(value[head], subpath), *value[head + 1 :]]
    return value
