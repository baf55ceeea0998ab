"""Which part of a live object a manager owns, as its `metadata.managedFields` tell.

    {"f:data": {".": {}, "f:color": {}}}        the field `data` and the field `data.color`
    {"k:{\"name\":\"app\"}": {...}}             the item of a list whose name is `app`
    {"v:\"example.org/hold\"": {}}              a value of a set
    {"i:0": {}}                                 the first item of a list

Sets of fields stay as they are written: nested mappings, an empty one for a field owned as a whole.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple, TypeAlias, cast

import msgspec

from tidegate.model.objects import Json
from tidegate.model.reading import mapping, mappings

Body: TypeAlias = dict[str, Json]
Fields: TypeAlias = dict[str, "Fields"]
Scalar: TypeAlias = str | int | float | bool | None

APPLY = "Apply"
CONTAINERS = (dict, list)
SELF = "."
KNOWN = 8192
KEY_DEFAULTS: dict[str, Scalar] = {"protocol": "TCP"}
"""What the key of an item is where the item does not say."""


class Key(NamedTuple):
    """What tells an item of a list from the others."""

    names: tuple[str, ...]
    values: tuple[Scalar, ...]


class Items(NamedTuple):
    """What is owned of the items of a list, by how the items are told apart."""

    names: tuple[str, ...]
    keyed: dict[tuple[Scalar, ...], Fields]
    values: set[Scalar]
    places: set[int]


def entries_of(live: Body) -> list[Body]:
    return mappings(live, "metadata", "managedFields")


def is_entry_of(entry: Body, manager: str) -> bool:
    """Whether this is what a manager owns by having applied it."""
    return (
        entry.get("manager") == manager
        and entry.get("operation") == APPLY
        and not entry.get("subresource")
    )


def fields_in(entry: Body) -> Fields:
    """What an entry owns. Servers let nothing else stand there."""
    return cast("Fields", mapping(entry, "fieldsV1"))


def below(others: list[Fields], element: str) -> list[Fields]:
    """What these sets have below an element."""
    return [other[element] for other in others if element in other]


def is_scalar(value: Json) -> bool:
    return not isinstance(value, CONTAINERS)


def key_values(item: Body, names: tuple[str, ...]) -> tuple[Scalar, ...]:
    """What the keys of an item are; None for a key that it does not say."""
    if len(names) == 1:
        value = item.get(names[0])
        return (value,) if isinstance(value, str) else (_scalar(value),)
    return tuple([_scalar(item.get(name, KEY_DEFAULTS.get(name))) for name in names])


def _scalar(value: Json) -> Scalar:
    return str(value) if isinstance(value, CONTAINERS) else value


def index_items(items: list[Json], names: tuple[str, ...]) -> dict[tuple[Scalar, ...], Body] | None:
    """The items by their keys; None where they cannot be told apart."""
    found = {key_values(item, names): item for item in items if isinstance(item, dict)}
    return found if len(found) == len(items) else None


def read_items(fields: Fields) -> Items:
    """What is owned below a list."""
    names: tuple[str, ...] = ()
    keyed: dict[tuple[Scalar, ...], Fields] = {}
    values: set[Scalar] = set()
    places: set[int] = set()
    for element, inner in fields.items():
        start = element[0]
        if start == "k":
            names, key = read_key(element)
            keyed[key] = inner
        elif start == "v":
            values.add(read_value(element))
        elif start == "i":
            places.add(int(element[2:]))
    return Items(names, keyed, values, places)


@lru_cache(maxsize=KNOWN)
def read_key(element: str) -> Key:
    """The key in `k:{"name":"app"}`."""
    keys = msgspec.json.decode(element[2:], type=dict[str, Scalar])
    return Key(tuple(keys), tuple(keys.values()))


@lru_cache(maxsize=KNOWN)
def read_value(element: str) -> Scalar:
    value: Scalar = msgspec.json.decode(element[2:])
    return value


def unite(one: Fields, other: Fields) -> Fields:
    """Everything that is in either set."""
    if not one:
        return other
    united = dict(one)
    for element, inner in other.items():
        mine = united.get(element)
        if mine is None:
            united[element] = inner
        else:
            united[element] = _unite_below(mine, inner)
    return united


def _unite_below(one: Fields, other: Fields) -> Fields:
    """An empty mapping is a field that is owned itself: it stays so when fields come in below."""
    if not one and not other:
        return one
    whole = {**unite(one, other)}
    if not one or not other:
        whole = {SELF: {}, **whole}
    return whole
