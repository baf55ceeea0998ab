"""Reading what stands in a body: a part by its path, as the type it should have."""

from __future__ import annotations

from tidegate.model.objects import Json

NOTHING: dict[str, Json] = {}


def part(body: Json, *path: str) -> Json:
    """What stands at a path; None where there is nothing."""
    for name in path:
        if not isinstance(body, dict):
            return None
        body = body.get(name)
    return body


def mapping(body: Json, *path: str) -> dict[str, Json]:
    found = part(body, *path)
    return found if isinstance(found, dict) else NOTHING


def mappings(body: Json, *path: str) -> list[dict[str, Json]]:
    """The mappings of a list."""
    found = part(body, *path)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def listed(body: Json, *path: str) -> list[Json]:
    found = part(body, *path)
    return found if isinstance(found, list) else []


def number(body: Json, *path: str, default: int = 0) -> int:
    found = part(body, *path)
    return found if isinstance(found, int) and not isinstance(found, bool) else default


def text(body: Json, *path: str, default: str = "") -> str:
    found = part(body, *path)
    return found if isinstance(found, str) and found else default
