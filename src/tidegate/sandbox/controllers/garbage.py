"""Garbage collection: what has lost its owner goes, and owners wait for what they own."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.model.moment import Ms
from tidegate.model.objects import Json, Propagation, Ref
from tidegate.sandbox.controllers.reaction import Controller, Looking, Sight
from tidegate.sandbox.controllers.writes import delete, patch, referred, without_finalizer
from tidegate.sandbox.server.lifecycle import FOREGROUND, ORPHAN
from tidegate.sandbox.server.store import Stored, Transition, owner_references
from tidegate.world.calls import Write
from tidegate.world.facts import Change


def collect(view: Sight, ref: Ref, _now: Ms) -> Looking:
    """What follows for one object from its owners and from what it owns."""
    stored = view.get(ref)
    if stored is None:
        return
    if stored.is_deleting and ORPHAN in stored.finalizers:
        for own in view.owned_by(stored.uid):
            yield _released(own, {stored.uid})
        yield without_finalizer(stored, ORPHAN)
    elif stored.is_deleting and FOREGROUND in stored.finalizers:
        yield from _take_along(view, stored)
    elif not stored.is_deleting:
        yield from _follow_owners(view, stored)


def _take_along(view: Sight, owner: Stored) -> Iterator[Write]:
    owned = view.owned_by(owner.uid)
    for own in owned:
        if not own.is_deleting:
            propagation = (
                Propagation.FOREGROUND if view.owned_by(own.uid) else Propagation.BACKGROUND
            )
            yield delete(own, propagation)
    if not any(_blocks(own, owner.uid) for own in owned):
        yield without_finalizer(owner, FOREGROUND)


def _follow_owners(view: Sight, stored: Stored) -> Iterator[Write]:
    references = owner_references(stored.metadata)
    if not references:
        return
    owners = [(str(one.get("uid")), _owner(view, stored, one)) for one in references]
    gone = {uid for uid, owner in owners if owner is None}
    waiting = [
        owner
        for _, owner in owners
        if owner and owner.is_deleting and FOREGROUND in owner.finalizers
    ]
    if len(gone) + len(waiting) == len(owners):
        yield delete(stored)
    elif gone:
        yield _released(stored, gone)


def _owner(view: Sight, stored: Stored, reference: dict[str, Json]) -> Stored | None:
    """The owner that is meant: in the same namespace or cluster-wide, and of the same life."""
    for namespace in (stored.ref.namespace, ""):
        found = view.get(referred(reference, namespace))
        if found is not None and found.uid == reference.get("uid"):
            return found
    return None


def _blocks(own: Stored, uid: str) -> bool:
    return any(
        one.get("uid") == uid and one.get("blockOwnerDeletion") is True
        for one in owner_references(own.metadata)
    )


def _released(own: Stored, uids: set[str]) -> Write:
    """What is left of its owners without these."""
    left = [one for one in owner_references(own.metadata) if str(one.get("uid")) not in uids]
    return patch(own, {"metadata": {"ownerReferences": [*left] or None}})


def _concerns(view: Sight, event: Transition) -> Iterator[Ref]:
    stored = event.stored
    if event.change is not Change.DELETED:
        if stored.is_deleting or _has_new_owners(event):
            yield stored.ref
        return
    yield from (own.ref for own in view.owned_by(stored.uid))
    for reference in owner_references(stored.metadata):
        for namespace in {stored.ref.namespace: None, "": None}:
            yield referred(reference, namespace)


def _has_new_owners(event: Transition) -> bool:
    """Owners that stay are no news: when one of them goes, that is a change of its own."""
    owners = event.stored.metadata.get("ownerReferences")
    before = event.before.metadata.get("ownerReferences") if event.before else None
    return bool(owners) and owners != before


GARBAGE = Controller("garbage", collect, _concerns)
