"""Who owns which fields of an object: the entries of `metadata.managedFields`.

Entries are frozen values, kept in the order in which the server writes them.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from operator import attrgetter
from typing import TypeAlias

import msgspec

from tidegate.model.objects import Json
from tidegate.sandbox.ownership.fields import Fields, read_fields, write_fields

FIELDS_TYPE = "FieldsV1"
KNOWN = 50_000
"""How many encoded entries are kept, by the identity of the entry."""


class Operation(StrEnum):
    """How fields came to be owned: by stating an intent, or by any other write."""

    APPLY = "Apply"
    UPDATE = "Update"


class OwnerEntry(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one writer owns. `time` is as servers write it; they leave it out at times."""

    manager: str
    operation: Operation
    version: str
    time: str = ""
    subresource: str = ""
    fields: Fields

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """Two entries with the same identity are one. An applier may change its version."""
        version = "" if self.operation is Operation.APPLY else self.version
        return self.manager, self.operation, version, self.subresource


Owners: TypeAlias = tuple[OwnerEntry, ...]


def in_order(entries: Iterable[OwnerEntry]) -> Owners:
    """As the server sorts them: appliers first, then by time."""
    return tuple(sorted(entries, key=_RANK))


_RANK = attrgetter("operation", "time", "manager", "version", "subresource")
_known: dict[int, tuple[OwnerEntry, msgspec.Raw]] = {}


class _Written(msgspec.Struct, rename="camel"):
    operation: Operation
    api_version: str
    fields_type: str
    manager: str = ""
    time: str | None = None
    subresource: str = ""
    fields_v1: object = msgspec.field(default=None, name="fieldsV1")


def read_owners(written: Json) -> Owners | None:
    """The entries of a body's `managedFields`; None where they cannot be read."""
    try:
        entries = msgspec.convert(written or [], list[_Written])
    except msgspec.ValidationError:
        return None
    if not all(entry.api_version and entry.fields_type == FIELDS_TYPE for entry in entries):
        return None
    found = (
        OwnerEntry(
            manager=entry.manager,
            operation=entry.operation,
            version=entry.api_version,
            time=entry.time or "",
            subresource=entry.subresource,
            fields=read_fields(entry.fields_v1),
        )
        for entry in entries
    )
    return in_order({entry.identity: entry for entry in found}.values())


def write_owners(owners: Owners) -> list[Json]:
    """The entries as a body has them."""
    return [_write_entry(entry) for entry in owners]


def encode_owners(owners: Owners) -> list[msgspec.Raw]:
    """The same as bytes. Most entries stay as they were, so what was encoded is kept."""
    return [_encoded_once(entry) for entry in owners]


def _encoded_once(entry: OwnerEntry) -> msgspec.Raw:
    known = _known.get(id(entry))
    if known is not None and known[0] is entry:
        return known[1]
    if len(_known) >= KNOWN:
        _known.clear()
    encoded = msgspec.Raw(msgspec.json.encode(_write_entry(entry)))
    _known[id(entry)] = (entry, encoded)
    return encoded


def _write_entry(entry: OwnerEntry) -> dict[str, Json]:
    written: dict[str, Json] = {
        "manager": entry.manager,
        "operation": str(entry.operation),
        "apiVersion": entry.version,
        "time": entry.time,
        "fieldsType": FIELDS_TYPE,
        "fieldsV1": write_fields(entry.fields),
        "subresource": entry.subresource,
    }
    return {name: value for name, value in written.items() if value != ""}


def owners_for_update(live: Owners, written: Json, *, subresource: str = "") -> Owners:
    """Whose entries an update starts from: a caller may send its own, or send them empty.

    `written` is `metadata.managedFields` of what the caller sent, None where there is none. Sent
    through a subresource, or unreadable, they do not count.
    """
    if subresource or written is None:
        return live
    if written in ([], [{}]):
        return ()
    return read_owners(written) or live


def keep_times(before: Owners, after: Owners) -> Owners:
    """The entries of an object that is otherwise unchanged: new times alone do not count."""
    if len(before) != len(after):
        return after
    is_same = all(
        msgspec.structs.replace(new, time=old.time) == old
        for old, new in zip(before, after, strict=True)
    )
    return before if is_same else after
