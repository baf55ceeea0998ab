"""Reading what stands in a body: a part by its path, as the type it should have.

A look at one object reads dozens of parts, so each function walks by itself: calling another one
would cost more than the walk.
"""

from __future__ import annotations

from tidegate.model.objects import Json

NOTHING: dict[str, Json] = {}


def part(body: Json, *path: str) -> Json:
    """What stands at a path; None where there is nothing."""
    for name in path:
        body = body.get(name) if isinstance(body, dict) else None
    return body


def mapping(body: Json, *path: str) -> dict[str, Json]:
    for name in path:
        body = body.get(name) if isinstance(body, dict) else None
    return body if isinstance(body, dict) else NOTHING


def mappings(body: Json, *path: str) -> list[dict[str, Json]]:
    """The mappings of a list."""
    for name in path:
        body = body.get(name) if isinstance(body, dict) else None
    return [one for one in body if isinstance(one, dict)] if isinstance(body, list) else []


def listed(body: Json, *path: str) -> list[Json]:
    for name in path:
        body = body.get(name) if isinstance(body, dict) else None
    return body if isinstance(body, list) else []


def number(body: Json, *path: str, default: int = 0) -> int:
    for name in path:
        body = body.get(name) if isinstance(body, dict) else None
    return body if isinstance(body, int) and not isinstance(body, bool) else default


def labels_of(body: Json) -> tuple[tuple[str, str], ...]:
    """The labels of an object that are texts, by name."""
    labels = mapping(body, "metadata", "labels")
    return tuple(sorted((key, one) for key, one in labels.items() if isinstance(one, str)))


def text(body: Json, *path: str, default: str = "") -> str:
    for name in path:
        body = body.get(name) if isinstance(body, dict) else None
    return body if isinstance(body, str) and body else default
