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
from tidegate.schema.builtin import object_meta_shape
from tidegate.schema.causes import NO_FIELD
from tidegate.schema.defaulting import list_unknown_fields
from tidegate.schema.shape import Shape, find_child_shape
from tidegate.schema.structural import Schema, shape_from_schema
from tidegate.schema.types import find_decode_problem
from tidegate.schema.violations import find_custom_resource_problems

FILE = Path(__file__).with_suffix(".json")
NESTED = ("items", "additionalProperties")
"""Where a schema holds another one, but for its fields."""
UNKNOWN_FIELD = "unknown field"
_item = re.compile(r"\[(\d+)\]").match


class SchemaProblem(NamedTuple):
    """What is wrong with a field: it is refused, or unknown and dropped without a word.

    `source` is the module whose CRD says so, empty where none has that version of the kind; `near`
    the name that was perhaps meant.
    """

    path: FieldPath
    problem: str
    source: str = ""
    is_dropped: bool = False
    suggestion: str = ""


class _Book(msgspec.Struct, frozen=True):
    modules: tuple[str, ...]
    kinds: tuple[tuple[str, str, str, int, int], ...]
    schemas: tuple[msgspec.Raw, ...]


def check_custom_resource(body: dict[str, Json]) -> tuple[SchemaProblem, ...]:
    """Everything that a creation of the object meets; nothing for kinds of others.

    Rules in CEL (`x-kubernetes-validations`) are not evaluated, and a status is not looked at.
    """
    kind = Kind.of(get_text(body, "apiVersion"), get_text(body, "kind"))
    versions = list_versions().get((kind.group, kind.name))
    if versions is None:
        return ()
    if kind.version not in versions:
        listed = ", ".join(f"`{kind.group}/{version}`" for version in versions)
        return (SchemaProblem(("apiVersion",), f"{kind.name} is not served so, but as {listed}"),)
    shape, source = _known(kind)
    refused = _refused(kind, body, shape, source)
    dropped = _dropped(body, shape, source)
    return (*refused.values(), *(flaw for flaw in dropped if not _is_below(refused, flaw.path)))


@cache
def find_field_shape(kind: Kind, *path: str) -> Shape | None:
    """What a field of a kind may hold; None where there is no such field."""
    shape: Shape | None = _known(kind)[0]
    for name in path:
        shape = shape and find_child_shape(shape, name)
    return shape


@cache
def list_versions() -> Mapping[tuple[str, str], tuple[str, ...]]:
    """Versions of each group and kind; what today's modules serve comes first."""
    versions: dict[tuple[str, str], tuple[str, ...]] = {}
    for group, version, name, _, _ in _read().kinds:
        versions[group, name] = (*versions.get((group, name), ()), version)
    return versions


def _refused(kind: Kind, body: Schema, shape: Shape, source: str) -> dict[FieldPath, SchemaProblem]:
    """One flaw for each field."""
    flaws: dict[FieldPath, SchemaProblem] = {}
    if problem := find_decode_problem(body.get("metadata"), object_meta_shape()):
        flaws["metadata",] = SchemaProblem(("metadata",), problem, source)
    causes = find_custom_resource_problems(kind, body, shape, applied=False)
    for cause in [one for one in causes if one.field != NO_FIELD] or causes:
        path = () if cause.field == NO_FIELD else _path_of(body, f".{cause.field}")
        flaws.setdefault(path, SchemaProblem(path, cause.message, source))
    return flaws


def _is_below(flaws: Mapping[FieldPath, SchemaProblem], path: FieldPath) -> bool:
    """Whether the place itself is not what it must be, so that its fields say nothing."""
    return any(path[:end] in flaws for end in range(1, len(path)))


def _dropped(body: Schema, shape: Shape, source: str) -> Iterator[SchemaProblem]:
    for field in list_unknown_fields(body, shape):
        path = _path_of(body, f".{field}")
        near = get_close_matches(str(path[-1]), _names_beside(shape, path), n=1)
        yield SchemaProblem(path, UNKNOWN_FIELD, source, is_dropped=True, suggestion="".join(near))


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
    for step in path[:-1]:
        below = (
            find_child_shape(shape, step)
            if isinstance(step, str)
            else shape.items and shape.items()
        )
        if below is None:
            return []
        shape = below
    return [*shape.fields]


@cache
def _read() -> _Book:
    return msgspec.json.decode(FILE.read_bytes(), type=_Book)


@cache
def _known(kind: Kind) -> tuple[Shape, str]:
    """The shape of a kind, and who says so."""
    rows = {Kind(*row[:3]): row[3:] for row in _read().kinds}
    module, number = rows[kind]
    return shape_from_schema(_schema(number)), _read().modules[module]


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
