"""What may be shown of an object: its secrets replaced by a mark that says nothing of them."""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.model.change import MASK
from tidegate.model.objects import FieldPath, Json
from tidegate.model.secret import secret_fields


def masked(body: dict[str, Json], hidden: Iterable[FieldPath] = ()) -> dict[str, Json]:
    """The object without the values of a Secret, and without what stood encrypted in its file."""
    shown: Json = body
    for path in (*secret_fields(body), *hidden):
        shown = _hide(shown, path)
    if not isinstance(shown, dict):
        raise TypeError(shown)
    return shown


def _hide(value: Json, path: FieldPath) -> Json:
    """The value with a mark at a path; the same where there is nothing."""
    if not path:
        return MASK
    head, rest = path[0], path[1:]
    if isinstance(value, dict) and isinstance(head, str) and head in value:
        return {**value, head: _hide(value[head], rest)}
    if isinstance(value, list) and isinstance(head, int) and head < len(value):
        return [*value[:head], _hide(value[head], rest), *value[head + 1 :]]
    return value
