"""What is written down of an object: no times, no uids, no names that chance has made."""

from __future__ import annotations

from tidegate.model.k8s.json_fields import get_int, get_mapping, get_mappings, get_text
from tidegate.model.k8s.objects import Json, JsonObject

State = dict[str, Json]
REVISIONS = ("currentRevision", "updateRevision")
NOT_COUNTED = ("observedGeneration", "collisionCount", "terminatingReplicas")
"""Whether `terminatingReplicas` are reported depends on the kubelet, not on controllers."""
WORDS = ("phase", "completedIndexes", "failedIndexes")
"""What some kinds say instead of a condition."""
UNSAID = ("", "Pending")
"""`Pending` is what everything begins with."""
GONE: State = {"gone": True}


class StateReader:
    """Turns the bodies of one object, in the order of their coming, into states."""

    def __init__(self) -> None:
        self._revisions: dict[str, str] = {}
        self.states: list[State] = []

    def read(self, body: JsonObject | None) -> None:
        """Note the state of a body, or that the object is gone; the same twice is one."""
        state = GONE if body is None else self._state(body)
        if not self.states or self.states[-1] != state:
            self.states.append(state)

    def _state(self, body: JsonObject) -> State:
        status = get_mapping(body, "status")
        state: State = {"generation": get_int(body, "metadata", "generation")}
        state["observed"] = get_int(status, "observedGeneration")
        counts: State = {
            name: value
            for name, value in sorted(status.items())
            if isinstance(value, int) and name not in NOT_COUNTED and value
        }
        state["counts"] = counts
        for name in REVISIONS:
            if name in status:
                state[name] = self._revision(get_text(status, name))
        conditions: State = {
            get_text(
                condition, "type"
            ): f"{get_text(condition, 'status')} {get_text(condition, 'reason')}".strip()
            for condition in get_mappings(status, "conditions")
        }
        conditions |= {
            name: get_text(status, name) for name in WORDS if get_text(status, name) not in UNSAID
        }
        if conditions:
            state["conditions"] = dict(sorted(conditions.items()))
        return state

    def _revision(self, name: str) -> str:
        """Revisions are numbered in the order in which they are first heard of."""
        return self._revisions.setdefault(name, f"#{len(self._revisions) + 1}")
