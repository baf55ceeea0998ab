"""A stamp: what is written into the status of a kind, and how long that takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from tidegate.model.moment import Ms
from tidegate.model.objects import Kind, Ref
from tidegate.model.reading import mapping
from tidegate.sandbox.controllers.reaction import Controller, Looking, Sight
from tidegate.sandbox.controllers.writes import set_status
from tidegate.sandbox.server.store import Body, Stored, Transition
from tidegate.world.facts import Change

Status = Callable[[Sight, Stored, Ms], Body | None]
Touches = Callable[[Sight, Transition], Iterable[Ref]]


class Stamp(NamedTuple):
    """One row. `status` is None for an object that is not stamped, or not yet."""

    kind: Kind
    delay: Ms
    status: Status
    touches: Touches = lambda _view, _event: ()
    """Which objects of the kind are to be looked at when something else changes."""
    touched_by: tuple[Kind, ...] = ()
    """What else that is."""


def stamping(stamp: Stamp) -> Controller:
    """The controller that puts a stamp on every object of its kind."""

    def put(view: Sight, ref: Ref, now: Ms) -> Looking:
        stored = view.get(ref)
        if stored is None or stored.is_deleting:
            return
        status = stamp.status(view, stored, now)
        if status is not None and status != mapping(stored.body, "status"):
            yield set_status(stored, status)

    def concerns(view: Sight, event: Transition) -> Iterator[Ref]:
        ref = event.stored.ref
        if (ref.kind.group, ref.kind.name) == (stamp.kind.group, stamp.kind.name):
            if event.change is not Change.DELETED:
                yield ref
        else:
            yield from stamp.touches(view, event)

    kinds = (stamp.kind, *stamp.touched_by)
    return Controller(f"stamp-{stamp.kind.name}", put, concerns, delay=stamp.delay, kinds=kinds)
