"""The controllers without which the API itself would not keep its promises.

Garbage: what has lost its owner goes, and owners wait for what they own. Namespaces: what they
begin with, and how they are emptied when they go. CRDs: their names are accepted, their kinds
established; when they go, so do their instances.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tidegate.model.moment import Ms
from tidegate.model.objects import Json, Kind, Propagation, Ref
from tidegate.model.reading import mappings, part
from tidegate.sandbox.controllers import writes
from tidegate.sandbox.controllers.conditions import new_condition
from tidegate.sandbox.controllers.reaction import Controller, Looking, Visible
from tidegate.sandbox.kinds import CONFIG_MAP, DEFINITIONS, NAMESPACE
from tidegate.sandbox.server.lifecycle import CLEANUP, FOREGROUND, ORPHAN
from tidegate.sandbox.server.register import served_versions
from tidegate.sandbox.server.store import Body, Stored, Transition, owner_references
from tidegate.schema.frozen import is_established
from tidegate.world.calls import Verb, Write
from tidegate.world.facts import Change

ACCOUNT = Kind("", "v1", "ServiceAccount")
ROOT_CA = "kube-root-ca.crt"
API_SERVER = "kube-apiserver"
ACCEPTED = (
    ("NamesAccepted", "NoConflicts", "no conflicts found"),
    ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
)


def collect(view: Visible, ref: Ref, _now: Ms) -> Looking:
    """What follows for one object from its owners and from what it owns."""
    stored = view.get(ref)
    if stored is None:
        return
    if stored.is_deleting and ORPHAN in stored.finalizers:
        for own in view.owned_by(stored.uid):
            yield _released(own, {stored.uid})
        yield writes.without_finalizer(stored, ORPHAN)
    elif stored.is_deleting and FOREGROUND in stored.finalizers:
        yield from _take_along(view, stored)
    elif not stored.is_deleting:
        yield from _follow_owners(view, stored)


def _take_along(view: Visible, owner: Stored) -> Iterator[Write]:
    owned = view.owned_by(owner.uid)
    for own in owned:
        if not own.is_deleting:
            way = Propagation.FOREGROUND if view.owned_by(own.uid) else Propagation.BACKGROUND
            yield writes.delete(own, way)
    if not any(_blocks(own, owner.uid) for own in owned):
        yield writes.without_finalizer(owner, FOREGROUND)


def _follow_owners(view: Visible, stored: Stored) -> Iterator[Write]:
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
        yield writes.delete(stored)
    elif gone:
        yield _released(stored, gone)


def _owner(view: Visible, stored: Stored, reference: dict[str, Json]) -> Stored | None:
    """The owner that is meant: in the same namespace or cluster-wide, and of the same life."""
    for namespace in (stored.ref.namespace, ""):
        found = view.get(writes.referred(reference, namespace))
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
    return writes.patch(own, {"metadata": {"ownerReferences": [*left] or None}})


def _concerns_owned(view: Visible, event: Transition) -> Iterator[Ref]:
    stored = event.stored
    if event.change is not Change.DELETED:
        if stored.is_deleting or _has_new_owners(event):
            yield stored.ref
        return
    yield from (own.ref for own in view.owned_by(stored.uid))
    for reference in owner_references(stored.metadata):
        for namespace in {stored.ref.namespace: None, "": None}:
            yield writes.referred(reference, namespace)


def _has_new_owners(event: Transition) -> bool:
    """Owners that stay are no news: when one of them goes, that is a change of its own."""
    owners = event.stored.metadata.get("ownerReferences")
    before = event.before.metadata.get("ownerReferences") if event.before else None
    return bool(owners) and owners != before


GARBAGE = Controller("garbage", collect, _concerns_owned)


def keep_namespace(view: Visible, ref: Ref, _now: Ms) -> Looking:
    """A namespace has its first objects, or is emptied and let go."""
    namespace = view.get(ref)
    if namespace is None:
        return
    if not namespace.is_deleting:
        yield from _furnish(view, ref.name)
        return
    content = view.inside(ref.name)
    for stored in content:
        if not stored.is_deleting:
            yield writes.delete(stored)
    if not content:
        body = msgspec.json.encode({"spec": {"finalizers": None}})
        yield Write(
            verb=Verb.PATCH, ref=ref, body=body, subresource="finalize", manager=writes.MANAGER
        )


def _furnish(view: Visible, name: str) -> Iterator[Write]:
    wanted: tuple[tuple[Kind, str, Body], ...] = (
        (ACCOUNT, "default", {}),
        (CONFIG_MAP, ROOT_CA, {"data": {"ca.crt": "simulated"}}),
    )
    for kind, own, content in wanted:
        if view.get(Ref(kind, name, own)) is None:
            yield writes.create(
                kind, name, {"metadata": {"name": own, "namespace": name}, **content}
            )


def _concerns_namespaces(_view: Visible, event: Transition) -> Iterator[Ref]:
    ref = event.stored.ref
    if ref.kind == NAMESPACE:
        yield ref
    elif event.change is Change.DELETED and ref.namespace:
        yield Ref(NAMESPACE, "", ref.namespace)


NAMESPACES = Controller("namespaces", keep_namespace, _concerns_namespaces)


def keep_definition(view: Visible, ref: Ref, now: Ms) -> Looking:
    """A CRD becomes Established; one that goes takes its instances along."""
    definition = view.get(ref)
    if definition is None:
        return
    if definition.is_deleting:
        yield from _clean_up(view, definition)
    elif not is_established(definition.body):
        status: Body = {"status": _established(definition.body, now)}
        yield writes.patch(definition, status, subresource="status", manager=API_SERVER)


def _clean_up(view: Visible, definition: Stored) -> Iterator[Write]:
    kind = next((kind for kind, _ in served_versions(definition.body)), None)
    instances = view.all_of(kind) if kind else []
    for stored in instances:
        if not stored.is_deleting:
            yield writes.delete(stored)
    if not instances and CLEANUP in definition.finalizers:
        yield writes.without_finalizer(definition, CLEANUP, manager=API_SERVER)


def _established(body: Body, now: Ms) -> Body:
    versions = mappings(body, "spec", "versions")
    stored = [one.get("name") for one in versions if one.get("storage")]
    return {
        "acceptedNames": part(body, "spec", "names"),
        "storedVersions": stored,
        "conditions": [
            new_condition(name, "True", reason, message, now=now, dated="")
            for name, reason, message in ACCEPTED
        ],
    }


def _concerns_definitions(view: Visible, event: Transition) -> Iterator[Ref]:
    ref = event.stored.ref
    if ref.kind == DEFINITIONS:
        yield ref
    elif event.change is Change.DELETED and "." in ref.kind.group:
        yield from (
            definition.ref
            for definition in view.all_of(DEFINITIONS)
            if definition.is_deleting and definition.ref.name.endswith(f".{ref.kind.group}")
        )


CUSTOM_KINDS = Controller("custom-kinds", keep_definition, _concerns_definitions, delay=Ms(100))
API_CONTROLLERS = (GARBAGE, NAMESPACES, CUSTOM_KINDS)
