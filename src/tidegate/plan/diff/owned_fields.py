r"""Fields of a live object that a manager owns, from `metadata.managedFields`.

    {"f:data": {".": {}, "f:color": {}}}        the field `data` and the field `data.color`
    {"k:{\"name\":\"app\"}": {...}}             the list item with the name `app`
    {"v:\"example.org/hold\"": {}}              a value of a set
    {"i:0": {}}                                 the first item of a list

Sets of fields keep this form: nested mappings, with an empty mapping for a field owned as a whole.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple, TypeAlias, cast

import msgspec

from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text
from tidegate.model.k8s.objects import Json, JsonObject

Fields: TypeAlias = dict[str, "Fields"]
Scalar: TypeAlias = str | int | float | bool | None
APPLY_OPERATION = "Apply"
CONTAINERS = (dict, list)
SELF = "."
CACHE_SIZE = 8192
KEY_DEFAULTS: dict[str, Scalar] = {"protocol": "TCP"}
"""Values of item keys that an item does not set."""


class ItemKey(NamedTuple):
    """The key of a list item."""

    names: tuple[str, ...]
    values: tuple[Scalar, ...]


class OwnedItems(NamedTuple):
    """The owned items of a list, by the kind of their keys."""

    names: tuple[str, ...]
    keyed: dict[tuple[Scalar, ...], Fields]
    values: set[Scalar]
    indexes: set[int]


def managed_entries(live: JsonObject) -> list[JsonObject]:
    """Return the entries of `metadata.managedFields`."""
    return get_mappings(live, "metadata", "managedFields")


def is_applied_by(entry: JsonObject, manager: str) -> bool:
    """Return whether an entry holds the fields that a manager applied."""
    return (
        entry.get("manager") == manager
        and entry.get("operation") == APPLY_OPERATION
        and not entry.get("subresource")
    )


def entry_fields(entry: JsonObject) -> Fields:
    """Return the fields of an entry. Servers validate their form."""
    return cast("Fields", get_mapping(entry, "fieldsV1"))


def field_managers(live: JsonObject, path: tuple[str, ...]) -> list[str]:
    """Return the managers that own a field of nested mappings."""
    managers: dict[str, None] = {}
    for entry in managed_entries(live):
        field_sets = [entry_fields(entry)]
        for name in path:
            field_sets = fields_below(field_sets, f"f:{name}")
        if field_sets:
            managers[get_text(entry, "manager")] = None
    return [*filter(None, managers)]


def fields_below(field_sets: list[Fields], element: str) -> list[Fields]:
    """Return the fields of each set below an element."""
    return [fields[element] for fields in field_sets if element in fields]


def is_scalar(value: Json) -> bool:
    return not isinstance(value, CONTAINERS)


def key_values(item: JsonObject, names: tuple[str, ...]) -> tuple[Scalar, ...]:
    """Return the key values of an item, with None for a key that it does not set."""
    if len(names) == 1:
        value = item.get(names[0])
        return (value,) if isinstance(value, str) else (_scalar(value),)
    return tuple([_scalar(item.get(name, KEY_DEFAULTS.get(name))) for name in names])


def _scalar(value: Json) -> Scalar:
    return str(value) if isinstance(value, CONTAINERS) else value


def index_items(
    items: list[Json], names: tuple[str, ...]
) -> dict[tuple[Scalar, ...], JsonObject] | None:
    """Return the items by key, or None if their keys are not unique."""
    by_key = {key_values(item, names): item for item in items if isinstance(item, dict)}
    return by_key if len(by_key) == len(items) else None


def parse_items(fields: Fields) -> OwnedItems:
    """Return the owned items of a list."""
    names: tuple[str, ...] = ()
    keyed: dict[tuple[Scalar, ...], Fields] = {}
    values: set[Scalar] = set()
    indexes: set[int] = set()
    for element, inner in fields.items():
        prefix = element[0]
        if prefix == "k":
            names, key = parse_key(element)
            keyed[key] = inner
        elif prefix == "v":
            values.add(parse_value(element))
        elif prefix == "i":
            indexes.add(int(element[2:]))
    return OwnedItems(names, keyed, values, indexes)


@lru_cache(maxsize=CACHE_SIZE)
def parse_key(element: str) -> ItemKey:
    """Parse a key such as `k:{"name":"app"}`."""
    keys = msgspec.json.decode(element[2:], type=dict[str, Scalar])
    return ItemKey(tuple(keys), tuple(keys.values()))


@lru_cache(maxsize=CACHE_SIZE)
def parse_value(element: str) -> Scalar:
    value: Scalar = msgspec.json.decode(element[2:])
    return value


def merge_fields(first: Fields, second: Fields) -> Fields:
    """Return the union of two sets of fields."""
    if not first:
        return second
    merged = dict(first)
    for element, inner in second.items():
        existing = merged.get(element)
        if existing is None:
            merged[element] = inner
        else:
            merged[element] = _merge_children(existing, inner)
    return merged


def _merge_children(first: Fields, second: Fields) -> Fields:
    """Merge the fields below an element. An empty set means that the element itself is owned."""
    if not first and not second:
        return first
    merged = {**merge_fields(first, second)}
    if not first or not second:
        merged = {SELF: {}, **merged}
    return merged
