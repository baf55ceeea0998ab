"""The shape of a controller: look at an object as it is now, and say what to write.

A controller is level-triggered. It is told that something happened to one of its objects, looks at
what is there, and yields the door's own writes, one after the other; each yield hands back what
became of the write. It keeps nothing between two looks. So the same controller can be set loose on
a sandbox and on a real API server.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from functools import cache
from typing import NamedTuple, Protocol, TypeAlias

from tidegate.model.moment import Ms
from tidegate.model.objects import Kind, Ref
from tidegate.sandbox.server.store import Stored, Transition
from tidegate.world.calls import Write
from tidegate.world.facts import Outcome


class At(NamedTuple):
    """Look again at this moment, even if nothing happens before."""

    moment: Ms


class Print(NamedTuple):
    """A container of the pod with this uid prints these lines, in this of its runs."""

    uid: str
    container: str
    run: int
    lines: tuple[str, ...]


class Visible(Protocol):
    """What a controller may see of its cluster."""

    def get(self, ref: Ref) -> Stored | None: ...

    def all_of(self, kind: Kind, namespace: str = "") -> list[Stored]:
        """The objects of a kind, in the order of namespace and name."""
        ...

    def inside(self, namespace: str) -> list[Stored]:
        """Everything in a namespace."""
        ...

    def owned_by(self, uid: str) -> list[Stored]:
        """Everything that names this uid as an owner."""
        ...


Looking: TypeAlias = Generator[Write | At | Print, Outcome | None, None]
React: TypeAlias = Callable[[Visible, Ref, Ms], Looking]
Concerns: TypeAlias = Callable[[Visible, Transition], Iterable[Ref]]


class Controller(NamedTuple):
    """One controller: how it reacts, and after which changes it has to look at what."""

    name: str
    react: React
    concerns: Concerns
    delay: Ms = Ms(10)
    """How long after a change it looks; several changes in between are one look."""
    kinds: tuple[Kind, ...] = ()
    """Whose changes can concern it, in whatever group and version; none: those of every kind."""


def roster(controllers: Iterable[Controller]) -> Callable[[str], tuple[Controller, ...]]:
    """Of controllers that work together, those to be asked about a change, by the kind's name."""
    together = tuple(controllers)

    @cache
    def asked_about(kind: str) -> tuple[Controller, ...]:
        return tuple(
            one for one in together if not one.kinds or any(kind == its.name for its in one.kinds)
        )

    return asked_about
