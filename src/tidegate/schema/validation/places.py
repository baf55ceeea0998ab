"""Places in a body by path: `containers[].env[].name`, `volumes[].secret?.secretName`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from tidegate.model.objects import Json


def each(body: Json, path: str) -> Iterator[tuple[str, Json]]:
    """Every place that a path means, with what stands there; None where nothing does.

    `[]` means every item, and a `?` that what follows is not asked for where nothing stands.
    """
    return _each(body, _parts(path), "")


def at(body: Json, path: str) -> Json:
    """What stands at a path without `[]`; None where nothing does."""
    for part in path.split("."):
        body = body.get(part) if isinstance(body, dict) else None
    return body


def is_empty(value: Json) -> bool:
    """Whether a value is what Go has where nothing was said."""
    return value is None or value in ("", 0, [], {})


@cache
def _parts(path: str) -> tuple[tuple[str, str], ...]:
    """The names of a path, each with the mark behind it."""
    names = ((part, part.rstrip("[]?")) for part in path.split("."))
    return tuple((name, part.removeprefix(name)) for part, name in names)


def _each(body: Json, parts: tuple[tuple[str, str], ...], start: str) -> Iterator[tuple[str, Json]]:
    for place, (name, mark) in enumerate(parts, 1):
        body = body.get(name) if isinstance(body, dict) else None
        start = f"{start}.{name}" if start else name
        if mark == "[]":
            for number, item in enumerate(body if isinstance(body, list) else ()):
                yield from _each(item, parts[place:], f"{start}[{number}]")
            return
        if body is None and mark == "?":
            return
    yield start, body
