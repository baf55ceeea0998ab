"""What may be shown of an object: its secrets replaced by a mark that says nothing of them."""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.model.objects import Json

Path = tuple[str | int, ...]
MASK = "***"
SECRET_PARTS = ("data", "stringData")
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def masked(body: dict[str, Json], hidden: Iterable[Path] = ()) -> dict[str, Json]:
    """The object without the values of a Secret, and without what stood encrypted in its file."""
    shown: Json = body
    if body.get("apiVersion") == "v1" and body.get("kind") == "Secret":
        for part in SECRET_PARTS:
            values = body.get(part)
            for key in values if isinstance(values, dict) else ():
                shown = _hide(shown, (part, key))
            if values is not None and not isinstance(values, dict):
                shown = _hide(shown, (part,))
        shown = _hide(shown, ("metadata", "annotations", LAST_APPLIED))
    for path in hidden:
        shown = _hide(shown, path)
    if not isinstance(shown, dict):
        raise TypeError(shown)
    return shown


def _hide(value: Json, path: Path) -> Json:
    """The value with a mark at a path; the same where there is nothing."""
    if not path:
        return MASK
    head, rest = path[0], path[1:]
    if isinstance(value, dict) and isinstance(head, str) and head in value:
        return {**value, head: _hide(value[head], rest)}
    if isinstance(value, list) and isinstance(head, int) and head < len(value):
        return [*value[:head], _hide(value[head], rest), *value[head + 1 :]]
    return value
