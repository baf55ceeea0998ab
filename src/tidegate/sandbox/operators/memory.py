"""What is remembered of a cluster so that a look need not search all of it.

Nothing here decides: all of it follows from the objects, and is kept up with their changes. After a
change an operator has to look at its own custom resources, at those whose operator came or went, at
those that need what has changed, and at the maker of what was deleted.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.knowledge.catalogue import KnownRows
from tidegate.knowledge.references import needs_of
from tidegate.model.objects import Kind, Ref
from tidegate.sandbox.controllers.reaction import Visible
from tidegate.sandbox.controllers.writes import referred
from tidegate.sandbox.kinds import SERVICE, SERVICE_NAME, SLICE, WORKLOADS
from tidegate.sandbox.operators import presence
from tidegate.sandbox.server.store import Stored, Transition, owner_references
from tidegate.world.facts import Change

NeededObject = tuple[str, str, str]
"""Group, kind and name of what is needed, in whatever namespace."""
Wanted = tuple[NeededObject, str]
"""A target, and the namespace that it is wanted in."""


class Memory:
    """Of one cluster: who needs what, who serves a kind, and which kinds nobody serves."""

    def __init__(self, catalogue: KnownRows) -> None:
        self._catalogue = catalogue
        self._wanted: dict[Ref, tuple[Wanted, ...]] = {}
        self._needy: dict[NeededObject, dict[tuple[Ref, str], None]] = {}
        self._servers: dict[Kind, Ref] = {}
        self._alone: dict[Kind, None] = {}

    def _note_needs(self, event: Transition) -> None:
        """Keep up with what an object needs."""
        ref = event.stored.ref
        row = presence.row_for(self._catalogue, ref.kind)
        if row is None or not row.needs:
            return
        old = self._wanted.get(ref, ())
        new: tuple[Wanted, ...] = ()
        if event.change is not Change.DELETED:
            needed = needs_of(row, event.stored.body, ref.kind)
            new = tuple(((one.group, one.kind, one.name), one.namespace) for one in needed)
        if new == old:
            return
        for target, namespace in old:
            self._needy.get(target, {}).pop((ref, namespace), None)
        for target, namespace in new:
            self._needy.setdefault(target, {})[ref, namespace] = None
        self._wanted[ref] = new

    def _note_workload(self, workload: Stored) -> None:
        """A workload came, went or is another one now."""
        freed = [kind for kind in self._alone if self._catalogue.is_server(workload.body, kind)]
        for kind in freed:
            del self._alone[kind]

    def _needy_of(self, changed: Ref) -> Iterator[Ref]:
        """Those that need this object. What is in no namespace is wanted from all."""
        target = (changed.kind.group, changed.kind.name, changed.name)
        for ref, namespace in self._needy.get(target, {}):
            if changed.namespace in ("", namespace):
                yield ref

    def server_of(self, view: Visible, kind: Kind) -> Stored | None:
        """The operator of a kind, if it is there and available."""
        if kind in self._alone:
            return None
        known = self._servers.get(kind)
        server = view.get(known) if known else None
        if (
            server is None
            or not presence.is_available(server)
            or not self._catalogue.is_server(server.body, kind)
        ):
            server = presence.server_of(self._catalogue, view, kind)
        if server is None:
            self._alone[kind] = None
        else:
            self._servers[kind] = server.ref
        return server

    def concerned(self, view: Visible, event: Transition) -> Iterator[Ref]:
        """Those that have to be looked at after a change."""
        stored = event.stored
        kind = stored.ref.kind
        if presence.row_for(self._catalogue, kind) is not None:
            self._note_needs(event)
            yield stored.ref
        if kind in WORKLOADS and _came_or_went(event):
            self._note_workload(stored)
            yield from self._served(view, stored)
        if event.change is Change.DELETED:
            yield from self._makers(stored)
        changed = _service_behind(stored) if kind == SLICE else stored.ref
        if changed is not None:
            yield from self._needy_of(changed)

    def _served(self, view: Visible, workload: Stored) -> Iterator[Ref]:
        for kind in presence.custom_kinds(view):
            if self._catalogue.is_server(workload.body, kind):
                yield from (stored.ref for stored in view.all_of(kind))

    def _makers(self, stored: Stored) -> Iterator[Ref]:
        for reference in owner_references(stored.metadata):
            kind = referred(reference, "").kind
            if (
                kind.group not in presence.builtin_groups()
                and presence.row_for(self._catalogue, kind) is not None
            ):
                for namespace in dict.fromkeys((stored.ref.namespace, "")):
                    yield referred(reference, namespace)


def _came_or_went(event: Transition) -> bool:
    """Whether there is another operator than before, or one less."""
    stored, before = event.stored, event.before
    was = before is not None and presence.is_available(before)
    is_now = event.change is not Change.DELETED and presence.is_available(stored)
    if was != is_now or before is None:
        return was or is_now
    return is_now and (before.generation, before.labels) != (stored.generation, stored.labels)


def _service_behind(stored: Stored) -> Ref | None:
    name = stored.labels.get(SERVICE_NAME)
    return Ref(SERVICE, stored.ref.namespace, str(name)) if name else None
