"""CRDs: their names are accepted, their kinds established; when they go, so do their instances."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.model.moment import Ms
from tidegate.model.objects import Kind, Ref
from tidegate.model.reading import mapping, mappings, part, text
from tidegate.sandbox.controllers.reaction import Controller, Looking, Sight
from tidegate.sandbox.controllers.writes import delete, patch, without_finalizer
from tidegate.sandbox.server.lifecycle import CLEANUP, timestamp
from tidegate.sandbox.server.register import DEFINITIONS, is_established
from tidegate.sandbox.server.store import Body, Stored, Transition
from tidegate.world.calls import Write
from tidegate.world.facts import Change

MANAGER = "kube-apiserver"


def keep_definition(view: Sight, ref: Ref, now: Ms) -> Looking:
    """A CRD becomes Established; one that goes takes its instances along."""
    definition = view.get(ref)
    if definition is None:
        return
    if definition.is_deleting:
        yield from _clean_up(view, definition)
    elif not is_established(definition.body):
        status: Body = {"status": _status(definition.body, now)}
        yield patch(definition, status, subresource="status", manager=MANAGER)


def _clean_up(view: Sight, definition: Stored) -> Iterator[Write]:
    instances = _instances(view, definition)
    for stored in instances:
        if not stored.is_deleting:
            yield delete(stored)
    if not instances and CLEANUP in definition.finalizers:
        yield without_finalizer(definition, CLEANUP, manager=MANAGER)


def _instances(view: Sight, definition: Stored) -> list[Stored]:
    spec = mapping(definition.body, "spec")
    for version in mappings(spec, "versions"):
        if version.get("served"):
            kind = Kind(text(spec, "group"), text(version, "name"), text(spec, "names", "kind"))
            return view.all_of(kind)
    return []


def _status(body: Body, now: Ms) -> Body:
    versions = mappings(body, "spec", "versions")
    stored = [one.get("name") for one in versions if one.get("storage")]
    return {
        "acceptedNames": part(body, "spec", "names"),
        "storedVersions": stored,
        "conditions": [
            _condition("NamesAccepted", "NoConflicts", "no conflicts found", now),
            _condition(
                "Established", "InitialNamesAccepted", "the initial names have been accepted", now
            ),
        ],
    }


def _condition(name: str, reason: str, message: str, now: Ms) -> Body:
    return {
        "type": name,
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": timestamp(now),
    }


def _concerns(view: Sight, event: Transition) -> Iterator[Ref]:
    ref = event.stored.ref
    if ref.kind == DEFINITIONS:
        yield ref
    elif event.change is Change.DELETED and "." in ref.kind.group:
        yield from (
            definition.ref
            for definition in view.all_of(DEFINITIONS)
            if definition.is_deleting and definition.ref.name.endswith(f".{ref.kind.group}")
        )


CUSTOM_KINDS = Controller("custom-kinds", keep_definition, _concerns, delay=Ms(100))
