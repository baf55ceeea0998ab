"""The times in statuses that operators write."""

from __future__ import annotations

from tidegate.knowledge.templates import NOW
from tidegate.model.k8s.objects import JsonObject
from tidegate.model.times import Ms
from tidegate.sandbox.operators.interpreter import fill_times, stage_status


def test_conditions_keep_their_time_until_their_status_changes() -> None:
    template: dict[str, object] = {
        "at": NOW,
        "conditions": [{"type": "A", "status": "True"}, {"type": "B", "status": "True"}],
    }
    old: JsonObject = {
        "at": "before",
        "conditions": [
            {"type": "B", "status": "True", "lastTransitionTime": "before"},
            {"type": "A", "status": "False", "lastTransitionTime": "before"},
        ],
    }

    expected = stage_status(template, {})
    written = fill_times(expected, old, Ms(0))

    new = "1970-01-01T00:00:00Z"
    assert written == {
        "at": "before",
        "conditions": [
            {"type": "A", "status": "True", "lastTransitionTime": new},
            {"type": "B", "status": "True", "lastTransitionTime": "before"},
        ],
    }
