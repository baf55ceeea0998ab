"""Fields as kstatus reads them: strict where it is strict, forgiving where it forgives.

A generation, a deletion time and the conditions must have the type that Kubernetes gives them, or
the object cannot be judged. Every other field that has the wrong type counts as missing.
"""

from __future__ import annotations

import msgspec

from tidegate.model.objects import Json
from tidegate.model.reading import number, part

Body = dict[str, Json]

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


def text_or(body: Body, *path: str, default: str = "") -> str:
    """A string, which may be empty; the default where there is none."""
    found = part(body, *path)
    return found if isinstance(found, str) else default


def stated_text(body: Body, *path: str) -> str:
    """A string that must be one if it is there; empty where it is not."""
    found, there = _sought(body, *path)
    if there and not isinstance(found, str):
        raise UnreadableError(f"{'.'.join(path)} is not a string")
    return found if isinstance(found, str) else ""


def stated_number(body: Body, *path: str) -> int | None:
    """A whole number that must be one if it is there; None where it is not."""
    found, there = _sought(body, *path)
    if not there:
        return None
    if isinstance(found, bool) or not isinstance(found, int) or not -_END <= found < _END:
        raise UnreadableError(f"{'.'.join(path)} is not a whole number")
    return found


def stated_list(body: Body, *path: str) -> list[Json]:
    """A list that must be one if it is there; empty where it is not."""
    found, there = _sought(body, *path)
    if there and not isinstance(found, list):
        raise UnreadableError(f"{'.'.join(path)} is not a list")
    return found if isinstance(found, list) else []


def conditions_of(body: Body) -> tuple[Condition, ...]:
    """All conditions in their order. One that is null is there, and empty."""
    status = body.get("status")
    if status is None:
        return ()
    if not isinstance(status, dict):
        raise UnreadableError("status is not a mapping")
    listed = status.get("conditions")
    if listed is None:
        return ()
    if not isinstance(listed, list):
        raise UnreadableError("status.conditions is not a list")
    return tuple(_condition(one) for one in listed)


def condition_with(body: Body, name: str, status: str) -> Condition | None:
    """The first condition of a type that has a status."""
    for condition in conditions_of(body):
        if condition.name == name and condition.status == status:
            return condition
    return None


def _condition(entry: Json) -> Condition:
    if entry is None:
        return NO_CONDITION
    if not isinstance(entry, dict):
        raise UnreadableError("a condition is not a mapping")
    name, status, reason, message = (
        _words(entry, field) for field in ("type", "status", "reason", "message")
    )
    return Condition(name, status, reason, message, number(entry, "observedGeneration"))


def _words(entry: Body, field: str) -> str:
    found = entry.get(field)
    if found is not None and not isinstance(found, str):
        raise UnreadableError(f"the {field} of a condition is not a string")
    return found or ""


def _sought(body: Body, *path: str) -> tuple[Json, bool]:
    """What stands at a path, and whether anything does. A null at its end does, one above does not.

    Raises for a path that leads through something else than a mapping.
    """
    found: Json = body
    for name in path:
        if found is None:
            return None, False
        if not isinstance(found, dict):
            raise UnreadableError(f"{'.'.join(path)} cannot be reached")
        if name not in found:
            return None, False
        found = found[name]
    return found, True
