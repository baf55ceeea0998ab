"""One step of a path into an object, written as managed fields write it.

    f:spec                          a field
    k:{"name":"app"}                an item of a keyed list
    v:"example.org/hold"            an item of a set

An element is that text: equal elements are equal strings.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias

import msgspec

from tidegate.model.objects import Json
from tidegate.sandbox.ownership.layout import Layout

Element: TypeAlias = str
FIELD, KEY, VALUE = "f:", "k:", "v:"

_encode = msgspec.json.encode
_decode = msgspec.json.decode
# The server writes these as other Go programs do: fit to stand in a web page.
_FOR_WEB_PAGES = str.maketrans(
    {"<": r"\u003c", ">": r"\u003e", "&": r"\u0026", "\u2028": r"\u2028", "\u2029": r"\u2029"}
)


def item_element(item: Json, layout: Layout) -> Element | None:
    """How an item of a keyed list or a set is told from the others; None where it cannot be."""
    if not layout.keys:
        return None if item is None or isinstance(item, dict | list) else VALUE + _text(item)
    if not isinstance(item, dict):
        return None
    keys: list[tuple[str, Json]] = []
    for key, default in layout.keys:
        if key in item:
            keys.append((key, item[key]))
        elif default is not None:
            keys.append((key, default))
    return _key_element(tuple(keys)) if all(map(_is_plain, keys)) else KEY + _text(dict(keys))


def _is_plain(key: tuple[str, Json]) -> bool:
    return type(key[1]) is str or type(key[1]) is int


@lru_cache(maxsize=8192)
def _key_element(keys: tuple[tuple[str, str | int], ...]) -> Element | None:
    return KEY + _text({**dict(keys)}) if keys else None


def canonical(text: str) -> Element | None:
    """An element as somebody wrote it; None for those of a kind we do not know."""
    start, rest = text[:2], text[2:]
    match start:
        case "f:":
            return text
        case "k:":
            keys: dict[str, Json] = _decode(rest, type=dict)
            return KEY + _text({key: keys[key] for key in sorted(keys)})
        case "v:":
            return VALUE + _text(_decode(rest))
        case _:
            return None


def shown(element: Element) -> str:
    """The element as conflicts show it: `.spec`, `[name="app"]`, `[="x"]`."""
    start, rest = element[:2], element[2:]
    match start:
        case "k:":
            keys: dict[str, Json] = _decode(rest, type=dict)
            return "[" + ",".join(f"{key}={_shown(value)}" for key, value in keys.items()) + "]"
        case "v:":
            return f"[={_shown(_decode(rest))}]"
        case _:
            return f".{rest}"


def order(element: Element) -> tuple[str, tuple[tuple[str, int, float, str], ...]]:
    """Sorts as the server does: fields, then keys, then values; numbers by size."""
    start, rest = element[:2], element[2:]
    match start:
        case "k:":
            keys: dict[str, Json] = _decode(rest, type=dict)
            return start, tuple((key, *_rank(value)) for key, value in keys.items())
        case "v:":
            return start, (("", *_rank(_decode(rest))),)
        case _:
            return start, ((rest, 0, 0.0, ""),)


def _rank(value: Json) -> tuple[int, float, str]:
    match value:
        case bool():
            return 2, float(value), ""
        case int() | float():
            return 0, float(value), ""
        case str():
            return 1, 0.0, value
        case _:
            return 3, 0.0, _text(value)


def _text(value: Json) -> str:
    return _encode(value).decode().translate(_FOR_WEB_PAGES)


def _shown(value: Json) -> str:
    return _encode(value).decode()
