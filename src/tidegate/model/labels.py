"""Label selectors as they stand in objects: `matchLabels` and `matchExpressions`."""

from __future__ import annotations

from tidegate.model.objects import Json
from tidegate.model.reading import listed, mapping, mappings, text


def matches(selector: Json, labels: dict[str, Json]) -> bool:
    """Whether a selector takes what carries these labels; an empty one takes all."""
    equal = mapping(selector, "matchLabels")
    if any(labels.get(key) != value for key, value in equal.items()):
        return False
    return all(_holds(one, labels) for one in mappings(selector, "matchExpressions"))


def _holds(expression: dict[str, Json], labels: dict[str, Json]) -> bool:
    key, values = text(expression, "key"), listed(expression, "values")
    match text(expression, "operator"):
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case _:
            return key not in labels
