"""Secret values: a wrapper that is not printed, and the fields of objects that hold them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tidegate.model.k8s.objects import FieldPath, Json

SECRET_DATA_FIELDS = ("data", "stringData")
PUBLIC_SECRET_FIELDS = frozenset(
    {"apiVersion", "kind", "metadata", "type", "immutable", "status", "sops"}
)
"""Fields of a Secret without secret values. Any other field may be a misspelled data field."""
LAST_APPLIED_PATH = ("metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration")


@dataclass(frozen=True, slots=True)
class SecretValue:
    """A wrapper for a value that must not be shown. Only `reveal` returns the value."""

    _value: str = field(repr=False)

    def reveal(self) -> str:
        return self._value


def is_secret_kind(name: object) -> bool:
    """Return whether objects of this kind hold secrets, in any group and spelling."""
    return isinstance(name, str) and name.strip().casefold() in {"secret", "secrets"}


def secret_field_paths(body: dict[str, Json]) -> Iterator[FieldPath]:
    """Yield the paths of the values of a Secret, valid or not. Yields nothing for other objects."""
    if not is_secret_kind(body.get("kind")):
        return
    for name, value in body.items():
        if name in SECRET_DATA_FIELDS and isinstance(value, dict):
            yield from ((name, key) for key in value)
        elif name not in PUBLIC_SECRET_FIELDS:
            yield (name,)
    yield LAST_APPLIED_PATH


def value_at_path(body: Json, path: FieldPath) -> Json:
    """Return the value at a path. Returns None if there is none."""
    for step in path:
        if isinstance(body, dict) and isinstance(step, str):
            body = body.get(step)
        elif isinstance(body, list) and isinstance(step, int) and step < len(body):
            body = body[step]
        else:
            return None
    return body


def leaf_texts(value: Json) -> Iterator[str]:
    """Yield all leaf values as text, except null and booleans, which are too common."""
    if isinstance(value, dict):
        for item in value.values():
            yield from leaf_texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from leaf_texts(item)
    elif value is not None and not isinstance(value, bool):
        yield str(value)
