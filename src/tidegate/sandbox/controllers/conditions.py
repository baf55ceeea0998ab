"""Conditions and counts, as Kubernetes' own controllers read and write them."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache

from tidegate.model.moment import Ms
from tidegate.model.objects import Json
from tidegate.model.reading import mappings, text
from tidegate.sandbox.server.lifecycle import timestamp
from tidegate.sandbox.server.store import Body, Stored

Conditions = list[dict[str, Json]]
HUNDRED = 100


def new_condition(
    name: str, status: str, reason: str, message: str, *, now: Ms, dated: str = "lastUpdateTime"
) -> Body:
    """A condition that has changed just now; `dated` is its second time, if it has one."""
    moment = timestamp(now)
    return {
        "type": name,
        "status": status,
        **({dated: moment} if dated else {}),
        "lastTransitionTime": moment,
        "reason": reason,
        "message": message,
    }


def steady(
    conditions: Conditions, name: str, status: str, words: tuple[str, str], *, now: Ms
) -> Body:
    """A condition with this reason and message; its time stays while its status does."""
    known = find_condition(conditions, name)
    fresh = new_condition(name, status, *words, now=now, dated="")
    if known is not None and known.get("status") == status:
        return {**fresh, "lastTransitionTime": known.get("lastTransitionTime")}
    return fresh


def conditions_of(stored: Stored) -> Conditions:
    return mappings(stored.body, "status", "conditions")


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


def share(value: Json, *, of: int, rounds_up: bool) -> int:
    """A count, or so many percent of a whole."""
    if isinstance(value, str) and value.endswith("%"):
        percent = int(value[:-1])
        return -(-of * percent // HUNDRED) if rounds_up else of * percent // HUNDRED
    return value if isinstance(value, int) else 0


def without_zeros(counts: dict[str, Json]) -> dict[str, Json]:
    """Counts as Kubernetes writes those that it leaves out when they are zero."""
    return {name: count for name, count in counts.items() if count}
