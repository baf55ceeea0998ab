"""Kubernetes Events: what a controller did or could not do, where a person would look for it."""

from __future__ import annotations

import hashlib

from tidegate.model.moment import Ms
from tidegate.model.objects import Kind, Ref
from tidegate.model.reading import text
from tidegate.sandbox.controllers.conditions import moment_of
from tidegate.sandbox.controllers.reaction import Sight
from tidegate.sandbox.controllers.writes import create
from tidegate.sandbox.server.lifecycle import timestamp
from tidegate.sandbox.server.store import Body, Stored
from tidegate.world.calls import Write

EVENT = Kind("", "v1", "Event")
NORMAL, WARNING = "Normal", "Warning"


def event_ref(about: Stored, *, reason: str, message: str = "") -> Ref:
    """The Event of a life, a reason and a message: one, however often it happens."""
    said = f"{about.uid}/{reason}/{message}".encode()
    digest = hashlib.blake2b(said, digest_size=8).hexdigest()
    return Ref(EVENT, about.ref.namespace or "default", f"{about.ref.name}.{digest}")


def tell(about: Stored, *, reason: str, message: str, now: Ms, source: str) -> Write:
    """Something went as it should."""
    ref = event_ref(about, reason=reason, message=message)
    return _event(ref, about, {"type": NORMAL, "reason": reason, "message": message}, source, now)


def warn(about: Stored, *, reason: str, message: str, now: Ms, source: str) -> Write:
    """Something did not. Said once for each reason: the first message stays."""
    ref = event_ref(about, reason=reason)
    return _event(ref, about, {"type": WARNING, "reason": reason, "message": message}, source, now)


def first_warning(view: Sight, about: Stored, *, reason: str) -> Ms | None:
    """Since when this has been going wrong, as far as Events remember."""
    found = view.get(event_ref(about, reason=reason))
    return moment_of(found.body.get("firstTimestamp")) if found else None


def _event(ref: Ref, about: Stored, words: Body, source: str, now: Ms) -> Write:
    moment = timestamp(now)
    involved: Body = {
        "apiVersion": about.ref.kind.api_version,
        "kind": about.ref.kind.name,
        "name": about.ref.name,
        "uid": about.uid,
    }
    if namespace := text(about.metadata, "namespace"):
        involved["namespace"] = namespace
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
