"""Fields as kstatus reads them, and its three answers: Current, InProgress, Failed.

A generation, a deletion time and the conditions must have the type that Kubernetes gives them, or
the object cannot be judged. Every other field that has the wrong type counts as missing.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from tidegate.model.k8s.json_fields import get_int
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.k8s.verdict import Health, Verdict

_T = TypeVar("_T")
_END = 2**63
"""Go has no room for whole numbers from here on, and reads them as fractions."""


class UnreadableError(ValueError):
    """A field has a type that kstatus does not take. The message names the field, not its value."""


class Condition(msgspec.Struct, frozen=True, gc=False):
    """One entry of `status.conditions`. What is missing is empty; `observed` is 0."""

    name: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed: int = 0

    @property
    def holds(self) -> bool:
        return self.status == "True"


NO_CONDITION = Condition()


def stated_text(body: JsonObject, *path: str) -> str:
    """A string that must be one if it is there; empty where it is not."""
    return _stated(body, path, str, "a string") or ""


def stated_number(body: JsonObject, *path: str) -> int | None:
    """A whole number that must be one if it is there; None where it is not."""
    found = _stated(body, path, int, "a whole number")
    if isinstance(found, bool) or (found and not -_END <= found < _END):
        raise UnreadableError(f"{'.'.join(path)} is not a whole number")
    return found


def stated_list(body: JsonObject, *path: str) -> list[Json]:
    """A list that must be one if it is there; empty where it is not."""
    return _stated(body, path, list, "a list") or []


def conditions_of(body: JsonObject) -> tuple[Condition, ...]:
    """All conditions in their order. One that is null is there, and empty."""
    status = body.get("status")
    if not isinstance(status, dict | None):
        raise UnreadableError("status is not a mapping")
    listed = status.get("conditions") if status else None
    if not isinstance(listed, list | None):
        raise UnreadableError("status.conditions is not a list")
    return tuple(_condition(one) for one in listed or ())


def condition_with(body: JsonObject, name: str, status: str) -> Condition | None:
    """The first condition of a type that has a status."""
    fitting = (one for one in conditions_of(body) if (one.name, one.status) == (name, status))
    return next(fitting, None)


def _condition(entry: Json) -> Condition:
    if entry is None:
        return NO_CONDITION
    if not isinstance(entry, dict):
        raise UnreadableError("a condition is not a mapping")
    name, status, reason, message = (
        _words(entry, field) for field in ("type", "status", "reason", "message")
    )
    return Condition(name, status, reason, message, get_int(entry, "observedGeneration"))


def _words(entry: JsonObject, field: str) -> str:
    found = entry.get(field)
    if found is not None and not isinstance(found, str):
        raise UnreadableError(f"the {field} of a condition is not a string")
    return found or ""


def _stated(body: JsonObject, path: tuple[str, ...], wanted: type[_T], noun: str) -> _T | None:
    """What stands at a path; None where nothing does. A null at its end is something.

    Raises for another type, and for a path that leads through something else than a mapping.
    """
    found: Json = body
    for name in path:
        if not isinstance(found, dict | None):
            raise UnreadableError(f"{'.'.join(path)} cannot be reached")
        if found is None or name not in found:
            return None
        found = found[name]
    if not isinstance(found, wanted):
        raise UnreadableError(f"{'.'.join(path)} is not {noun}")
    return found


def current(reason: str, sentence: str, *, by: Condition = NO_CONDITION) -> Verdict:
    return Verdict(Health.HEALTHY, reason, sentence, observed_generation=by.observed)


def in_progress(reason: str, sentence: str, *, by: Condition = NO_CONDITION) -> Verdict:
    return Verdict(Health.PROGRESSING, reason, sentence, observed_generation=by.observed)


def failed(reason: str, sentence: str, *, by: Condition = NO_CONDITION) -> Verdict:
    return Verdict(Health.DEGRADED, reason, sentence, observed_generation=by.observed)
