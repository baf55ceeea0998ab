"""Sets of places in an object, as managed fields speak of them.

    {"f:data": {".": {}, "f:color": {}}}        the field `data` and the field `data.color`
    {"f:data": {"f:color": {}}}                 the field `data.color` only

A set is a tree of frozen nodes. Whatever two sets share is shared, and an operation that changes
nothing gives back the set it was asked of. One step of a path is an element, written as managed
fields write it; equal elements are equal strings.

    f:spec                          a field
    k:{"name":"app"}                an item of a keyed list
    v:"example.org/hold"            an item of a set
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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
Path: TypeAlias = tuple[Element, ...]
SELF = "."


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


class Fields(msgspec.Struct, frozen=True, gc=False):
    """A set of places, seen from one of them: is this one in it, and what is in it below.

    No node below is empty.
    """

    own: bool
    below: dict[Element, Fields]

    @property
    def is_empty(self) -> bool:
        return not self.own and not self.below

    def __or__(self, other: Fields) -> Fields:
        return _union(self, other)

    def __sub__(self, other: Fields) -> Fields:
        """What is in this set and not in the other; places below those of the other stay."""
        return _difference(self, other)

    def __and__(self, other: Fields) -> Fields:
        return _intersection(self, other)

    def outside(self, other: Fields) -> Fields:
        """What is neither in the other set nor below a place that is."""
        return _outside(self, other)

    def paths(self) -> Iterator[Path]:
        """Every place in the set: those of a node before those below it, sorted as servers do."""
        return _paths(self, ())


NOTHING = Fields(False, {})
LEAF = Fields(True, {})


def fields_from(paths: Iterable[Iterable[Element]]) -> Fields:
    """The set of these places."""
    found = NOTHING
    for path in paths:
        node = LEAF
        for element in reversed(tuple(path)):
            node = Fields(False, {element: node})
        found |= node
    return found


def node(own: bool, below: dict[Element, Fields]) -> Fields:  # noqa: FBT001 - as the fields are
    """A node; the common ones are shared."""
    if below:
        return Fields(own, below)
    return LEAF if own else NOTHING


def read_fields(written: object) -> Fields:
    """A set from its written form, `fieldsV1`; elements of an unknown kind are dropped."""
    if not isinstance(written, dict):
        return NOTHING
    below: dict[Element, Fields] = {}
    for text, inner in written.items():
        if text != SELF and (element := canonical(text)) is not None:
            found = read_fields(inner)
            is_own = not found.below or (isinstance(inner, dict) and SELF in inner)
            below[element] = node(is_own, found.below)
    return node(False, below)


def write_fields(fields: Fields) -> dict[str, Json]:
    """The written form, in the order of the server."""
    written: dict[str, Json] = {SELF: {}} if fields.own and fields.below else {}
    for element in _sorted(fields.below):
        inner = fields.below[element]
        written[element] = {} if inner is LEAF else write_fields(inner)
    return written


def show_path(path: Path) -> str:
    """A place as conflicts show it: `.spec.template.spec.containers[name="app"].image`."""
    return "".join(shown(element) for element in path)


def _union(one: Fields, other: Fields) -> Fields:
    if one is other or other is NOTHING:
        return one
    if one is NOTHING:
        return other
    own = one.own or other.own
    below: dict[Element, Fields] | None = None
    for element, inner in other.below.items():
        mine = one.below.get(element)
        found = inner if mine is None else _union(mine, inner)
        if found is not mine:
            below = dict(one.below) if below is None else below
            below[element] = found
    if below is None:
        return one if own == one.own else Fields(own, one.below)
    return Fields(own, below)


def _difference(one: Fields, other: Fields) -> Fields:
    own = one.own and not other.own
    below: dict[Element, Fields] | None = None
    if one.below and other.below:
        for element in _shared(one, other):
            mine, theirs = one.below[element], other.below[element]
            found = NOTHING if mine is theirs else _difference(mine, theirs)
            below = _replaced(one, below, element, found)
    if below is None:
        return one if own == one.own else node(own, one.below)
    return node(own, below)


def _outside(one: Fields, other: Fields) -> Fields:
    if other.own:
        return NOTHING
    below: dict[Element, Fields] | None = None
    if one.below and other.below:
        for element in _shared(one, other):
            found = _outside(one.below[element], other.below[element])
            below = _replaced(one, below, element, found)
    return one if below is None else node(one.own, below)


def _replaced(
    one: Fields, below: dict[Element, Fields] | None, element: Element, found: Fields
) -> dict[Element, Fields] | None:
    """The places below, with another node for one of them; copied when the first one changes."""
    if found is one.below[element]:
        return below
    below = dict(one.below) if below is None else below
    if found.is_empty:
        del below[element]
    else:
        below[element] = found
    return below


def _intersection(one: Fields, other: Fields) -> Fields:
    if one is other:
        return one
    below: dict[Element, Fields] = {}
    for element in _shared(one, other):
        found = _intersection(one.below[element], other.below[element])
        if not found.is_empty:
            below[element] = found
    return node(one.own and other.own, below)


def _shared(one: Fields, other: Fields) -> list[Element]:
    """The smaller side is walked."""
    if len(one.below) <= len(other.below):
        return [element for element in one.below if element in other.below]
    return [element for element in other.below if element in one.below]


def _paths(fields: Fields, before: Path) -> Iterator[Path]:
    elements = _sorted(fields.below)
    for element in elements:
        if fields.below[element].own:
            yield (*before, element)
    for element in elements:
        yield from _paths(fields.below[element], (*before, element))


def _sorted(below: dict[Element, Fields]) -> list[Element]:
    elements = sorted(below)
    # Fields come before keys and values: if the last one is a field, they all are.
    if not elements or elements[-1].startswith(FIELD):
        return elements
    return sorted(below, key=order)
