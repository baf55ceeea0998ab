"""Statuses: which stage an object's status shows, and what is to be written with which times.

A status that was written may have lost fields which its CRD does not know. So a field that is
missing says nothing; one that stands there and differs says that it is another stage.
"""

from __future__ import annotations

from typing import cast

from tidegate.model.moment import Ms
from tidegate.model.objects import Json
from tidegate.sandbox.operators.templates import NOW, render
from tidegate.sandbox.server.lifecycle import timestamp
from tidegate.sandbox.server.store import Body


def shows(status: Json, wanted: Json) -> bool:
    """Whether a status is this one: it agrees somewhere and differs nowhere."""
    return bool(_agreement(wanted, status))


def as_json(template: object) -> Json:
    """A template as the JSON that it is: rows are read from documents."""
    return cast("Json", template)


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


def _agreement(wanted: Json, actual: Json) -> int | None:
    """How many leaves are the same; None where one differs."""
    if wanted == NOW:
        return 0 if isinstance(actual, str) else None
    if isinstance(wanted, dict):
        if not isinstance(actual, dict):
            return None
        pairs = [(value, actual[key]) for key, value in wanted.items() if key in actual]
        return _together(pairs)
    if isinstance(wanted, list):
        if not isinstance(actual, list) or len(actual) != len(wanted):
            return None
        return _together([(one, _partner(one, place, actual)) for place, one in enumerate(wanted)])
    return 1 if wanted == actual and type(wanted) is type(actual) else None


def _together(pairs: list[tuple[Json, Json]]) -> int | None:
    counts = [_agreement(wanted, actual) for wanted, actual in pairs]
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _partner(item: Json, place: int, actual: list[Json]) -> Json:
    """Conditions are found by their type, whatever order a server keeps them in."""
    if isinstance(item, dict) and "type" in item:
        same = (one for one in actual if isinstance(one, dict) and one.get("type") == item["type"])
        return next(same, None)
    return actual[place]


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
            with_times(one, _partner(one, place, padded), now) for place, one in enumerate(wanted)
        ]
    return wanted
