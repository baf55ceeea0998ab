"""Validation of the custom resources of Argo CD and Flux.

Read on first use from a file that `make schemas` writes (`plane.dialect_schemas` describes its
format). A schema is assembled when its kind is first needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from tidegate.model.k8s.json_fields import get_mapping, object_kind
from tidegate.model.k8s.objects import FieldPath, Json, Kind
from tidegate.model.k8s.secret import value_at_path
from tidegate.model.text.suggest import closest_match
from tidegate.schema.builtin import object_meta_shape
from tidegate.schema.causes import NO_FIELD, TYPE_INVALID
from tidegate.schema.defaulting import list_unknown_fields
from tidegate.schema.shape import Shape, Type, find_child_shape
from tidegate.schema.structural import Schema, shape_from_schema
from tidegate.schema.types import find_decode_problem
from tidegate.schema.violations import find_custom_resource_problems

FILE = Path(__file__).with_suffix(".json")
NESTED = ("items", "additionalProperties")
"""Keys of a schema, besides `properties`, that hold another schema."""
UNKNOWN_FIELD = "unknown field"
EXTENDED_KINDS = {"Alert": "eventSources", "Receiver": "resources"}
"""Lists of notification-controller whose allowed kinds other controllers extend, by kind.

Flux Operator 0.57 adds its kinds to the CRDs (internal/builder/profiles.go, `profileNotification`),
and Flux documents the same for others, such as Terraform.
"""
_item = re.compile(r"\[(\d+)\]").match


class SchemaProblem(NamedTuple):
    """A problem of a field: it is rejected, or it is unknown and dropped silently."""

    path: FieldPath
    """The path of the field."""
    problem: str
    """The message of an API server."""
    source: str = ""
    """The module with the CRD; empty if no module has that version of the kind."""
    is_dropped: bool = False
    """Whether the field is unknown and dropped."""
    suggestion: str = ""
    """A known field with a similar name, or empty."""
    lacks_quotes: bool = False
    """Whether the field takes text, and YAML reads the value as a boolean or a number."""


class _SchemaFile(msgspec.Struct, frozen=True):
    """The content of the file."""

    modules: tuple[str, ...]
    """Go modules with CRDs, with their versions."""
    kinds: tuple[tuple[str, str, str, int, int], ...]
    """The kinds; `plane.dialect_schemas` describes the format."""
    schemas: tuple[msgspec.Raw, ...]
    """The schemas, to which kinds and other schemas refer by index."""


def check_custom_resource(body: dict[str, Json]) -> tuple[SchemaProblem, ...]:
    """Return the problems of creating an object. Returns nothing for kinds of other projects.

    CEL rules (`x-kubernetes-validations`) are not evaluated, and the status is not checked.
    """
    kind = object_kind(body)
    versions = list_versions().get((kind.group, kind.name))
    if versions is None:
        return ()
    if kind.version not in versions:
        served = ", ".join(f"`{kind.group}/{version}`" for version in versions)
        return (SchemaProblem(("apiVersion",), f"{kind.name} is served as {served} only"),)
    shape, source = _shape_and_source(kind)
    rejected = _find_rejected(kind, body, shape, source)
    dropped = _find_dropped(body, shape, source)
    return (
        *rejected.values(),
        *(problem for problem in dropped if not _has_problem_above(rejected, problem.path)),
    )


@cache
def find_field_shape(kind: Kind, *path: str) -> Shape | None:
    """Return the shape of a field of a kind, or None if there is no such field."""
    shape: Shape | None = _shape_and_source(kind)[0]
    for name in path:
        shape = shape and find_child_shape(shape, name)
    return shape


@cache
def list_versions() -> Mapping[tuple[str, str], tuple[str, ...]]:
    """Return the versions by group and kind. Currently served versions come first."""
    versions: dict[tuple[str, str], tuple[str, ...]] = {}
    for group, version, name, _, _ in _read_file().kinds:
        versions[group, name] = (*versions.get((group, name), ()), version)
    return versions


def _find_rejected(
    kind: Kind, body: Schema, shape: Shape, source: str
) -> dict[FieldPath, SchemaProblem]:
    """Return one problem for each field."""
    problems: dict[FieldPath, SchemaProblem] = {}
    if problem := find_decode_problem(body.get("metadata"), object_meta_shape()):
        problems["metadata",] = SchemaProblem(("metadata",), problem, source)
    causes = find_custom_resource_problems(kind, body, shape, applied=False)
    for cause in [cause for cause in causes if cause.field != NO_FIELD] or causes:
        path = () if cause.field == NO_FIELD else _parse_path(body, f".{cause.field}")
        if _is_extended_kind(kind, body, path):
            continue
        lacks_quotes = cause.reason == TYPE_INVALID and _lacks_quotes(body, shape, path)
        problems.setdefault(
            path, SchemaProblem(path, cause.message, source, lacks_quotes=lacks_quotes)
        )
    return problems


def _is_extended_kind(kind: Kind, body: Schema, path: FieldPath) -> bool:
    """Return whether a field has a kind that another controller may have added to the CRD.

    A text that is almost one of Flux's own kinds is a mistake.
    """
    is_notification = kind.group == "notification.toolkit.fluxcd.io"
    field = EXTENDED_KINDS.get(kind.name) if is_notification else None
    if field is None or path[:2] != ("spec", field) or path[3:] != ("kind",):
        return False
    value, known = value_at_path(body, path), {name for _, name in list_versions()}
    return isinstance(value, str) and not closest_match(value, known, cutoff=0.8)


def _lacks_quotes(body: Schema, shape: Shape, path: FieldPath) -> bool:
    """Return whether a field takes any text, and has a boolean or a number."""
    field = _shape_at(shape, path)
    takes_text = field is not None and field.type is Type.STRING and not field.format
    return takes_text and isinstance(value_at_path(body, path), bool | int | float)


def _has_problem_above(problems: Mapping[FieldPath, SchemaProblem], path: FieldPath) -> bool:
    """Return whether a parent field has a problem, so that its fields mean nothing."""
    return any(path[:end] in problems for end in range(1, len(path)))


def _find_dropped(body: Schema, shape: Shape, source: str) -> Iterator[SchemaProblem]:
    for field in list_unknown_fields(body, shape):
        path = _parse_path(body, f".{field}")
        suggestion = closest_match(str(path[-1]), _sibling_names(shape, path))
        yield SchemaProblem(path, UNKNOWN_FIELD, source, is_dropped=True, suggestion=suggestion)


def _parse_path(body: Json, field: str) -> FieldPath:
    """Return the path of a field such as `.spec.sources[0].repo`.

    Keys of a map may contain dots.
    """
    if isinstance(body, dict) and field.startswith("."):
        for name in sorted(body, key=len, reverse=True):
            rest = field[1 + len(name) :]
            if field.startswith(name, 1) and rest[:1] in {"", ".", "["}:
                return (name, *_parse_path(body[name], rest))
    elif (
        isinstance(body, list) and (index_match := _item(field)) and int(index_match[1]) < len(body)
    ):
        index = int(index_match[1])
        return (index, *_parse_path(body[index], field[index_match.end() :]))
    return (field.removeprefix("."),) if field else ()


def _sibling_names(shape: Shape, path: FieldPath) -> list[str]:
    """Return the known fields beside the last step of a path."""
    parent = _shape_at(shape, path[:-1])
    return [] if parent is None else [*parent.fields]


def _shape_at(shape: Shape, path: FieldPath) -> Shape | None:
    """Return the shape of the field at a path, or None if the path is not known."""
    for step in path:
        inner = (
            find_child_shape(shape, step)
            if isinstance(step, str)
            else shape.items and shape.items()
        )
        if inner is None:
            return None
        shape = inner
    return shape


@cache
def _read_file() -> _SchemaFile:
    return msgspec.json.decode(FILE.read_bytes(), type=_SchemaFile)


@cache
def _shape_and_source(kind: Kind) -> tuple[Shape, str]:
    """Return the shape of a kind, and the module that defines it."""
    rows = {Kind(*row[:3]): row[3:] for row in _read_file().kinds}
    module, number = rows[kind]
    return shape_from_schema(_schema(number)), _read_file().modules[module]


@cache
def _schema(number: int) -> Schema:
    schema: Schema = msgspec.json.decode(_read_file().schemas[number])
    return _resolve_schema(schema)


def _resolve_schema(schema: Schema) -> Schema:
    """Return a schema with its references to other schemas resolved."""
    resolved = {**schema, "properties": _resolve_parts(get_mapping(schema, "properties"))}
    return resolved | _resolve_parts({name: schema[name] for name in NESTED if name in schema})


def _resolve_parts(parts: Schema) -> Schema:
    return {name: _resolve_part(part) for name, part in parts.items()}


def _resolve_part(part: Json) -> Json:
    match part:
        case bool():
            return part
        case int():
            return _schema(part)
        case _:
            return _resolve_schema(get_mapping(part))
