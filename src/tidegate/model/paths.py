"""Paths into an object.

spec.secretName                 what stands there
spec.list[0].name               an item; [-1] is the last
status.conditions[type=Ready]   the first item whose key has this value
metadata.annotations["a.b/c"]   a name that needs quotes
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TypeAlias

from tidegate.model.objects import Json
from tidegate.model.patterns import late

Step: TypeAlias = str | int | tuple[str, str]
_STEP = late(
    r"\.?(?P<name>[^\s.\[\]|()'\"${}]+)"
    r"|\[(?P<index>-?\d+)\]"
    r"|\[\"(?P<quoted>[^\"]+)\"\]"
    r"|\[(?P<key>[^\s=\[\]\"]+)=(?P<value>[^\[\]]*)\]"
)
_ITEM = late(r"\[(?P<what>[^\]]*)\]")


@cache
def parse_path(text: str) -> tuple[Step, ...]:
    """The steps of a path. Raises ValueError for what is none."""
    steps: list[Step] = []
    place = 0
    while place < len(text):
        found = _STEP.match(text, place)
        if found is None or (place == 0 and text.startswith(".")):
            raise ValueError(f"`{text}` is no path")
        place = found.end()
        if found["index"]:
            steps.append(int(found["index"]))
        elif found["key"]:
            steps.append((found["key"], found["value"]))
        else:
            steps.append(found["name"] or found["quoted"])
    if not steps:
        raise ValueError("a path is empty")
    return tuple(steps)


def find(body: Json, path: str) -> Json:
    """What stands at a path; None where there is nothing."""
    return walk(body, parse_path(path))


def walk(body: Json, steps: Iterable[Step]) -> Json:
    """What stands at the end of some steps; None where there is nothing."""
    for step in steps:
        if isinstance(body, dict) and isinstance(step, str):
            body = body.get(step)
        elif isinstance(body, list) and isinstance(step, int):
            body = body[step] if -len(body) <= step < len(body) else None
        elif isinstance(body, list) and isinstance(step, tuple):
            body = next((one for one in body if _is_chosen(one, *step)), None)
        else:
            return None
    return body


def _is_chosen(item: Json, key: str, value: str) -> bool:
    return isinstance(item, dict) and str(item.get(key)) == value


def path_in(body: Json, told: str) -> tuple[str | int, ...]:
    """The way to a field as servers name it, as far as it is there.

    `spec.ports[port=80,protocol="TCP"].name`, `data.a.b`, `.spec.containers[0]`: names may have
    dots in them, and items may be told by their keys.
    """
    path: list[str | int] = []
    rest = told.lstrip(".")
    while rest:
        step, length = _next_step(body, rest)
        if step is None:
            break
        path.append(step)
        body = body[step]  # type: ignore[index]
        rest = rest[length:].lstrip(".")
    return tuple(path)


def _next_step(body: Json, rest: str) -> tuple[str | int | None, int]:
    """Which key or item comes next, and how much of the text names it."""
    chosen = _ITEM.match(rest)
    if isinstance(body, list) and chosen:
        return _item_at(body, chosen["what"]), chosen.end()
    if isinstance(body, dict) and chosen:
        key = chosen["what"].strip("\"'")
        return key if key in body else None, chosen.end()
    if isinstance(body, dict):
        keys = [key for key in body if _is_first(rest, key)]
        key = max(keys, key=len, default="")
        return key or None, len(key)
    return None, 0


def _is_first(rest: str, key: str) -> bool:
    return rest.startswith(key) and rest[len(key) : len(key) + 1] in {"", ".", "["}


def _item_at(items: list[Json], what: str) -> int | None:
    """An item by its number, or by some of its keys; one that says less may be meant as well."""
    if what.isdigit():
        return int(what) if int(what) < len(items) else None
    keys = dict(pair.partition("=")[::2] for pair in what.split(","))
    wanted = {key: value.strip("\"'") for key, value in keys.items()}
    for number, item in enumerate(items):
        if isinstance(item, dict) and all(
            str(item.get(key, value)) == value for key, value in wanted.items()
        ):
            return number
    return next((at for at, item in enumerate(items) if f'="{item}"' == what), None)
