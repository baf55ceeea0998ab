"""Immutable fields of built-in kinds, as Kubernetes 1.36 validates updates.

`immutable.yaml` has the rows; this module has their conditions, and decides whether a server
rejects a change. Custom kinds have CEL rules instead, which only a server evaluates.

Like `ValidatePodUpdate` and `ValidateServiceUpdate` in `pkg/apis/core/validation/validation.go`,
`ValidateStatefulSetUpdate` and `ValidateDeploymentUpdate` in
`pkg/apis/apps/validation/validation.go` and `ValidateJobSpecUpdate` in
`pkg/apis/batch/validation/validation.go` of Kubernetes 1.36.4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TypeAlias, cast

import msgspec

from tidegate.documents import read_documents
from tidegate.model.k8s.json_fields import (
    get_list,
    get_mapping,
    get_mappings,
    get_text,
    get_value,
    object_kind,
)
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.k8s.quantity import to_quantity
from tidegate.schema.causes import forbidden
from tidegate.world.messages import Cause

FILE = Path(__file__).with_suffix(".yaml")
FieldNames: TypeAlias = tuple[str, ...]
"""The path of a field without list indexes."""
Condition: TypeAlias = Callable[[JsonObject, JsonObject], bool]
IMMUTABLE = "field is immutable"
ONLY_WITH_PARALLELISM = "can only be modified in tandem with spec.parallelism"


class ImmutableField(msgspec.Struct, frozen=True, kw_only=True):
    """A field that cannot change while `when(live, desired)` is true."""

    path: FieldNames
    """The path of the field."""
    mutable: tuple[FieldNames, ...]
    """Fields below it that can change."""
    when: Condition
    """When the field is immutable."""
    message: str
    """The message of the server."""
    field: str
    """The name of the field in messages of the server."""
    default: Json
    """The value of a missing field, if the `alternative` is missing as well."""
    alternative: FieldNames
    """A field that may be set instead."""

    def cause(self) -> Cause:
        """Return the error of the server for a change."""
        if self.message in {IMMUTABLE, ONLY_WITH_PARALLELISM}:
            return Cause(self.field, "FieldValueInvalid", f"Invalid value: {self.message}")
        return forbidden(self.field, self.message)


class _Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A row of `immutable.yaml`."""

    places: tuple[str, ...]
    """Paths of the immutable fields."""
    free: tuple[str, ...] = ()
    """Paths of fields below them that can change."""
    when: str = "always"
    """The name of the condition."""
    message: str = IMMUTABLE
    """The message of the server."""
    field: str = ""
    """The name of the field in the message; empty for its path."""
    default: object = None
    """The value of a missing field."""
    alternative: str = ""
    """A field that may be set instead; empty for none."""


@cache
def read_immutable_fields() -> dict[tuple[str, str], tuple[ImmutableField, ...]]:
    """Return the immutable fields by group and kind."""
    (document,) = read_documents(FILE.read_bytes(), FILE.name)
    fields: dict[tuple[str, str], tuple[ImmutableField, ...]] = {}
    for kind, rows in msgspec.convert(document.body, dict[str, tuple[_Row, ...]]).items():
        group, _, name = kind.rpartition("/")
        fields[group, name] = tuple(field for row in rows for field in _row_fields(row))
    return fields


def _row_fields(row: _Row) -> Iterator[ImmutableField]:
    for path in row.places:
        names = _split_path(path)
        yield ImmutableField(
            path=names,
            mutable=tuple(map(_split_path, row.free)),
            when=_is_set(names) if row.when == "set" else CONDITIONS[row.when],
            message=row.message,
            field=row.field or path,
            default=cast("Json", row.default),
            alternative=_split_path(row.alternative),
        )


def _split_path(path: str) -> FieldNames:
    return tuple(path.split(".")) if path else ()


def _is_set(path: FieldNames) -> Condition:
    return lambda live, _desired: bool(get_value(live, *path))


def _keeps_cluster_ip(live: JsonObject, desired: JsonObject) -> bool:
    """Return whether a Service keeps its cluster IP: neither version is an ExternalName.

    Like `validateUpgradeDowngradeClusterIPs` in `pkg/apis/core/validation/validation.go` of
    Kubernetes 1.36.4.
    """
    types = {get_text(body, "spec", "type") for body in (live, desired)}
    return "ExternalName" not in types and bool(get_text(live, "spec", "clusterIP"))


def _keeps_ip_families(live: JsonObject, desired: JsonObject) -> bool:
    """Return whether a Service keeps its IP families. A headless Service may change them."""
    addresses = {get_text(body, "spec", "clusterIP") for body in (live, desired)}
    return _keeps_cluster_ip(live, desired) and "None" not in addresses


def _stays_load_balancer(live: JsonObject, desired: JsonObject) -> bool:
    return all(get_text(body, "spec", "type") == "LoadBalancer" for body in (live, desired))


def _differs_from_parallelism(live: JsonObject, desired: JsonObject) -> bool:
    """Return whether an indexed Job changes its completions without its parallelism.

    Like `validateCompletions` in `pkg/apis/batch/validation/validation.go` of Kubernetes 1.36.4.
    """
    spec = {**get_mapping(live, "spec"), **get_mapping(desired, "spec")}
    return _is_indexed(live, desired) and spec.get("completions") != spec.get("parallelism", 1)


def _is_indexed(live: JsonObject, desired: JsonObject) -> bool:
    spec = {**get_mapping(live, "spec"), **get_mapping(desired, "spec")}
    return spec.get("completionMode") == "Indexed"


def _shrinks(live: JsonObject, desired: JsonObject) -> bool:
    path = ("spec", "resources", "requests", "storage")
    before, after = (to_quantity(get_value(body, *path)) for body in (live, desired))
    return before is not None and after is not None and after < before


def is_established(definition: JsonObject) -> bool:
    """Return whether the kinds of a CRD are served.

    Like `IsCRDConditionTrue` in `pkg/apis/apiextensions/helpers.go` of
    k8s.io/apiextensions-apiserver 0.36.4.
    """
    return any(
        condition.get("type") == "Established" and condition.get("status") == "True"
        for condition in get_mappings(definition, "status", "conditions")
    )


def _extends_deadline(live: JsonObject, desired: JsonObject) -> bool:
    """Return whether the deadline of a Pod moves later.

    It can be set once and then only shortened.

    Like `ValidatePodUpdate` in `pkg/apis/core/validation/validation.go` of Kubernetes 1.36.4.
    """
    before, after = (get_value(body, "spec", "activeDeadlineSeconds") for body in (live, desired))
    if not isinstance(before, int):
        return False
    return not isinstance(after, int) or after > before


def _has_other_container_count(live: JsonObject, desired: JsonObject) -> bool:
    before, after = (len(get_list(body, "spec", "containers")) for body in (live, desired))
    return before != after


CONDITIONS: dict[str, Condition] = {
    "always": lambda _live, _desired: True,
    "another-length": _has_other_container_count,
    "balanced": _stays_load_balancer,
    "counted": lambda live, desired: not _is_indexed(live, desired),
    "established": lambda live, _desired: is_established(live),
    "keeps-families": _keeps_ip_families,
    "longer-life": _extends_deadline,
    "marked": lambda live, _desired: live.get("immutable") is True,
    "out-of-step": _differs_from_parallelism,
    "own-address": _keeps_cluster_ip,
    "shrinks": _shrinks,
    "suspended": lambda live, _desired: get_value(live, "spec", "suspend") is True,
    "unbound": lambda live, _desired: get_text(live, "status", "phase") != "Bound",
    "unsuspended": lambda live, _desired: get_value(live, "spec", "suspend") is not True,
}


def find_immutable(
    changed: Iterable[FieldNames], live: JsonObject, desired: JsonObject
) -> tuple[FieldNames, ...]:
    """Return the changed fields that are immutable."""
    immutable_fields = [*_active_fields(live, desired)]
    return tuple(
        names for names in changed if any(_is_immutable(names, field) for field in immutable_fields)
    )


def find_immutable_changes(before: JsonObject, after: JsonObject) -> tuple[Cause, ...]:
    """Return the errors of the server for an update. Both bodies must be complete.

    A spec that is the same Python object has not changed.
    """
    is_same = before.get("spec") is after.get("spec")
    fields = (
        field
        for field in _active_fields(before, after)
        if not (is_same and field.path[0] == "spec")
    )
    causes = (
        field.cause()
        for field in fields
        if _immutable_value(before, field) != _immutable_value(after, field)
    )
    return tuple(dict.fromkeys(causes))


def _active_fields(live: JsonObject, desired: JsonObject) -> Iterator[ImmutableField]:
    kind = object_kind(desired)
    fields = read_immutable_fields().get((kind.group, kind.name), ())
    return (field for field in fields if field.when(live, desired))


def _is_immutable(names: FieldNames, field: ImmutableField) -> bool:
    is_touched = names[: len(field.path)] == field.path or field.path[: len(names)] == names
    return is_touched and not any(names[: len(mutable)] == mutable for mutable in field.mutable)


def _immutable_value(body: JsonObject, field: ImmutableField) -> Json:
    """Return the value of a field without the parts that can change."""
    value = get_value(body, *field.path)
    if value is None:
        return (
            field.default
            if not field.alternative or get_value(body, *field.alternative) is None
            else None
        )
    return _without_mutable(value, [mutable[len(field.path) :] for mutable in field.mutable])


def _without_mutable(value: Json, mutable: list[FieldNames]) -> Json:
    if not mutable:
        return value
    if isinstance(value, list):
        return [_without_mutable(item, mutable) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {
        name: _without_mutable(inner, [rest[1:] for rest in mutable if rest[0] == name])
        for name, inner in value.items()
        if (name,) not in mutable
    }
    return {name: inner for name, inner in kept.items() if inner not in (None, {})}
