"""How a live object differs from what would be left if the wanted one took its whole place.

A replacement takes away whatever is not wanted, whoever owns it. What servers and controllers write
by themselves comes back afterwards, and is not taken away again and again: once an object has been
replaced, only fields that people and other appliers have added since then count as too many.
"""

from __future__ import annotations

import msgspec

from tidegate.model.change import Difference, Fate
from tidegate.model.objects import Json
from tidegate.model.reading import mapping, part, text
from tidegate.plan.diff.adoption import ADOPTED, is_adopted
from tidegate.plan.diff.compare import difference_of, walk_along
from tidegate.plan.diff.owned import Body, Fields, entries_of, fields_in, unite
from tidegate.plan.diff.seal import digest_parts, is_secret

MARK = "replaced "
LABELLED = frozenset(["Job", "ReplicationController"])


def seal_replaced(wanted: Body, live: Body) -> str:
    """Recorded after a replacement: changes when a wanted field does, or with another object.

    A Secret's says nothing of its values: it changes with every write to the object.
    """
    uid = text(live, "metadata", "uid")
    if is_secret(live):
        return MARK + digest_parts(uid, text(live, "metadata", "resourceVersion"))
    said = {name: value for name, value in wanted.items() if name != "status"}
    return MARK + digest_parts(uid, _projected(said, live))


def compare_replaced(wanted: Body, live: Body | None, *, manager: str, seal: str) -> Difference:
    """What becomes of a live object when the wanted one is put in its place.

    `seal` is what was recorded after this very text was written, empty where none was.
    """
    if live is None:
        return Difference(deed=Fate.CREATE)
    entries, was_replaced = entries_of(live), seal.startswith(MARK)
    if not entries and not was_replaced:
        # Somebody has wiped out who owns what: what would go cannot be told.
        return Difference(deed=Fate.REPLACE)
    dropped: Fields = {}
    others: list[Fields] = []
    for entry in entries:
        if was_replaced and not _is_added_by_hand(entry, manager):
            others.append(fields_in(entry))
        elif not entry.get("subresource"):
            dropped = unite(dropped, _without_status(fields_in(entry)))
    if not dropped and seal == seal_replaced(wanted, live):
        return Difference(deed=Fate.KEEP)
    walk = walk_along(_counted(_with_labels(wanted), live), live, dropped, others)
    if not walk.found:
        return Difference(deed=Fate.KEEP)
    found = difference_of(walk, live, wanted)
    deed = Fate.REPLACE if found.deed is Fate.CHANGE else found.deed
    return msgspec.structs.replace(found, deed=deed)


def _with_labels(wanted: Body) -> Body:
    """Some kinds have the labels of their pods where they say none."""
    labels = part(wanted, "spec", "template", "metadata", "labels")
    metadata = mapping(wanted, "metadata")
    if wanted.get("kind") not in LABELLED or not labels or metadata.get("labels"):
        return wanted
    return {**wanted, "metadata": {**metadata, "labels": labels}}


def _counted(wanted: Body, live: Body) -> Body:
    """A Job that says neither how often nor how many at once runs once; servers write that down."""
    spec, told = mapping(wanted, "spec"), part(live, "spec", "completions")
    if wanted.get("kind") != "Job" or {"completions", "parallelism"} & spec.keys() or told != 1:
        return wanted
    return {**wanted, "spec": {**spec, "completions": told}}


def _is_added_by_hand(entry: Body, manager: str) -> bool:
    return text(entry, "manager") != manager and is_adopted(entry, manager, ADOPTED)


def _without_status(fields: Fields) -> Fields:
    """Status is written apart."""
    return {name: inner for name, inner in fields.items() if name != "f:status"}


def _projected(wanted: Json, live: Json) -> Json:
    """What lives where something is wanted; lists as a whole."""
    if not isinstance(wanted, dict) or not isinstance(live, dict):
        return live
    return {name: _projected(inner, live.get(name)) for name, inner in wanted.items()}
