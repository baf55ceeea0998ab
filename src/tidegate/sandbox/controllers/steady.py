"""Conditions that keep their time as long as they keep their status."""

from __future__ import annotations

from tidegate.model.moment import Ms
from tidegate.model.objects import Json
from tidegate.model.reading import mappings
from tidegate.sandbox.controllers.conditions import Conditions, find_condition
from tidegate.sandbox.server.lifecycle import timestamp
from tidegate.sandbox.server.store import Body, Stored


def steady(
    conditions: Conditions, name: str, status: str, words: tuple[str, str], *, now: Ms
) -> Body:
    """A condition with this reason and message; its time stays while its status does."""
    known = find_condition(conditions, name)
    is_same = known is not None and known.get("status") == status
    since: Json = known.get("lastTransitionTime") if known and is_same else timestamp(now)
    reason, message = words
    return {
        "type": name,
        "status": status,
        "lastTransitionTime": since,
        "reason": reason,
        "message": message,
    }


def conditions_of(stored: Stored) -> Conditions:
    return mappings(stored.body, "status", "conditions")
