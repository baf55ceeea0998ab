"""Paths into an object.

spec.secretName                 a field
spec.list[0].name               an item; [-1] is the last
status.conditions[type=Ready]   the first item whose key has this value
metadata.annotations["a.b/c"]   a name that needs quotes
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TypeAlias

from tidegate.model.k8s.objects import Json
from tidegate.model.text.lazy_regex import lazy_regex

PathStep: TypeAlias = str | int | tuple[str, str]
_STEP = lazy_regex(
    r"\.?(?P<name>[^\s.\[\]|()'\"${}]+)"
    r"|\[(?P<index>-?\d+)\]"
    r"|\[\"(?P<quoted>[^\"]+)\"\]"
    r"|\[(?P<key>[^\s=\[\]\"]+)=(?P<value>[^\[\]]*)\]"
)
_ITEM_SELECTOR = lazy_regex(r"\[(?P<what>[^\]]*)\]")


@cache
def parse_path(text: str) -> tuple[PathStep, ...]:
    """Parse a path into its steps. Raises ValueError for an invalid path."""
    steps: list[PathStep] = []
    position = 0
    while position < len(text):
        match = _STEP.match(text, position)
        if match is None or (position == 0 and text.startswith(".")):
            raise ValueError(f"`{text}` is not a valid path")
        position = match.end()
        if match["index"]:
            steps.append(int(match["index"]))
        elif match["key"]:
            steps.append((match["key"], match["value"]))
        else:
            steps.append(match["name"] or match["quoted"])
    if not steps:
        raise ValueError("the path is empty")
    return tuple(steps)


def find_value(body: Json, path: str) -> Json:
    """Return the value at a path. Returns None if there is none."""
    return follow_path(body, parse_path(path))


def follow_path(body: Json, steps: Iterable[PathStep]) -> Json:
    """Return the value at the end of some steps. Returns None if there is none."""
    for step in steps:
        if isinstance(body, dict) and isinstance(step, str):
            body = body.get(step)
        elif isinstance(body, list) and isinstance(step, int):
            body = body[step] if -len(body) <= step < len(body) else None
        elif isinstance(body, list) and isinstance(step, tuple):
            body = next((item for item in body if _is_selected(item, *step)), None)
        else:
            return None
    return body


def _is_selected(item: Json, key: str, value: str) -> bool:
    return isinstance(item, dict) and str(item.get(key)) == value


def resolve_server_path(body: Json, field: str) -> tuple[str | int, ...]:
    """Return the path of a field that a server names, as far as it exists in the body.

    `spec.ports[port=80,protocol="TCP"].name`, `data.a.b`, `.spec.containers[0]`: names may contain
    dots, and items may be selected by their keys.
    """
    path: list[str | int] = []
    remaining = field.lstrip(".")
    while remaining:
        step, length = _next_step(body, remaining)
        if step is None:
            break
        path.append(step)
        body = body[step]  # type: ignore[index]
        remaining = remaining[length:].lstrip(".")
    return tuple(path)


def _next_step(body: Json, remaining: str) -> tuple[str | int | None, int]:
    """Return the next key or index, and the length of the text that names it."""
    match = _ITEM_SELECTOR.match(remaining)
    if isinstance(body, list) and match:
        return _find_item(body, match["what"]), match.end()
    if isinstance(body, dict) and match:
        key = match["what"].strip("\"'")
        return key if key in body else None, match.end()
    if isinstance(body, dict):
        keys = [key for key in body if _starts_with_key(remaining, key)]
        key = max(keys, key=len, default="")
        return key or None, len(key)
    return None, 0


def _starts_with_key(remaining: str, key: str) -> bool:
    return remaining.startswith(key) and remaining[len(key) : len(key) + 1] in {"", ".", "["}


def _find_item(items: list[Json], selector: str) -> int | None:
    """Return the index of an item by number or by its keys. Keys that the item lacks are ignored.

    Returns None if no item matches.
    """
    if selector.isdigit():
        return int(selector) if int(selector) < len(items) else None
    keys = dict(pair.partition("=")[::2] for pair in selector.split(","))
    expected = {key: value.strip("\"'") for key, value in keys.items()}
    for number, item in enumerate(items):
        if isinstance(item, dict) and all(
            str(item.get(key, value)) == value for key, value in expected.items()
        ):
            return number
    return next((index for index, item in enumerate(items) if f'="{item}"' == selector), None)
