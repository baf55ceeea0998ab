"""What is remembered of a cluster so that a look need not search all of it.

Nothing here decides: all of it follows from the objects, and is kept up with their changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from weakref import WeakKeyDictionary

from tidegate.knowledge.catalogue import KnownRows
from tidegate.knowledge.references import needs_of
from tidegate.model.objects import Kind, Ref
from tidegate.sandbox.controllers.reaction import Sight
from tidegate.sandbox.operators.presence import row_for, server_of
from tidegate.sandbox.operators.workloads import is_available
from tidegate.sandbox.server.store import Stored, Transition
from tidegate.world.facts import Change


class NeededObject(NamedTuple):
    """What is needed, in whatever namespace."""

    group: str
    kind: str
    name: str


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

    def note_needs(self, event: Transition) -> None:
        """Keep up with what an object needs."""
        ref = event.stored.ref
        row = row_for(self._catalogue, ref.kind)
        if row is None or not row.needs:
            return
        old = self._wanted.get(ref, ())
        new: tuple[Wanted, ...] = ()
        if event.change is not Change.DELETED:
            needed = needs_of(row, event.stored.body, ref.kind)
            new = tuple(
                (NeededObject(one.group, one.kind, one.name), one.namespace) for one in needed
            )
        if new == old:
            return
        for target, namespace in old:
            self._needy.get(target, {}).pop((ref, namespace), None)
        for target, namespace in new:
            self._needy.setdefault(target, {})[ref, namespace] = None
        self._wanted[ref] = new

    def note_workload(self, workload: Stored) -> None:
        """A workload came, went or is another one now."""
        freed = [kind for kind in self._alone if self._catalogue.is_server(workload.body, kind)]
        for kind in freed:
            del self._alone[kind]

    def needy(self, changed: Ref) -> Iterator[Ref]:
        """Those that need this object. What is in no namespace is wanted from all."""
        target = NeededObject(changed.kind.group, changed.kind.name, changed.name)
        for ref, namespace in self._needy.get(target, {}):
            if changed.namespace in ("", namespace):
                yield ref

    def server_of(self, view: Sight, kind: Kind) -> Stored | None:
        """The operator of a kind, if it is there and available."""
        if kind in self._alone:
            return None
        known = self._servers.get(kind)
        server = view.get(known) if known else None
        if server is None or not is_available(server) or not self._serves(server, kind):
            server = server_of(self._catalogue, view, kind)
        if server is None:
            self._alone[kind] = None
        else:
            self._servers[kind] = server.ref
        return server

    def _serves(self, workload: Stored, kind: Kind) -> bool:
        return self._catalogue.is_server(workload.body, kind)


class Memories:
    """One memory for each cluster that a controller lives in."""

    def __init__(self, catalogue: KnownRows) -> None:
        self._catalogue = catalogue
        self._known: WeakKeyDictionary[Sight, Memory] = WeakKeyDictionary()

    def of(self, view: Sight) -> Memory:
        found = self._known.get(view)
        if found is None:
            found = self._known[view] = Memory(self._catalogue)
        return found
