"""The interface of a controller: read an object, yield the writes that it needs.

A controller is level-triggered. After a change to one of its objects it reads the current state
and yields writes, one after the other; each yield returns the outcome of the write. A
controller keeps no state between two reconciliations, so the same controller runs on the
sandbox and on a real API server.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from functools import cache
from typing import NamedTuple, Protocol, TypeAlias

from tidegate.model.k8s.objects import Kind, Ref
from tidegate.model.times import Ms
from tidegate.sandbox.server.store import StoredObject, StoreEvent
from tidegate.world.messages import Outcome
from tidegate.world.requests import Write


class RequeueAt(NamedTuple):
    """A request to reconcile again at a time.

    Like `RequeueAfter` in `pkg/reconcile/reconcile.go` of controller-runtime 0.24.1.
    """

    time: Ms
    """The time."""


class AppendLog(NamedTuple):
    """Log lines of a container, to be appended to one of its runs."""

    uid: str
    """The uid of the pod."""
    container: str
    """The name of the container."""
    run: int
    """The number of restarts before this run."""
    lines: tuple[str, ...]
    """The lines to append."""


class ObjectReader(Protocol):
    """Read access of a controller to its cluster."""

    def get(self, ref: Ref) -> StoredObject | None: ...

    def list_objects(self, kind: Kind, namespace: str = "") -> list[StoredObject]:
        """Return the objects of a kind, sorted by namespace and name."""
        ...

    def list_in_namespace(self, namespace: str) -> list[StoredObject]:
        """Return all objects of a namespace."""
        ...

    def list_owned(self, uid: str) -> list[StoredObject]:
        """Return all objects with an owner reference to this uid."""
        ...


Reconciliation: TypeAlias = Generator[Write | RequeueAt | AppendLog, Outcome | None, None]
"""The writes of one reconciliation; each yield returns the outcome of the write."""
ReconcileFunc: TypeAlias = Callable[[ObjectReader, Ref, Ms], Reconciliation]
"""A function that reconciles one object."""
MapFunc: TypeAlias = Callable[[ObjectReader, StoreEvent], Iterable[Ref]]
"""A function that maps a change to objects to reconcile.

Like `MapFunc` in `pkg/handler/enqueue_mapped.go` of controller-runtime 0.24.1.
"""


class Controller(NamedTuple):
    """A controller: its reconcile function, and the changes that trigger it."""

    name: str
    """The name, unique in a cluster."""
    reconcile: ReconcileFunc
    """The reconcile function."""
    map_event: MapFunc
    """The function that maps a change to objects to reconcile."""
    delay: Ms = Ms(10)
    """Time between a change and the reconciliation; changes in between are batched."""
    kinds: tuple[Kind, ...] = ()
    """Kinds whose changes trigger the controller, in any group and version; empty for all."""


def index_by_kind(controllers: Iterable[Controller]) -> Callable[[str], tuple[Controller, ...]]:
    """Return a function that finds the controllers for a change, by the name of the kind."""
    all_controllers = tuple(controllers)

    @cache
    def controllers_for_kind(kind: str) -> tuple[Controller, ...]:
        return tuple(
            controller
            for controller in all_controllers
            if not controller.kinds or any(kind == watched.name for watched in controller.kinds)
        )

    return controllers_for_kind
