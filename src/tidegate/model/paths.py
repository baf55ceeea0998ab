"""Paths into an object.

spec.secretName                 what stands there
spec.list[0].name               an item; [-1] is the last
status.conditions[type=Ready]   the first item whose key has this value
metadata.annotations["a.b/c"]   a name that needs quotes
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import TypeAlias

from tidegate.model.objects import Json

Step: TypeAlias = str | int | tuple[str, str]
_STEP = re.compile(
    r"\.?(?P<name>[^\s.\[\]|()'\"${}]+)"
    r"|\[(?P<index>-?\d+)\]"
    r"|\[\"(?P<quoted>[^\"]+)\"\]"
    r"|\[(?P<key>[^\s=\[\]\"]+)=(?P<value>[^\[\]]*)\]"
)


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
