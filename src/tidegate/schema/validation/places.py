"""Places in a body by path: `containers[].env[].name`, `volumes[].secret?.secretName`."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.model.objects import Json


def each(body: Json, path: str) -> Iterator[tuple[str, Json]]:
    """Every place that a path means, with what stands there; None where nothing does.

    `[]` means every item, and a `?` that what follows is not asked for where nothing stands.
    """
    yield from _each(body, path.split("."), "")


def at(body: Json, path: str) -> Json:
    """What stands at a path without `[]`; None where nothing does."""
    for part in path.split("."):
        body = body.get(part) if isinstance(body, dict) else None
    return body


def is_empty(value: Json) -> bool:
    """Whether a value is what Go has where nothing was said."""
    return value is None or value in ("", 0, [], {})


def _each(body: Json, parts: list[str], start: str) -> Iterator[tuple[str, Json]]:
    if not parts:
        yield start, body
        return
    name = parts[0].rstrip("[]?")
    value = body.get(name) if isinstance(body, dict) else None
    place = f"{start}.{name}" if start else name
    if parts[0].endswith("[]"):
        for number, item in enumerate(value if isinstance(value, list) else ()):
            yield from _each(item, parts[1:], f"{place}[{number}]")
    elif value is not None or not parts[0].endswith("?"):
        yield from _each(value, parts[1:], place)
