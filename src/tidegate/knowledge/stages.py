"""Which stage a status shows.

A status that was written may have lost fields which its CRD does not know. So a field that is
missing says nothing; one that stands there and differs says that it is another stage.
"""

from __future__ import annotations

from tidegate.knowledge.templates import NOW
from tidegate.model.objects import Json


def shows(status: Json, wanted: Json) -> bool:
    """Whether a status is this one: it agrees somewhere and differs nowhere."""
    return bool(_agreement(wanted, status))


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
        return _together(
            [(one, partner_of(one, place, actual)) for place, one in enumerate(wanted)]
        )
    return 1 if wanted == actual and type(wanted) is type(actual) else None


def _together(pairs: list[tuple[Json, Json]]) -> int | None:
    counts = [_agreement(wanted, actual) for wanted, actual in pairs]
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def partner_of(item: Json, place: int, actual: list[Json]) -> Json:
    """Conditions are found by their type, whatever order a server keeps them in."""
    if isinstance(item, dict) and "type" in item:
        same = (one for one in actual if isinstance(one, dict) and one.get("type") == item["type"])
        return next(same, None)
    return actual[place]
