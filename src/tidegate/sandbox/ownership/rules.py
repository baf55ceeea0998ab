"""Who owns what after a write, and who stands in its way.

An applier owns what it names; whoever else writes owns what it changed. An apply that would change
a field of somebody else is a conflict unless it is forced, and a field that its applier no longer
names goes, unless somebody else owns it too. A server resets some fields after a write (`status`
through the object itself, `spec` through `status`), so nobody comes to own them there. Pure
functions over frozen values; the bodies they take and give have no `managedFields`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import msgspec

from tidegate.model.objects import Json, Kind
from tidegate.sandbox.kinds import RESETS, STATUS_ALONE
from tidegate.sandbox.ownership.compare import Comparison, compare, read_intent, same
from tidegate.sandbox.ownership.fields import NOTHING, Fields, fields_from, show_path
from tidegate.sandbox.ownership.merge import merge, pruned
from tidegate.sandbox.ownership.owners import Operation, OwnerEntry, Owners, in_order
from tidegate.schema.decoding import find_typed_problems
from tidegate.schema.shape import Shape
from tidegate.world.facts import Cause, Owned

Body: TypeAlias = dict[str, Json]
UPDATERS_LIMIT = 10
ANCIENT, BEFORE_FIRST_APPLY, UNKNOWN = "ancient-changes", "before-first-apply", "unknown"
_OF_A_LIFE = (
    "name namespace creationTimestamp selfLink uid clusterName generation managedFields "
    "resourceVersion"
)
NEVER_OWNED = fields_from(
    [
        *(["f:apiVersion"], ["f:kind"], ["f:metadata"]),
        *(["f:metadata", f"f:{name}"] for name in _OF_A_LIFE.split()),
    ]
)


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for every write to a kind, or to one of its subresources."""

    shape: Shape
    version: str
    subresource: str = ""
    resets: Fields = NOTHING
    """Fields that a write through here cannot change, and so does not own."""
    blank: dict[str, Json]
    """An object of this kind of which nothing was said yet: `blank_of` built-in ones, else `{}`."""


METADATA, SPEC, STATUS = ("f:metadata",), ("f:spec",), ("f:status",)


def terms_of(
    kind: Kind, shape: Shape, subresource: str, *, has_status: bool, is_custom: bool
) -> Terms:
    """What holds for writes to a kind, or through one of its subresources."""
    return Terms(
        shape=shape,
        version=kind.api_version,
        subresource=subresource,
        resets=resets_of(kind, subresource=subresource, has_status=has_status, is_custom=is_custom),
        blank={} if is_custom else blank_of(shape),
    )


def resets_of(
    kind: Kind, *, subresource: str = "", has_status: bool, is_custom: bool = False
) -> Fields:
    """The fields that a write to a kind (or through its subresource) cannot change."""
    special = RESETS.get((kind.group, kind.name, subresource))
    if special is not None:
        return fields_from([f"f:{name}" for name in path.split(".")] for path in special)
    if subresource == "status":
        is_alone = is_custom or (kind.group, kind.name) in STATUS_ALONE
        return fields_from([SPEC, METADATA] if is_alone else [SPEC])
    return fields_from([STATUS]) if has_status and not subresource else NOTHING


@lru_cache(maxsize=2_048)
def blank_of(shape: Shape) -> dict[str, Json]:
    """An object of a built-in kind of which nothing was said: structs, and lists never left out."""
    blank: dict[str, Json] = {}
    for name, asked in shape.fields.items():
        place = asked()
        if name in shape.always:
            blank[name] = {**blank_of(place)}
        elif name in shape.required and place.items is not None:
            blank[name] = None
    return blank


class Author(msgspec.Struct, frozen=True, gc=False):
    """Who writes, and when (RFC 3339, whole seconds)."""

    manager: str
    time: str


class Applied(NamedTuple):
    """The object as it is to be stored: the live one itself where nothing changed."""

    body: Body
    owners: Owners


class Conflicts(NamedTuple):
    """Whose fields stand in the way, and how the server says so."""

    owned: tuple[Owned, ...]
    message: str


class Unfit(NamedTuple):
    """An intent that cannot be merged."""

    problems: tuple[Cause, ...]


def apply(
    live: Body | None, owners: Owners, intent: Body, *, by: Author, terms: Terms, force: bool
) -> Applied | Conflicts | Unfit:
    """Bring an intent into a live object; None: there is none yet."""
    fields, is_fit = read_intent(intent, terms.shape)
    if not is_fit and (problems := find_typed_problems(intent, terms.shape)):
        return Unfit(problems)
    if live is not None and not owners:
        first = Author(BEFORE_FIRST_APPLY, by.time)
        owners = _taken(_changes(terms.blank, live, terms), (), by=first, terms=terms)
    entry = _entry(Operation.APPLY, by, terms, fields.outside(terms.resets))
    last = _find(entry, owners)
    others = tuple(other for other in owners if other is not last)
    start = terms.blank if live is None else live
    body = _merged(start, intent, last, (entry, *others), terms.shape)
    changes = _changes(start, body, terms)
    if not force and (conflicts := _conflicts(changes, others)) is not None:
        return conflicts
    if is_same := same(body, start):
        body = start
    # An applier that changes nothing keeps its time, and a new one gets none.
    time = ("" if last is None else last.time) if is_same else by.time
    mine = msgspec.structs.replace(entry, time=time, fields=entry.fields - NEVER_OWNED)
    if not isinstance(body, dict):
        raise TypeError(body)
    return Applied(body, _settled(owners, (mine, *_unchanged(changes, others))))


def _merged(start: Body, intent: Body, last: OwnerEntry | None, now: Owners, shape: Shape) -> Json:
    """The live object with the intent, without what this applier no longer names."""
    body = merge(start, intent, shape)
    if last is None or last.fields == now[0].fields - NEVER_OWNED:
        return body
    return pruned(body, last.fields, tuple(entry.fields for entry in now), shape)


def update(before: Body, after: Body, owners: Owners, *, by: Author, terms: Terms) -> Owners:
    """Who owns what after any other write; to create, `before` is the blank of the terms.

    An object whose owners were cleared has none until somebody applies to it.
    """
    metadata = before.get("metadata")
    if not owners and isinstance(metadata, dict) and metadata.get("uid"):
        return ()
    changes = _changes(before, after, terms)
    return _settled(owners, _taken(changes, owners, by=by, terms=terms))


def _entry(operation: Operation, by: Author, terms: Terms, fields: Fields) -> OwnerEntry:
    return OwnerEntry(
        manager=by.manager or UNKNOWN,
        operation=operation,
        version=terms.version,
        time=by.time,
        subresource=terms.subresource,
        fields=fields,
    )


def _find(entry: OwnerEntry, owners: Owners) -> OwnerEntry | None:
    """What the same writer owned until now."""
    return next((other for other in owners if other.identity == entry.identity), None)


def _changes(before: Json, after: Json, terms: Terms) -> Comparison:
    return compare(before, after, terms.shape).outside(terms.resets)


def _taken(changes: Comparison, owners: Owners, *, by: Author, terms: Terms) -> Owners:
    """The entries after an update by this author."""
    taken = changes.put - NEVER_OWNED
    if taken.is_empty:
        return _capped(_unchanged(changes, owners))
    mine = _entry(Operation.UPDATE, by, terms, taken)
    last = _find(mine, owners)
    if last is None:
        return _capped((mine, *_unchanged(changes, owners)))
    mine = msgspec.structs.replace(mine, fields=(last.fields - changes.removed) | taken)
    others = tuple(entry for entry in owners if entry is not last)
    return _capped((mine, *_unchanged(changes, others)))


def _unchanged(changes: Comparison, owners: Iterable[OwnerEntry]) -> Owners:
    """The entries without what was changed; those that are left with nothing are gone."""
    changed = changes.put | changes.removed
    kept = ((entry, entry.fields - changed) for entry in owners)
    return tuple(
        entry if fields is entry.fields else msgspec.structs.replace(entry, fields=fields)
        for entry, fields in kept
        if not fields.is_empty
    )


def _conflicts(changes: Comparison, others: Owners) -> Conflicts | None:
    found = [
        (entry, show_path(path))
        for entry in sorted(others, key=lambda entry: entry.identity)
        for path in (entry.fields & changes.put).paths()
    ]
    if not found:
        return None
    owned = tuple(sorted(Owned(entry.manager, field.removeprefix(".")) for entry, field in found))
    return Conflicts(owned, _message(found))


def _message(found: list[tuple[OwnerEntry, str]]) -> str:
    if len(found) == 1:
        ((entry, field),) = found
        return f"Apply failed with 1 conflict: conflict with {_shown(entry)}: {field}"
    lines: dict[str, list[str]] = {}
    for entry, field in found:
        lines.setdefault(f"conflicts with {_shown(entry)}:", []).append(f"- {field}")
    told = "\n".join(line for head, fields in lines.items() for line in (head, *fields))
    return f"Apply failed with {len(found)} conflicts: {told}"


def _shown(entry: OwnerEntry) -> str:
    subresource = f' with subresource "{entry.subresource}"' if entry.subresource else ""
    version = f" using {entry.version}" if entry.operation is Operation.UPDATE else ""
    return f'"{entry.manager}"{subresource}{version}'


def _settled(before: Owners, entries: Iterable[OwnerEntry]) -> Owners:
    after = in_order(entry for entry in entries if not entry.fields.is_empty)
    return before if after == before else after


def _capped(owners: Owners) -> Owners:
    """At most ten updaters: the oldest of a version are put together."""
    if len(owners) <= UPDATERS_LIMIT:
        return owners
    updaters = sorted(
        (entry for entry in owners if entry.operation is Operation.UPDATE),
        key=lambda entry: (entry.time, entry.identity),
    )
    surplus = len(updaters) - UPDATERS_LIMIT
    if surplus <= 0:
        return owners
    entries = {entry.identity: entry for entry in owners}
    firsts: dict[str, OwnerEntry] = {}
    for entry in updaters:
        first = firsts.setdefault(entry.version, entry)
        if first is entry:
            continue
        bucket = msgspec.structs.replace(first, manager=ANCIENT, subresource="")
        old = entries.get(bucket.identity) or entries.pop(first.identity)
        fields = entries.pop(entry.identity).fields | old.fields
        entries[bucket.identity] = msgspec.structs.replace(bucket, time=entry.time, fields=fields)
        surplus -= 1
        if surplus == 0:
            break
    return tuple(entries.values())
