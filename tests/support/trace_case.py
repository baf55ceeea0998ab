"""A case: actions one after the other, and the objects that are watched meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tidegate.model.k8s.objects import JsonObject, Kind
from tidegate.model.times import SECOND, Ms

Claim = Callable[[JsonObject], bool]


@dataclass(frozen=True, slots=True)
class WatchedObject:
    """An object of the case's own namespace."""

    kind: Kind
    name: str

    def __str__(self) -> str:
        return f"{self.kind.name} {self.name}"


@dataclass(frozen=True, slots=True)
class Apply:
    """Say what an object should be."""

    body: JsonObject


@dataclass(frozen=True, slots=True)
class Change:
    """A merge patch, as of `kubectl scale`, `set image` or `rollout pause`."""

    object: WatchedObject
    patch: JsonObject


@dataclass(frozen=True, slots=True)
class Remove:
    object: WatchedObject


@dataclass(frozen=True, slots=True)
class Until:
    """Go on when a claim holds of an object, in its state after the last action."""

    object: WatchedObject
    claim: Claim
    within: Ms = Ms(60 * SECOND)


@dataclass(frozen=True, slots=True)
class UntilGone:
    """Go on when an object is there no more."""

    object: WatchedObject


@dataclass(frozen=True, slots=True)
class Pause:
    """Let time pass: what does not happen shows only then."""

    span: Ms


Action = Apply | Change | Remove | Until | UntilGone | Pause


@dataclass(frozen=True, slots=True)
class Case:
    """`name` says what it shows, and is the name of its file."""

    name: str
    watched: tuple[WatchedObject, ...]
    actions: tuple[Action, ...]
