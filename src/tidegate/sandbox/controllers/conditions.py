"""Conditions and counts in the form that Kubernetes controllers use."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache

from tidegate.model.k8s.json_fields import get_mappings, get_text
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.times import Ms
from tidegate.sandbox.server.lifecycle import format_rfc3339
from tidegate.sandbox.server.store import StoredObject

Conditions = list[dict[str, Json]]
HUNDRED = 100


def new_condition(
    name: str,
    status: str,
    reason: str,
    message: str,
    *,
    now: Ms,
    extra_time_field: str = "lastUpdateTime",
) -> JsonObject:
    """Return a condition that changed now; `extra_time_field` is its second timestamp, if any."""
    changed_at = format_rfc3339(now)
    return {
        "type": name,
        "status": status,
        **({extra_time_field: changed_at} if extra_time_field else {}),
        "lastTransitionTime": changed_at,
        "reason": reason,
        "message": message,
    }


def next_condition(
    conditions: Conditions, name: str, status: str, reason_and_message: tuple[str, str], *, now: Ms
) -> JsonObject:
    """Return a condition with this reason and message.

    Its `lastTransitionTime` is kept while its status is unchanged.
    """
    existing = find_condition(conditions, name)
    fresh = new_condition(name, status, *reason_and_message, now=now, extra_time_field="")
    if existing is not None and existing.get("status") == status:
        return {**fresh, "lastTransitionTime": existing.get("lastTransitionTime")}
    return fresh


def conditions_of(stored: StoredObject) -> Conditions:
    """Return the conditions in the status of an object."""
    return get_mappings(stored.body, "status", "conditions")


def find_condition(conditions: Conditions, name: str) -> JsonObject | None:
    """Return the condition of a type, or None."""
    return next((condition for condition in conditions if condition.get("type") == name), None)


def with_condition(conditions: Conditions, new: JsonObject) -> Conditions:
    """Return the conditions with the new one last; unchanged if status and reason are the same.

    Like `SetDeploymentCondition` in `pkg/controller/deployment/util/deployment_util.go` and
    `SetCondition` in `pkg/controller/replicaset/replica_set_utils.go` of Kubernetes 1.36.4.
    """
    name = get_text(new, "type")
    existing = find_condition(conditions, name)
    if existing is not None and existing.get("status") == new.get("status"):
        if existing.get("reason") == new.get("reason"):
            return conditions
        new = {**new, "lastTransitionTime": existing.get("lastTransitionTime")}
    return [*without_condition(conditions, name), new]


def without_condition(conditions: Conditions, name: str) -> Conditions:
    """Return the conditions without those of a type."""
    return [condition for condition in conditions if condition.get("type") != name]


def read_timestamp(value: Json) -> Ms | None:
    """Return the time of a timestamp field; None if the field is not a string."""
    return _parse_timestamp(value) if isinstance(value, str) else None


@lru_cache(maxsize=256)
def _parse_timestamp(value: str) -> Ms:
    return Ms(int(datetime.fromisoformat(value).timestamp() * 1_000))


def scaled_value(value: Json, *, total: int, round_up: bool) -> int:
    """Return a count, or a percentage of `total`; 0 for any other value.

    Like `GetScaledValueFromIntOrPercent` in `pkg/util/intstr/intstr.go` of k8s.io/apimachinery
    0.36.4.
    """
    if isinstance(value, str) and value.endswith("%"):
        percent = int(value[:-1])
        return -(-total * percent // HUNDRED) if round_up else total * percent // HUNDRED
    return value if isinstance(value, int) else 0


def without_zeros(counts: dict[str, Json]) -> dict[str, Json]:
    """Return the counts without zeros, like fields with `omitempty`."""
    return {name: count for name, count in counts.items() if count}
