"""Field management: managed fields after a write, and conflicts of server-side apply.

An applier owns the fields of its intent; other writers own what they changed. An apply that
changes a field of another manager is a conflict unless it is forced. A field that its applier
no longer has in its intent is removed, unless another manager owns it as well. Reset fields
(`status` in a write to the object, `spec` in a write to `status`) get no owner. Pure functions
over immutable values; bodies have no `managedFields`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

import msgspec

from tidegate.model.k8s.objects import Json, JsonObject, Kind
from tidegate.sandbox.kinds import RESET_FIELDS, STATUS_ONLY_KINDS
from tidegate.sandbox.ownership.compare import Comparison, collect_fields, compare, is_same_json
from tidegate.sandbox.ownership.fields import EMPTY, FieldSet, field_set_from_paths, format_path
from tidegate.sandbox.ownership.merge import merge, prune_dropped
from tidegate.sandbox.ownership.owners import (
    ManagedFields,
    ManagedFieldsEntry,
    Operation,
    sort_entries,
)
from tidegate.schema.shape import Shape
from tidegate.schema.types import find_typed_problems
from tidegate.world.messages import Cause, FieldOwner

MAX_UPDATERS = 10
ANCIENT_CHANGES, BEFORE_FIRST_APPLY, UNKNOWN_MANAGER = (
    "ancient-changes",
    "before-first-apply",
    "unknown",
)
_SERVER_METADATA = (
    "name namespace creationTimestamp selfLink uid clusterName generation managedFields "
    "resourceVersion"
)
STRIPPED_FIELDS = field_set_from_paths(
    [
        *(["f:apiVersion"], ["f:kind"], ["f:metadata"]),
        *(["f:metadata", f"f:{name}"] for name in _SERVER_METADATA.split()),
    ]
)
"""Fields that no manager owns.

Like `stripSet` in `pkg/util/managedfields/internal/stripmeta.go` of k8s.io/apimachinery 0.36.4.
"""


class WriteScope(msgspec.Struct, frozen=True, kw_only=True):
    """Properties of all writes to a kind, or to one of its subresources."""

    shape: Shape
    """The schema of the kind."""
    version: str
    """The API version of the write."""
    subresource: str = ""
    """The subresource; empty for the object itself."""
    reset_fields: FieldSet = EMPTY
    """Fields that a write cannot change, and so does not own."""
    blank: dict[str, Json]
    """An empty object of this kind: `build_blank` for built-in kinds, else `{}`."""


METADATA, SPEC, STATUS = ("f:metadata",), ("f:spec",), ("f:status",)


def build_write_scope(
    kind: Kind, shape: Shape, subresource: str, *, has_status: bool, is_custom: bool
) -> WriteScope:
    """Return the scope of writes to a kind, or to one of its subresources."""
    return WriteScope(
        shape=shape,
        version=kind.api_version,
        subresource=subresource,
        reset_fields=get_reset_fields(
            kind, subresource=subresource, has_status=has_status, is_custom=is_custom
        ),
        blank={} if is_custom else build_blank(shape),
    )


def get_reset_fields(
    kind: Kind, *, subresource: str = "", has_status: bool, is_custom: bool = False
) -> FieldSet:
    """Return the fields that a write to a kind or subresource cannot change.

    Like `ResetFieldsStrategy` in `pkg/registry/rest/rest.go` of k8s.io/apiserver 0.36.4.
    """
    special = RESET_FIELDS.get((kind.group, kind.name, subresource))
    if special is not None:
        return field_set_from_paths([f"f:{name}" for name in path.split(".")] for path in special)
    if subresource == "status":
        resets_metadata = is_custom or (kind.group, kind.name) in STATUS_ONLY_KINDS
        return field_set_from_paths([SPEC, METADATA] if resets_metadata else [SPEC])
    return field_set_from_paths([STATUS]) if has_status and not subresource else EMPTY


@lru_cache(maxsize=2_048)
def build_blank(shape: Shape) -> dict[str, Json]:
    """Return an empty object of a built-in kind: structs, and lists that are never omitted."""
    blank: dict[str, Json] = {}
    for name, get_shape in shape.fields.items():
        child_shape = get_shape()
        if name in shape.always:
            blank[name] = {**build_blank(child_shape)}
        elif name in shape.required and child_shape.items is not None:
            blank[name] = None
    return blank


class Author(msgspec.Struct, frozen=True, gc=False):
    """The manager of a write, and the time (RFC 3339, whole seconds)."""

    manager: str
    """The field manager."""
    time: str
    """The time of the write."""


class ApplyResult(NamedTuple):
    """The object to store; the live object itself if nothing changed."""

    body: JsonObject
    """The object after the apply."""
    managed_fields: ManagedFields
    """The managed fields after the apply."""


class ApplyConflicts(NamedTuple):
    """Fields of other managers that an apply would change, and the message of the server.

    Like `NewConflictError` in `pkg/util/managedfields/internal/conflict.go` of k8s.io/apimachinery
    0.36.4.
    """

    owned_fields: tuple[FieldOwner, ...]
    """The fields and their managers."""
    message: str
    """The message of the server."""


class InvalidIntent(NamedTuple):
    """An intent that does not match the schema and cannot be merged."""

    problems: tuple[Cause, ...]
    """The problems by field."""


def apply_intent(
    live: JsonObject | None,
    managed_fields: ManagedFields,
    intent: JsonObject,
    *,
    author: Author,
    scope: WriteScope,
    force: bool,
) -> ApplyResult | ApplyConflicts | InvalidIntent:
    """Merge an intent into a live object; `live` is None if there is none yet.

    Like `Apply` in `pkg/util/managedfields/internal/structuredmerge.go` of k8s.io/apimachinery
    0.36.4 and `Apply` in `merge/update.go` of structured-merge-diff 6.3.3.
    """
    fields, is_valid = collect_fields(intent, scope.shape)
    if not is_valid and (problems := find_typed_problems(intent, scope.shape)):
        return InvalidIntent(problems)
    if live is not None and not managed_fields:
        first_author = Author(BEFORE_FIRST_APPLY, author.time)
        managed_fields = _entries_after_update(
            _compare(scope.blank, live, scope), (), author=first_author, scope=scope
        )
    entry = _new_entry(
        Operation.APPLY, author, scope, fields.recursive_difference(scope.reset_fields)
    )
    previous = _find_entry(entry, managed_fields)
    others = tuple(other for other in managed_fields if other is not previous)
    start = scope.blank if live is None else live
    body = _merge_and_prune(start, intent, previous, (entry, *others), scope.shape)
    changes = _compare(start, body, scope)
    if not force and (conflicts := _find_conflicts(changes, others)) is not None:
        return conflicts
    if is_same := is_same_json(body, start):
        body = start
    # An applier that changes nothing keeps its time, and a new one gets none.
    time = ("" if previous is None else previous.time) if is_same else author.time
    new_entry = msgspec.structs.replace(entry, time=time, fields=entry.fields - STRIPPED_FIELDS)
    if not isinstance(body, dict):
        raise TypeError(body)
    return ApplyResult(
        body, _sort_if_changed(managed_fields, (new_entry, *_remove_changed(changes, others)))
    )


def _merge_and_prune(
    start: JsonObject,
    intent: JsonObject,
    previous: ManagedFieldsEntry | None,
    current: ManagedFields,
    shape: Shape,
) -> Json:
    """Return the live object with the intent, without fields that this applier no longer has."""
    body = merge(start, intent, shape)
    if previous is None or previous.fields == current[0].fields - STRIPPED_FIELDS:
        return body
    return prune_dropped(body, previous.fields, tuple(entry.fields for entry in current), shape)


def update_managed_fields(
    before: JsonObject,
    after: JsonObject,
    managed_fields: ManagedFields,
    *,
    author: Author,
    scope: WriteScope,
) -> ManagedFields:
    """Return the managed fields after a write other than apply; for a create, `before` is blank.

    An object whose managed fields were cleared has none until the first apply.

    Like `Update` in `pkg/util/managedfields/internal/structuredmerge.go` of k8s.io/apimachinery
    0.36.4 and `Update` in `merge/update.go` of structured-merge-diff 6.3.3.
    """
    metadata = before.get("metadata")
    if not managed_fields and isinstance(metadata, dict) and metadata.get("uid"):
        return ()
    changes = _compare(before, after, scope)
    return _sort_if_changed(
        managed_fields, _entries_after_update(changes, managed_fields, author=author, scope=scope)
    )


def _new_entry(
    operation: Operation, author: Author, scope: WriteScope, fields: FieldSet
) -> ManagedFieldsEntry:
    return ManagedFieldsEntry(
        manager=author.manager or UNKNOWN_MANAGER,
        operation=operation,
        version=scope.version,
        time=author.time,
        subresource=scope.subresource,
        fields=fields,
    )


def _find_entry(
    entry: ManagedFieldsEntry, managed_fields: ManagedFields
) -> ManagedFieldsEntry | None:
    """Return the previous entry of the same manager, or None."""
    return next((other for other in managed_fields if other.identity == entry.identity), None)


def _compare(before: Json, after: Json, scope: WriteScope) -> Comparison:
    return compare(before, after, scope.shape).exclude_fields(scope.reset_fields)


def _entries_after_update(
    changes: Comparison, managed_fields: ManagedFields, *, author: Author, scope: WriteScope
) -> ManagedFields:
    """Return the entries after an update by this author."""
    written = changes.written - STRIPPED_FIELDS
    if written.is_empty:
        return _cap_updaters(_remove_changed(changes, managed_fields))
    new_entry = _new_entry(Operation.UPDATE, author, scope, written)
    previous = _find_entry(new_entry, managed_fields)
    if previous is None:
        return _cap_updaters((new_entry, *_remove_changed(changes, managed_fields)))
    new_entry = msgspec.structs.replace(
        new_entry, fields=(previous.fields - changes.removed) | written
    )
    others = tuple(entry for entry in managed_fields if entry is not previous)
    return _cap_updaters((new_entry, *_remove_changed(changes, others)))


def _remove_changed(changes: Comparison, entries: Iterable[ManagedFieldsEntry]) -> ManagedFields:
    """Return the entries without the changed fields; empty ones are removed."""
    changed = changes.written | changes.removed
    remaining = ((entry, entry.fields - changed) for entry in entries)
    return tuple(
        entry if fields is entry.fields else msgspec.structs.replace(entry, fields=fields)
        for entry, fields in remaining
        if not fields.is_empty
    )


def _find_conflicts(changes: Comparison, others: ManagedFields) -> ApplyConflicts | None:
    owned_paths = [
        (entry, format_path(path))
        for entry in sorted(others, key=lambda entry: entry.identity)
        for path in (entry.fields & changes.written).paths()
    ]
    if not owned_paths:
        return None
    owned_fields = tuple(
        sorted(FieldOwner(entry.manager, field.removeprefix(".")) for entry, field in owned_paths)
    )
    return ApplyConflicts(owned_fields, _conflict_message(owned_paths))


def _conflict_message(owned_paths: list[tuple[ManagedFieldsEntry, str]]) -> str:
    if len(owned_paths) == 1:
        ((entry, field),) = owned_paths
        return f"Apply failed with 1 conflict: conflict with {_format_manager(entry)}: {field}"
    lines: dict[str, list[str]] = {}
    for entry, field in owned_paths:
        lines.setdefault(f"conflicts with {_format_manager(entry)}:", []).append(f"- {field}")
    details = "\n".join(line for title, fields in lines.items() for line in (title, *fields))
    return f"Apply failed with {len(owned_paths)} conflicts: {details}"


def _format_manager(entry: ManagedFieldsEntry) -> str:
    subresource = f' with subresource "{entry.subresource}"' if entry.subresource else ""
    version = f" using {entry.version}" if entry.operation is Operation.UPDATE else ""
    return f'"{entry.manager}"{subresource}{version}'


def _sort_if_changed(before: ManagedFields, entries: Iterable[ManagedFieldsEntry]) -> ManagedFields:
    after = sort_entries(entry for entry in entries if not entry.fields.is_empty)
    return before if after == before else after


def _cap_updaters(managed_fields: ManagedFields) -> ManagedFields:
    """Return at most ten updaters: the oldest ones of a version are merged.

    Like `capUpdateManagers` in `pkg/util/managedfields/internal/capmanagers.go` of
    k8s.io/apimachinery 0.36.4.
    """
    if len(managed_fields) <= MAX_UPDATERS:
        return managed_fields
    updaters = sorted(
        (entry for entry in managed_fields if entry.operation is Operation.UPDATE),
        key=lambda entry: (entry.time, entry.identity),
    )
    surplus = len(updaters) - MAX_UPDATERS
    if surplus <= 0:
        return managed_fields
    entries = {entry.identity: entry for entry in managed_fields}
    firsts: dict[str, ManagedFieldsEntry] = {}
    for entry in updaters:
        first = firsts.setdefault(entry.version, entry)
        if first is entry:
            continue
        bucket = msgspec.structs.replace(first, manager=ANCIENT_CHANGES, subresource="")
        old = entries.get(bucket.identity) or entries.pop(first.identity)
        fields = entries.pop(entry.identity).fields | old.fields
        entries[bucket.identity] = msgspec.structs.replace(bucket, time=entry.time, fields=fields)
        surplus -= 1
        if surplus == 0:
            break
    return tuple(entries.values())
