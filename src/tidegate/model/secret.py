"""What must not be shown: a value that does not print, and where objects hold such values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tidegate.model.objects import FieldPath, Json

SECRET_PARTS = ("data", "stringData")
OPEN_PARTS = frozenset({"apiVersion", "kind", "metadata", "type", "immutable", "status", "sops"})
"""Fields of a Secret that hold no value; whatever else stands in one may be a misspelt value."""
LAST_APPLIED = ("metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration")


@dataclass(frozen=True, slots=True)
class Secret:
    """Wraps what must not be shown; `reveal` is the one way to read it, and easy to search for."""

    _value: str = field(repr=False)

    def reveal(self) -> str:
        return self._value


def is_secret_kind(name: object) -> bool:
    """Whether an object of this kind holds secrets, in whichever group and however it is spelt."""
    return isinstance(name, str) and name.strip().casefold() in {"secret", "secrets"}


def secret_fields(body: dict[str, Json]) -> Iterator[FieldPath]:
    """Where the values of a Secret stand, well-formed or not; nowhere in other objects."""
    if not is_secret_kind(body.get("kind")):
        return
    for name, part in body.items():
        if name in SECRET_PARTS and isinstance(part, dict):
            yield from ((name, key) for key in part)
        elif name not in OPEN_PARTS:
            yield (name,)
    yield LAST_APPLIED


def value_at(body: Json, path: FieldPath) -> Json:
    """What stands at a place; None where nothing does."""
    for step in path:
        if isinstance(body, dict) and isinstance(step, str):
            body = body.get(step)
        elif isinstance(body, list) and isinstance(step, int) and step < len(body):
            body = body[step]
        else:
            return None
    return body


def texts_in(value: Json) -> Iterator[str]:
    """All values below a place as texts; words that stand everywhere are none."""
    if isinstance(value, dict):
        for part in value.values():
            yield from texts_in(part)
    elif isinstance(value, list):
        for part in value:
            yield from texts_in(part)
    elif value is not None and not isinstance(value, bool):
        yield str(value)
