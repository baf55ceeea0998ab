"""A case: deeds, one after the other, and the objects that are watched meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tidegate.model.k8s.objects import JsonObject, Kind
from tidegate.model.times import SECOND, Ms

Claim = Callable[[JsonObject], bool]


@dataclass(frozen=True, slots=True)
class Watched:
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

    object: Watched
    patch: JsonObject


@dataclass(frozen=True, slots=True)
class Remove:
    object: Watched


@dataclass(frozen=True, slots=True)
class Until:
    """Go on when a claim holds of an object, in its state after the last deed."""

    object: Watched
    claim: Claim
    within: Ms = Ms(60 * SECOND)


@dataclass(frozen=True, slots=True)
class Gone:
    """Go on when an object is there no more."""

    object: Watched


@dataclass(frozen=True, slots=True)
class Pause:
    """Let time pass: what does not happen shows only then."""

    span: Ms


Deed = Apply | Change | Remove | Until | Gone | Pause


@dataclass(frozen=True, slots=True)
class Case:
    """`name` says what it shows, and is the name of its file."""

    name: str
    watched: tuple[Watched, ...]
    deeds: tuple[Deed, ...]
