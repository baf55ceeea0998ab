"""What of a built-in kind cannot be changed once it is there, as Kubernetes 1.36 validates updates.

`immutable.yaml` has the rows; here are the questions that they ask, and whether a change is one
no server takes. Custom kinds freeze fields by rules of their own: only a server knows those.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TypeAlias, cast

import msgspec

from tidegate.documents import read_documents
from tidegate.model.k8s.json_fields import get_list, get_mapping, get_mappings, get_text, get_value
from tidegate.model.k8s.objects import Json, JsonObject, Kind
from tidegate.model.k8s.quantity import to_quantity
from tidegate.schema.causes import forbidden
from tidegate.world.messages import Cause

FILE = Path(__file__).with_suffix(".yaml")
FieldNames: TypeAlias = tuple[str, ...]
"""The fields that lead to a place; items of lists are not told apart."""
Condition: TypeAlias = Callable[[JsonObject, JsonObject], bool]
IMMUTABLE = "field is immutable"
ONLY_WITH_PARALLELISM = "can only be modified in tandem with spec.parallelism"


class ImmutableField(msgspec.Struct, frozen=True, kw_only=True):
    """A place that stays, as long as `when(live, wanted)`."""

    path: FieldNames
    free: tuple[FieldNames, ...]
    when: Condition
    message: str
    field: str
    """What the server calls the place."""
    unsaid: Json
    """What stands there where nothing is said, and nothing stands `beside` either."""
    beside: FieldNames

    def cause(self) -> Cause:
        if self.message in {IMMUTABLE, ONLY_WITH_PARALLELISM}:
            return Cause(self.field, "FieldValueInvalid", f"Invalid value: {self.message}")
        return forbidden(self.field, self.message)


class _Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    places: tuple[str, ...]
    free: tuple[str, ...] = ()
    when: str = "always"
    message: str = IMMUTABLE
    field: str = ""
    unsaid: object = None
    beside: str = ""


@cache
def read_immutable_fields() -> dict[tuple[str, str], tuple[ImmutableField, ...]]:
    """By group and kind."""
    (document,) = read_documents(FILE.read_bytes(), FILE.name)
    found: dict[tuple[str, str], tuple[ImmutableField, ...]] = {}
    for kind, rows in msgspec.convert(document.body, dict[str, tuple[_Row, ...]]).items():
        group, _, name = kind.rpartition("/")
        found[group, name] = tuple(one for row in rows for one in _frozen(row))
    return found


def _frozen(row: _Row) -> Iterator[ImmutableField]:
    for place in row.places:
        names = _names(place)
        yield ImmutableField(
            path=names,
            free=tuple(map(_names, row.free)),
            when=_is_set(names) if row.when == "set" else CONDITIONS[row.when],
            message=row.message,
            field=row.field or place,
            unsaid=cast("Json", row.unsaid),
            beside=_names(row.beside),
        )


def _names(path: str) -> FieldNames:
    return tuple(path.split(".")) if path else ()


def _is_set(place: FieldNames) -> Condition:
    return lambda live, _wanted: bool(get_value(live, *place))


def _has_own_address(live: JsonObject, wanted: JsonObject) -> bool:
    """A Service keeps its address, unless it is or becomes a name for something outside."""
    types = {get_text(body, "spec", "type") for body in (live, wanted)}
    return "ExternalName" not in types and bool(get_text(live, "spec", "clusterIP"))


def _keeps_families(live: JsonObject, wanted: JsonObject) -> bool:
    """One without an address may change them."""
    addresses = {get_text(body, "spec", "clusterIP") for body in (live, wanted)}
    return _has_own_address(live, wanted) and "None" not in addresses


def _stays_balanced(live: JsonObject, wanted: JsonObject) -> bool:
    return all(get_text(body, "spec", "type") == "LoadBalancer" for body in (live, wanted))


def _is_out_of_step(live: JsonObject, wanted: JsonObject) -> bool:
    """An indexed Job may change its completions together with its parallelism."""
    spec = {**get_mapping(live, "spec"), **get_mapping(wanted, "spec")}
    return _is_indexed(live, wanted) and spec.get("completions") != spec.get("parallelism", 1)


def _is_indexed(live: JsonObject, wanted: JsonObject) -> bool:
    spec = {**get_mapping(live, "spec"), **get_mapping(wanted, "spec")}
    return spec.get("completionMode") == "Indexed"


def _shrinks(live: JsonObject, wanted: JsonObject) -> bool:
    path = ("spec", "resources", "requests", "storage")
    before, after = (to_quantity(get_value(body, *path)) for body in (live, wanted))
    return before is not None and after is not None and after < before


def is_established(definition: JsonObject) -> bool:
    """Whether a CRD's kinds are served."""
    return any(
        condition.get("type") == "Established" and condition.get("status") == "True"
        for condition in get_mappings(definition, "status", "conditions")
    )


def _lengthens_life(live: JsonObject, wanted: JsonObject) -> bool:
    """A pod's deadline can be set once, and then only come closer."""
    before, after = (get_value(body, "spec", "activeDeadlineSeconds") for body in (live, wanted))
    if not isinstance(before, int):
        return False
    return not isinstance(after, int) or after > before


def _is_of_another_length(live: JsonObject, wanted: JsonObject) -> bool:
    before, after = (len(get_list(body, "spec", "containers")) for body in (live, wanted))
    return before != after


CONDITIONS: dict[str, Condition] = {
    "always": lambda _live, _wanted: True,
    "another-length": _is_of_another_length,
    "balanced": _stays_balanced,
    "counted": lambda live, wanted: not _is_indexed(live, wanted),
    "established": lambda live, _wanted: is_established(live),
    "keeps-families": _keeps_families,
    "longer-life": _lengthens_life,
    "marked": lambda live, _wanted: live.get("immutable") is True,
    "out-of-step": _is_out_of_step,
    "own-address": _has_own_address,
    "shrinks": _shrinks,
    "suspended": lambda live, _wanted: get_value(live, "spec", "suspend") is True,
    "unbound": lambda live, _wanted: get_text(live, "status", "phase") != "Bound",
    "unsuspended": lambda live, _wanted: get_value(live, "spec", "suspend") is not True,
}


def find_immutable(
    changed: Iterable[FieldNames], live: JsonObject, wanted: JsonObject
) -> tuple[FieldNames, ...]:
    """Those of the changed places that cannot be changed."""
    standing = [*_standing(live, wanted)]
    return tuple(names for names in changed if any(_stays(names, row) for row in standing))


def find_immutable_changes(before: JsonObject, after: JsonObject) -> tuple[Cause, ...]:
    """What a server says of an object that would become another one. It is asked of whole bodies.

    A spec that is the same one has not changed.
    """
    is_same = before.get("spec") is after.get("spec")
    rows = (row for row in _standing(before, after) if not (is_same and row.path[0] == "spec"))
    causes = (row.cause() for row in rows if _kept(before, row) != _kept(after, row))
    return tuple(dict.fromkeys(causes))


def _standing(live: JsonObject, wanted: JsonObject) -> Iterator[ImmutableField]:
    kind = Kind.of(get_text(wanted, "apiVersion"), get_text(wanted, "kind"))
    rows = read_immutable_fields().get((kind.group, kind.name), ())
    return (row for row in rows if row.when(live, wanted))


def _stays(names: FieldNames, row: ImmutableField) -> bool:
    is_touched = names[: len(row.path)] == row.path or row.path[: len(names)] == names
    return is_touched and not any(names[: len(free)] == free for free in row.free)


def _kept(body: JsonObject, row: ImmutableField) -> Json:
    """What stands at the place, without what may change."""
    value = get_value(body, *row.path)
    if value is None:
        return row.unsaid if not row.beside or get_value(body, *row.beside) is None else None
    return _without(value, [free[len(row.path) :] for free in row.free])


def _without(value: Json, free: list[FieldNames]) -> Json:
    if not free:
        return value
    if isinstance(value, list):
        return [_without(item, free) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {
        name: _without(inner, [rest[1:] for rest in free if rest[0] == name])
        for name, inner in value.items()
        if (name,) not in free
    }
    return {name: inner for name, inner in kept.items() if inner not in (None, {})}
