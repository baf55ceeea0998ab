"""The shape of a controller: look at an object as it is now, and say what to write."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from tidegate.model.moment import Ms
from tidegate.model.objects import Kind, Ref
from tidegate.sandbox.server.store import Body, Stored
from tidegate.world.calls import Write


class At(NamedTuple):
    """Look again at this moment."""

    moment: Ms


class View(Protocol):
    """What a controller may see of its cluster."""

    def get(self, ref: Ref) -> Stored | None: ...
    def all_of(self, kind: Kind, namespace: str = "") -> list[Stored]: ...
    def inside(self, namespace: str) -> list[Stored]: ...
    def owned_by(self, uid: str) -> list[Stored]: ...
    def kinds_of(self, definition: Body) -> list[Kind]: ...


Reaction = Callable[[View, Ref, Ms], Iterable[Write | At]]
"""Level-triggered: told that something happened to an object, it looks and decides anew."""
