"""Places in a body by path: `containers[].env[].name`, `volumes[].secret?.secretName`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

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


class _Part(NamedTuple):
    """One name of a path, and whether it stands for every item or may be missing."""

    name: str
    is_list: bool
    is_optional: bool


@cache
def _parts(path: str) -> tuple[_Part, ...]:
    return tuple(
        _Part(part.rstrip("[]?"), part.endswith("[]"), part.endswith("?"))
        for part in path.split(".")
    )


def _each(body: Json, parts: tuple[_Part, ...], start: str) -> Iterator[tuple[str, Json]]:
    for place, part in enumerate(parts):
        value = body.get(part.name) if isinstance(body, dict) else None
        start = f"{start}.{part.name}" if start else part.name
        if part.is_list:
            for number, item in enumerate(value if isinstance(value, list) else ()):
                yield from _each(item, parts[place + 1 :], f"{start}[{number}]")
            return
        if value is None and part.is_optional:
            return
        body = value
    yield start, body
