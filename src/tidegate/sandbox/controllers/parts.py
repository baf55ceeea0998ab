"""Reading parts of bodies: what is not there, or is of another type, is empty."""

from __future__ import annotations

from datetime import datetime

from tidegate.model.moment import Ms
from tidegate.model.objects import Json


def part_of(body: Json, *path: str) -> Json:
    """What stands at a path; None where nothing does."""
    found = body
    for name in path:
        if not isinstance(found, dict):
            return None
        found = found.get(name)
    return found


def dict_of(body: Json, *path: str) -> dict[str, Json]:
    found = part_of(body, *path)
    return found if isinstance(found, dict) else {}


def list_of(body: Json, *path: str) -> list[Json]:
    found = part_of(body, *path)
    return found if isinstance(found, list) else []


def dicts_of(body: Json, *path: str) -> list[dict[str, Json]]:
    """The objects of a list."""
    return [one for one in list_of(body, *path) if isinstance(one, dict)]


def text_of(body: Json, *path: str) -> str:
    found = part_of(body, *path)
    return found if isinstance(found, str) else ""


def number_of(body: Json, *path: str) -> int | None:
    found = part_of(body, *path)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def count_of(body: Json, *path: str) -> int:
    return number_of(body, *path) or 0


def moment_of(body: Json, *path: str) -> Ms | None:
    """A time as objects carry it: RFC 3339, whole seconds."""
    text = text_of(body, *path)
    return Ms(int(datetime.fromisoformat(text).timestamp()) * 1_000) if text else None


def condition_of(body: Json, name: str) -> dict[str, Json]:
    """The condition of this type; empty where there is none."""
    for one in dicts_of(body, "status", "conditions"):
        if one.get("type") == name:
            return one
    return {}


def has_condition(body: Json, name: str) -> bool:
    """Whether the condition of this type is true."""
    return condition_of(body, name).get("status") == "True"
