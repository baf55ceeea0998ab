"""What an API server would say of the custom resources of Argo CD and Flux.

Read on first use from a file that `make schemas` writes (its language is told in
`plane.dialect_schemas`); a schema is put together when its kind is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from tidegate.model.k8s.json_fields import get_mapping, get_text
from tidegate.model.k8s.objects import FieldPath, Json, Kind
from tidegate.model.k8s.secret import value_at_path
from tidegate.schema.builtin import object_meta
from tidegate.schema.causes import NOWHERE, TYPE_INVALID
from tidegate.schema.defaulting import unknown_fields
from tidegate.schema.shape import Shape, Type, child
from tidegate.schema.structural import Schema, shape_from
from tidegate.schema.types import find_decode_problem
from tidegate.schema.violations import find_unmet_custom

FILE = Path(__file__).with_suffix(".json")
NESTED = ("items", "additionalProperties")
"""Where a schema holds another one, but for its fields."""
UNKNOWN = "unknown field"
_item = re.compile(r"\[(\d+)\]").match


class Flaw(NamedTuple):
    """A problem of a field: it is refused, or unknown and dropped without a word."""

    path: FieldPath
    problem: str
    """The message of an API server."""
    source: str = ""
    """The module whose CRD says so; empty where none has that version of the kind."""
    dropped: bool = False
    """Whether the field is unknown and dropped; else it is refused."""
    near: str = ""
    """The name that was perhaps meant."""
    lacks_quotes: bool = False
    """Whether the field takes text, and YAML reads the value as a boolean or a number."""


class _Book(msgspec.Struct, frozen=True):
    modules: tuple[str, ...]
    kinds: tuple[tuple[str, str, str, int, int], ...]
    schemas: tuple[msgspec.Raw, ...]


def check_object(body: dict[str, Json]) -> tuple[Flaw, ...]:
    """Everything that a creation of the object meets; nothing for kinds of others.

    Rules in CEL (`x-kubernetes-validations`) are not evaluated, and a status is not looked at.
    """
    kind = Kind.of(get_text(body, "apiVersion"), get_text(body, "kind"))
    versions = known_versions().get((kind.group, kind.name))
    if versions is None:
        return ()
    if kind.version not in versions:
        listed = ", ".join(f"`{kind.group}/{version}`" for version in versions)
        return (Flaw(("apiVersion",), f"{kind.name} is not served so, but as {listed}"),)
    shape, source = _known(kind)
    refused = _refused(kind, body, shape, source)
    dropped = _dropped(body, shape, source)
    return (*refused.values(), *(flaw for flaw in dropped if not _is_below(refused, flaw.path)))


@cache
def shape_of(kind: Kind, *path: str) -> Shape | None:
    """What a field of a kind may hold; None where there is no such field."""
    shape: Shape | None = _known(kind)[0]
    for name in path:
        shape = shape and child(shape, name)
    return shape


@cache
def known_versions() -> Mapping[tuple[str, str], tuple[str, ...]]:
    """Versions of each group and kind; what today's modules serve comes first."""
    versions: dict[tuple[str, str], tuple[str, ...]] = {}
    for group, version, name, _, _ in _read().kinds:
        versions[group, name] = (*versions.get((group, name), ()), version)
    return versions


def _refused(kind: Kind, body: Schema, shape: Shape, source: str) -> dict[FieldPath, Flaw]:
    """One flaw for each field."""
    flaws: dict[FieldPath, Flaw] = {}
    if problem := find_decode_problem(body.get("metadata"), object_meta()):
        flaws["metadata",] = Flaw(("metadata",), problem, source)
    causes = find_unmet_custom(kind, body, shape, applied=False)
    for cause in [one for one in causes if one.field != NOWHERE] or causes:
        path = () if cause.field == NOWHERE else _path_of(body, f".{cause.field}")
        lacks_quotes = cause.reason == TYPE_INVALID and _lacks_quotes(body, shape, path)
        flaws.setdefault(path, Flaw(path, cause.message, source, lacks_quotes=lacks_quotes))
    return flaws


def _lacks_quotes(body: Schema, shape: Shape, path: FieldPath) -> bool:
    """Return whether a field takes any text, and has a boolean or a number."""
    field = _shape_at(shape, path)
    takes_text = field is not None and field.type is Type.STRING and not field.format
    return takes_text and isinstance(value_at_path(body, path), bool | int | float)


def _is_below(flaws: Mapping[FieldPath, Flaw], path: FieldPath) -> bool:
    """Whether the place itself is not what it must be, so that its fields say nothing."""
    return any(path[:end] in flaws for end in range(1, len(path)))


def _dropped(body: Schema, shape: Shape, source: str) -> Iterator[Flaw]:
    for field in unknown_fields(body, shape):
        path = _path_of(body, f".{field}")
        near = get_close_matches(str(path[-1]), _names_beside(shape, path), n=1)
        yield Flaw(path, UNKNOWN, source, dropped=True, near="".join(near))


def _path_of(body: Json, field: str) -> FieldPath:
    """The path that a server calls `.spec.sources[0].repo`; keys of a map may have dots."""
    if isinstance(body, dict) and field.startswith("."):
        for name in sorted(body, key=len, reverse=True):
            behind = field[1 + len(name) :]
            if field.startswith(name, 1) and behind[:1] in {"", ".", "["}:
                return (name, *_path_of(body[name], behind))
    elif isinstance(body, list) and (found := _item(field)) and int(found[1]) < len(body):
        place = int(found[1])
        return (place, *_path_of(body[place], field[found.end() :]))
    return (field.removeprefix("."),) if field else ()


def _names_beside(shape: Shape, path: FieldPath) -> list[str]:
    """The fields that are known where a path ends."""
    parent = _shape_at(shape, path[:-1])
    return [] if parent is None else [*parent.fields]


def _shape_at(shape: Shape, path: FieldPath) -> Shape | None:
    """Return what the field at a path may hold; None where the path is not known."""
    for step in path:
        below = child(shape, step) if isinstance(step, str) else shape.items and shape.items()
        if below is None:
            return None
        shape = below
    return shape


@cache
def _read() -> _Book:
    return msgspec.json.decode(FILE.read_bytes(), type=_Book)


@cache
def _known(kind: Kind) -> tuple[Shape, str]:
    """The shape of a kind, and who says so."""
    rows = {Kind(*row[:3]): row[3:] for row in _read().kinds}
    module, number = rows[kind]
    return shape_from(_schema(number)), _read().modules[module]


@cache
def _schema(number: int) -> Schema:
    written: Schema = msgspec.json.decode(_read().schemas[number])
    return _whole(written)


def _whole(schema: Schema) -> Schema:
    """A schema with those in it that are written elsewhere."""
    whole = {**schema, "properties": _placed_in(get_mapping(schema, "properties"))}
    return whole | _placed_in({name: schema[name] for name in NESTED if name in schema})


def _placed_in(parts: Schema) -> Schema:
    return {name: _placed(part) for name, part in parts.items()}


def _placed(part: Json) -> Json:
    match part:
        case bool():
            return part
        case int():
            return _schema(part)
        case _:
            return _whole(get_mapping(part))
