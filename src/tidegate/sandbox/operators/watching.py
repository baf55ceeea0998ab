"""Which custom resources an operator has to look at after a change.

Its own; those whose operator came or went; those that need what has changed; the maker of what was
deleted.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.knowledge.catalogue import KnownRows
from tidegate.model.objects import Kind, Ref
from tidegate.sandbox.controllers.reaction import Sight
from tidegate.sandbox.controllers.writes import referred
from tidegate.sandbox.operators.memory import Memory
from tidegate.sandbox.operators.presence import (
    SERVICE_NAME,
    SLICE,
    builtin_groups,
    custom_kinds,
    row_for,
)
from tidegate.sandbox.operators.workloads import WORKLOADS, is_available
from tidegate.sandbox.server.store import Stored, Transition, owner_references
from tidegate.world.facts import Change

SERVICE = Kind("", "v1", "Service")


def concerned(
    catalogue: KnownRows, memory: Memory, view: Sight, event: Transition
) -> Iterator[Ref]:
    stored = event.stored
    kind = stored.ref.kind
    if row_for(catalogue, kind) is not None:
        memory.note_needs(event)
        yield stored.ref
    if kind in WORKLOADS and _came_or_went(event):
        memory.note_workload(stored)
        yield from _served(catalogue, view, stored)
    if event.change is Change.DELETED:
        yield from _makers(catalogue, stored)
    changed = _service_behind(stored) if kind == SLICE else stored.ref
    if changed is not None:
        yield from memory.needy(changed)


def _came_or_went(event: Transition) -> bool:
    """Whether there is another operator than before, or one less."""
    stored, before = event.stored, event.before
    was = before is not None and is_available(before)
    is_now = event.change is not Change.DELETED and is_available(stored)
    if was != is_now or before is None:
        return was or is_now
    return is_now and (before.generation, before.labels) != (stored.generation, stored.labels)


def _served(catalogue: KnownRows, view: Sight, workload: Stored) -> Iterator[Ref]:
    for kind in custom_kinds(view):
        if catalogue.is_server(workload.body, kind):
            yield from (stored.ref for stored in view.all_of(kind))


def _makers(catalogue: KnownRows, stored: Stored) -> Iterator[Ref]:
    for reference in owner_references(stored.metadata):
        kind = referred(reference, "").kind
        if kind.group not in builtin_groups() and row_for(catalogue, kind) is not None:
            for namespace in dict.fromkeys((stored.ref.namespace, "")):
                yield referred(reference, namespace)


def _service_behind(stored: Stored) -> Ref | None:
    name = stored.labels.get(SERVICE_NAME)
    return Ref(SERVICE, stored.ref.namespace, str(name)) if name else None
