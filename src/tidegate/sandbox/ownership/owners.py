"""Managed fields of an object: the entries of `metadata.managedFields`.

Entries are immutable, and kept in the order of the server.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from operator import attrgetter
from typing import TypeAlias

import msgspec

from tidegate.model.k8s.objects import Json
from tidegate.sandbox.ownership.fields import FieldSet, parse_fields_v1, to_fields_v1

FIELDS_TYPE = "FieldsV1"
MAX_CACHED_ENTRIES = 50_000
"""Maximum number of cached encoded entries, which are found by the identity of the entry."""


class Operation(StrEnum):
    """The operation by which a manager owns fields: a server-side apply, or any other write."""

    APPLY = "Apply"
    UPDATE = "Update"


class ManagedFieldsEntry(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The fields of one manager."""

    manager: str
    """The field manager."""
    operation: Operation
    """The operation by which the manager owns the fields."""
    version: str
    """The API version of the fields."""
    time: str = ""
    """Time as servers write it; they sometimes omit it."""
    subresource: str = ""
    """The subresource of the write; empty for the object itself."""
    fields: FieldSet
    """The owned fields."""

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """The key that is unique among the entries. An applier may change its version."""
        version = "" if self.operation is Operation.APPLY else self.version
        return self.manager, self.operation, version, self.subresource


ManagedFields: TypeAlias = tuple[ManagedFieldsEntry, ...]


def sort_entries(entries: Iterable[ManagedFieldsEntry]) -> ManagedFields:
    """Return the entries in the order of the server: appliers first, then by time.

    Like `sortEncodedManagedFields` in `pkg/util/managedfields/internal/managedfields.go` of
    k8s.io/apimachinery 0.36.4.
    """
    return tuple(sorted(entries, key=_SORT_KEY))


_SORT_KEY = attrgetter("operation", "time", "manager", "version", "subresource")
_encoded_entries: dict[int, tuple[ManagedFieldsEntry, msgspec.Raw]] = {}


class _EncodedEntry(msgspec.Struct, rename="camel"):
    """An entry of `metadata.managedFields`."""

    operation: Operation
    """`Apply` or `Update`."""
    api_version: str
    """The API version of the fields."""
    fields_type: str
    """`FieldsV1`."""
    manager: str = ""
    """The field manager."""
    time: str | None = None
    """The time of the last change."""
    subresource: str = ""
    """The subresource of the write."""
    fields_v1: object = msgspec.field(default=None, name="fieldsV1")
    """The fields."""


def parse_managed_fields(value: Json) -> ManagedFields | None:
    """Parse the `managedFields` of a body; None if they are invalid.

    Like `DecodeManagedFields` in `pkg/util/managedfields/internal/managedfields.go` of
    k8s.io/apimachinery 0.36.4.
    """
    try:
        entries = msgspec.convert(value or [], list[_EncodedEntry])
    except msgspec.ValidationError:
        return None
    if not all(entry.api_version and entry.fields_type == FIELDS_TYPE for entry in entries):
        return None
    parsed = (
        ManagedFieldsEntry(
            manager=entry.manager,
            operation=entry.operation,
            version=entry.api_version,
            time=entry.time or "",
            subresource=entry.subresource,
            fields=parse_fields_v1(entry.fields_v1),
        )
        for entry in entries
    )
    return sort_entries({entry.identity: entry for entry in parsed}.values())


def managed_fields_to_json(managed_fields: ManagedFields) -> list[Json]:
    """Return the entries as they are in a body."""
    return [_entry_to_json(entry) for entry in managed_fields]


def encode_managed_fields(managed_fields: ManagedFields) -> list[msgspec.Raw]:
    """Return the entries as JSON. Encoded entries are cached, because most do not change."""
    return [_encode_entry(entry) for entry in managed_fields]


def _encode_entry(entry: ManagedFieldsEntry) -> msgspec.Raw:
    cached = _encoded_entries.get(id(entry))
    if cached is not None and cached[0] is entry:
        return cached[1]
    if len(_encoded_entries) >= MAX_CACHED_ENTRIES:
        _encoded_entries.clear()
    encoded = msgspec.Raw(msgspec.json.encode(_entry_to_json(entry)))
    _encoded_entries[id(entry)] = (entry, encoded)
    return encoded


def _entry_to_json(entry: ManagedFieldsEntry) -> dict[str, Json]:
    fields: dict[str, Json] = {
        "manager": entry.manager,
        "operation": str(entry.operation),
        "apiVersion": entry.version,
        "time": entry.time,
        "fieldsType": FIELDS_TYPE,
        "fieldsV1": to_fields_v1(entry.fields),
        "subresource": entry.subresource,
    }
    return {name: value for name, value in fields.items() if value != ""}


def managed_fields_for_update(
    live: ManagedFields, sent: Json, *, subresource: str = ""
) -> ManagedFields:
    """Return the entries that an update starts from: a client can send its own, or empty ones.

    `sent` is `metadata.managedFields` of the request, None if absent. It is ignored if it was sent
    through a subresource or is invalid.

    Like `Update` and `isResetManagedFields` in `pkg/util/managedfields/internal/fieldmanager.go` of
    k8s.io/apimachinery 0.36.4.
    """
    if subresource or sent is None:
        return live
    if sent in ([], [{}]):
        return ()
    return parse_managed_fields(sent) or live


def keep_unchanged_times(before: ManagedFields, after: ManagedFields) -> ManagedFields:
    """Return the entries of an otherwise unchanged object: new times alone do not count.

    Like `IgnoreManagedFieldsTimestampsTransformer` in
    `pkg/endpoints/handlers/fieldmanager/equality.go` of k8s.io/apiserver 0.36.4.
    """
    if len(before) != len(after):
        return after
    is_same = all(
        msgspec.structs.replace(new, time=old.time) == old
        for old, new in zip(before, after, strict=True)
    )
    return before if is_same else after
