"""The writes that controllers share: a status, a patch, a new object, a deletion, an Event."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from tidegate.model.moment import Ms
from tidegate.model.objects import Json, Kind, Propagation, Ref
from tidegate.model.reading import mapping, text
from tidegate.sandbox.controllers.conditions import moment_of
from tidegate.sandbox.controllers.reaction import Concerns, Visible
from tidegate.sandbox.server.lifecycle import spell, timestamp
from tidegate.sandbox.server.store import Body, Stored, Transition, owner_references
from tidegate.world.calls import PatchForm, Verb, Write

MANAGER = "kube-controller-manager"
DIGEST_LENGTH = 10
EVENT = Kind("", "v1", "Event")


def set_status(
    stored: Stored, status: Json, *, subresource: str = "status", manager: str = MANAGER
) -> Write:
    """The status as a whole; what it does not name is gone."""
    operation: Body = {"op": "add", "path": "/status", "value": status}
    return Write(
        verb=Verb.PATCH,
        form=PatchForm.JSON,
        ref=stored.ref,
        body=msgspec.json.encode([operation]),
        subresource=subresource,
        uid=stored.uid,
        manager=manager,
    )


def say(stored: Stored, status: Body) -> Iterator[Write]:
    """The status as a whole, where it is another one."""
    if status != mapping(stored.body, "status"):
        yield set_status(stored, status)


def patch(stored: Stored, change: Body, *, subresource: str = "", manager: str = MANAGER) -> Write:
    """A merge patch."""
    return Write(
        verb=Verb.PATCH,
        ref=stored.ref,
        body=msgspec.json.encode(change),
        subresource=subresource,
        uid=stored.uid,
        manager=manager,
    )


def without_finalizer(stored: Stored, finalizer: str, *, manager: str = MANAGER) -> Write:
    left = [one for one in stored.finalizers if one != finalizer]
    return patch(stored, {"metadata": {"finalizers": left or None}}, manager=manager)


def create(kind: Kind, namespace: str, body: Body) -> Write:
    """A new object. One without a name must say how its name begins."""
    metadata = body.get("metadata")
    whole: Body = {"apiVersion": kind.api_version, "kind": kind.name, **body}
    return Write(
        verb=Verb.CREATE,
        ref=Ref(kind, namespace, text(metadata, "name")),
        body=msgspec.json.encode(whole),
        manager=MANAGER,
    )


def delete(stored: Stored, propagation: Propagation = Propagation.BACKGROUND) -> Write:
    return Write(verb=Verb.DELETE, ref=stored.ref, uid=stored.uid, propagation=propagation)


def delete_all(found: Iterable[Stored]) -> Iterator[Write]:
    for stored in found:
        yield delete(stored)


def owner_reference(owner: Stored) -> Body:
    """How an object names the one that controls it."""
    kind = owner.ref.kind
    return {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "name": owner.ref.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def object_reference(stored: Stored) -> Body:
    """How one object names another that is not its owner."""
    return {
        "kind": stored.ref.kind.name,
        "namespace": stored.ref.namespace,
        "name": stored.ref.name,
        "uid": stored.uid,
        "apiVersion": stored.ref.kind.api_version,
    }


def controller_of(stored: Stored, kind: Kind) -> Ref | None:
    """The object of this kind that controls this one."""
    owner = controller_ref(stored)
    if owner is None or (owner.kind.group, owner.kind.name) != (kind.group, kind.name):
        return None
    return Ref(kind, owner.namespace, owner.name)


def controller_ref(stored: Stored) -> Ref | None:
    """The object that controls this one."""
    for reference in owner_references(stored.metadata):
        if reference.get("controller") is True:
            return referred(reference, stored.ref.namespace)
    return None


def referred(reference: Body, namespace: str) -> Ref:
    """The object that is named as an owner."""
    kind = Kind.of(text(reference, "apiVersion"), text(reference, "kind"))
    return Ref(kind, namespace, text(reference, "name"))


def is_controlled_by(stored: Stored, owner: Stored) -> bool:
    return any(
        reference.get("controller") is True and reference.get("uid") == owner.uid
        for reference in owner_references(stored.metadata)
    )


def controlled(view: Visible, owner: Stored, kind: Kind) -> list[Stored]:
    """The objects of a kind that an object controls, in the order in which they were made."""
    return [
        own
        for own in view.owned_by(owner.uid)
        if own.ref.kind == kind and is_controlled_by(own, owner)
    ]


def with_controlled(kind: Kind, controlled_kind: Kind) -> Concerns:
    """After a change, look at an object of a kind, or at the one that controls what changed."""

    def concerns(_view: Visible, event: Transition) -> Iterator[Ref]:
        ref: Ref | None = event.stored.ref
        if event.stored.ref.kind == controlled_kind:
            ref = controller_of(event.stored, kind)
        if ref is not None and ref.kind == kind:
            yield ref

    return concerns


def digest_of(value: Json) -> str:
    """A short name for a value, in letters that make no words; the same for the same value."""
    encoded = msgspec.json.encode(value, order="deterministic")
    return spell(hashlib.blake2b(encoded, digest_size=DIGEST_LENGTH).digest())


def event_ref(about: Stored, *, reason: str, message: str = "") -> Ref:
    """The Event of a life, a reason and a message: one, however often it happens."""
    said = f"{about.uid}/{reason}/{message}".encode()
    digest = hashlib.blake2b(said, digest_size=8).hexdigest()
    return Ref(EVENT, about.ref.namespace or "default", f"{about.ref.name}.{digest}")


class Voice(NamedTuple):
    """A controller says what it did or could not do, where a person would look for it."""

    source: str

    def tell(self, about: Stored, reason: str, message: str, now: Ms, *, at: str = "") -> Write:
        """Something went as it should; `at` is the field that it is about."""
        ref = event_ref(about, reason=reason, message=f"{at}{message}")
        words: Body = {"type": "Normal", "reason": reason, "message": message}
        return _event(ref, about, words, self.source, now, at=at)

    def warn(self, about: Stored, reason: str, message: str, now: Ms) -> Write:
        """Something did not. Said once for each reason: the first message stays."""
        words: Body = {"type": "Warning", "reason": reason, "message": message}
        return _event(event_ref(about, reason=reason), about, words, self.source, now)


def first_warning(view: Visible, about: Stored, *, reason: str) -> Ms | None:
    """Since when this has been going wrong, as far as Events remember."""
    found = view.get(event_ref(about, reason=reason))
    return moment_of(found.body.get("firstTimestamp")) if found else None


def _event(ref: Ref, about: Stored, words: Body, source: str, now: Ms, *, at: str = "") -> Write:
    moment = timestamp(now)
    involved: Body = {
        "apiVersion": about.ref.kind.api_version,
        "kind": about.ref.kind.name,
        "name": about.ref.name,
        "uid": about.uid,
    }
    if namespace := text(about.metadata, "namespace"):
        involved["namespace"] = namespace
    if at:
        involved["fieldPath"] = at
    return create(
        EVENT,
        ref.namespace,
        {
            "metadata": {"name": ref.name, "namespace": ref.namespace},
            "involvedObject": involved,
            **words,
            "source": {"component": source},
            "reportingComponent": source,
            "firstTimestamp": moment,
            "lastTimestamp": moment,
            "count": 1,
        },
    )
