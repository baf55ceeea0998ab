"""Fields as kstatus reads them, and its three results: Current, InProgress, Failed.

A generation, a deletion time and the conditions must have their Kubernetes type, or the object
cannot be judged. Any other field of the wrong type counts as missing.

Like `pkg/kstatus/status/util.go` of fluxcd/cli-utils 1.2.3.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from tidegate.model.k8s.json_fields import get_int
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.k8s.verdict import Health, Verdict

_T = TypeVar("_T")
_INT64_LIMIT = 2**63
"""Go reads larger whole numbers as floats."""


class UnreadableError(ValueError):
    """A field of a type that kstatus rejects. The message names the field, not its value."""


class Condition(msgspec.Struct, frozen=True, gc=False):
    """One entry of `status.conditions`. Missing fields are empty."""

    type: str = ""
    """The type."""
    status: str = ""
    """`True`, `False` or `Unknown`."""
    reason: str = ""
    """Reason for programs."""
    message: str = ""
    """Message for people."""
    observed_generation: int = 0
    """The generation that the condition is for; 0 if missing."""

    @property
    def is_true(self) -> bool:
        """Whether the status is True."""
        return self.status == "True"


NO_CONDITION = Condition()


def get_typed_text(body: JsonObject, *path: str) -> str:
    """Return a string, or "" if the field is missing. Raises UnreadableError for another type.

    Like `GetStringField` in `pkg/kstatus/status/util.go` of fluxcd/cli-utils 1.2.3.
    """
    return _get_typed(body, path, str, "a string") or ""


def get_typed_int(body: JsonObject, *path: str) -> int | None:
    """Return a whole number, or None if the field is missing.

    Raises UnreadableError for another type.

    Like `GetIntField` in `pkg/kstatus/status/util.go` of fluxcd/cli-utils 1.2.3.
    """
    number = _get_typed(body, path, int, "a whole number")
    if isinstance(number, bool) or (number and not -_INT64_LIMIT <= number < _INT64_LIMIT):
        raise UnreadableError(f"{'.'.join(path)} is not a whole number")
    return number


def get_typed_list(body: JsonObject, *path: str) -> list[Json]:
    """Return a list, or an empty one if the field is missing.

    Raises UnreadableError for another type.
    """
    return _get_typed(body, path, list, "a list") or []


def read_conditions(body: JsonObject) -> tuple[Condition, ...]:
    """Return all conditions in order. A null entry is an empty condition.

    Like `GetObjectWithConditions` in `pkg/kstatus/status/util.go` of fluxcd/cli-utils 1.2.3.
    """
    status = body.get("status")
    if not isinstance(status, dict | None):
        raise UnreadableError("status is not a mapping")
    entries = status.get("conditions") if status else None
    if not isinstance(entries, list | None):
        raise UnreadableError("status.conditions is not a list")
    return tuple(_condition(entry) for entry in entries or ())


def find_condition(body: JsonObject, type_: str, status: str) -> Condition | None:
    """Return the first condition with a type and a status, or None.

    Like `getConditionWithStatus` in `pkg/kstatus/status/util.go` of fluxcd/cli-utils 1.2.3.
    """
    matches = (
        condition
        for condition in read_conditions(body)
        if (condition.type, condition.status) == (type_, status)
    )
    return next(matches, None)


def _condition(entry: Json) -> Condition:
    if entry is None:
        return NO_CONDITION
    if not isinstance(entry, dict):
        raise UnreadableError("a condition is not a mapping")
    type_, status, reason, message = (
        _condition_text(entry, field) for field in ("type", "status", "reason", "message")
    )
    return Condition(type_, status, reason, message, get_int(entry, "observedGeneration"))


def _condition_text(entry: JsonObject, field: str) -> str:
    value = entry.get(field)
    if value is not None and not isinstance(value, str):
        raise UnreadableError(f"the {field} of a condition is not a string")
    return value or ""


def _get_typed(body: JsonObject, path: tuple[str, ...], expected: type[_T], noun: str) -> _T | None:
    """Return the value at a path, or None if the field is missing. A null value is not missing.

    Raises UnreadableError for a value of another type and for a parent that is not a mapping.
    """
    value: Json = body
    for name in path:
        if not isinstance(value, dict | None):
            raise UnreadableError(f"{'.'.join(path)} cannot be reached")
        if value is None or name not in value:
            return None
        value = value[name]
    if not isinstance(value, expected):
        raise UnreadableError(f"{'.'.join(path)} is not {noun}")
    return value


def current(reason: str, message: str, *, condition: Condition = NO_CONDITION) -> Verdict:
    """Return the result Current."""
    return Verdict(
        Health.HEALTHY, reason, message, observed_generation=condition.observed_generation
    )


def in_progress(reason: str, message: str, *, condition: Condition = NO_CONDITION) -> Verdict:
    """Return the result InProgress."""
    return Verdict(
        Health.PROGRESSING, reason, message, observed_generation=condition.observed_generation
    )


def failed(reason: str, message: str, *, condition: Condition = NO_CONDITION) -> Verdict:
    """Return the result Failed."""
    return Verdict(
        Health.DEGRADED, reason, message, observed_generation=condition.observed_generation
    )
