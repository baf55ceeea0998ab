"""Conditions, set as Kubernetes' own controllers set them."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache

from tidegate.model.moment import Ms
from tidegate.model.objects import Json
from tidegate.model.reading import text
from tidegate.sandbox.server.lifecycle import timestamp
from tidegate.sandbox.server.store import Body

Conditions = list[dict[str, Json]]


def new_condition(name: str, status: str, reason: str, message: str, *, now: Ms) -> Body:
    """A condition that has changed just now."""
    moment = timestamp(now)
    return {
        "type": name,
        "status": status,
        "lastUpdateTime": moment,
        "lastTransitionTime": moment,
        "reason": reason,
        "message": message,
    }


def find_condition(conditions: Conditions, name: str) -> Body | None:
    return next((one for one in conditions if one.get("type") == name), None)


def with_condition(conditions: Conditions, new: Body) -> Conditions:
    """These and the new one, last; unchanged where status and reason are the same already."""
    name = text(new, "type")
    known = find_condition(conditions, name)
    if known is not None and known.get("status") == new.get("status"):
        if known.get("reason") == new.get("reason"):
            return conditions
        new = {**new, "lastTransitionTime": known.get("lastTransitionTime")}
    return [*without_condition(conditions, name), new]


def without_condition(conditions: Conditions, name: str) -> Conditions:
    return [one for one in conditions if one.get("type") != name]


def moment_of(stamp: Json) -> Ms | None:
    """The moment that a time in a body names."""
    return _moment(stamp) if isinstance(stamp, str) else None


@lru_cache(maxsize=256)
def _moment(stamp: str) -> Ms:
    return Ms(int(datetime.fromisoformat(stamp).timestamp() * 1_000))
