"""Statuses that are written, and with which times."""

from __future__ import annotations

from tidegate.knowledge.stages import partner_of
from tidegate.knowledge.templates import NOW, render
from tidegate.model.moment import Ms
from tidegate.model.objects import Json
from tidegate.sandbox.server.lifecycle import timestamp
from tidegate.sandbox.server.store import Body


def status_of(template: dict[str, object], scope: Body) -> Json:
    """The status that a stage writes; its conditions get what most kinds demand of them."""
    return _with_open_times(render(template, scope))


def _with_open_times(value: Json) -> Json:
    if isinstance(value, list):
        return [_with_open_times(one) for one in value]
    if not isinstance(value, dict):
        return value
    made = {key: _with_open_times(inner) for key, inner in value.items()}
    if "type" in made and "status" in made:
        made.setdefault("lastTransitionTime", NOW)
        if "reason" in made:
            made.setdefault("message", "")
    return made


def with_times(wanted: Json, actual: Json, now: Ms) -> Json:
    """A status to write: old times stay, except of a condition whose status is another."""
    if wanted == NOW:
        return actual if isinstance(actual, str) and actual else timestamp(now)
    if isinstance(wanted, dict):
        known: Body = actual if isinstance(actual, dict) else {}
        if "type" in wanted and wanted.get("status") != known.get("status"):
            known = {}
        return {key: with_times(value, known.get(key), now) for key, value in wanted.items()}
    if isinstance(wanted, list):
        old: list[Json] = actual if isinstance(actual, list) else []
        padded = [*old, *([None] * len(wanted))]
        return [
            with_times(one, partner_of(one, place, padded), now) for place, one in enumerate(wanted)
        ]
    return wanted
