"""Selectors of labels and fields: as they stand in objects, and as text, as kubectl takes it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from tidegate.model.objects import Json
from tidegate.model.patterns import late
from tidegate.model.reading import listed, mapping, mappings, text

_LABEL = late(
    r"\s*(?:(?P<absent>!)\s*(?P<missing>[^\s,!=()]+)"
    r"|(?P<key>[^\s,!=()]+)\s*(?:(?P<operator>in|notin)\s*\((?P<values>[^)]*)\)"
    r"|(?P<sign>==|!=|=)\s*(?P<value>[^\s,]*))?)\s*(?:,|$)"
)
_FIELD = late(r"\s*(?P<key>[^\s,!=]+)\s*(?P<sign>==|!=|=)\s*(?P<value>[^\s,]*)\s*(?:,|$)")
_TEXTS = {"In": "{0} in ({1})", "NotIn": "{0} notin ({1})", "Exists": "{0}", "DoesNotExist": "!{0}"}


class SelectorError(ValueError):
    """A selector that a server would refuse."""


class Requirement(NamedTuple):
    """What a selector wants of one label or field."""

    key: str
    operator: str
    values: tuple[Json, ...] = ()

    def holds(self, labels: Mapping[str, Json]) -> bool:
        """An operator that there is not is always met: it is refused elsewhere."""
        match self.operator:
            case "In":
                return labels.get(self.key) in self.values
            case "NotIn":
                return labels.get(self.key) not in self.values
            case "Exists":
                return self.key in labels
            case "DoesNotExist":
                return self.key not in labels
            case "Gt" | "Lt":
                return self._is_beyond(labels.get(self.key))
            case _:
                return True

    def _is_beyond(self, value: Json) -> bool:
        try:
            found, bound = int(str(value)), int(str(self.values[0]))
        except (ValueError, IndexError):
            return False
        return found > bound if self.operator == "Gt" else found < bound


def requirement(expression: Json) -> Requirement:
    """One of `matchExpressions`, or of `matchFields`."""
    values = tuple(listed(expression, "values"))
    return Requirement(text(expression, "key"), text(expression, "operator"), values)


def matches(selector: Json, labels: Mapping[str, Json]) -> bool:
    """Whether a selector that stands in an object takes these labels; an empty one takes all."""
    equal = mapping(selector, "matchLabels")
    # A server reads null in a map of texts as an empty text.
    if any(labels.get(key) != (value or "") for key, value in equal.items()):
        return False
    return all(requirement(one).holds(labels) for one in mappings(selector, "matchExpressions"))


def write_labels(selector: Json) -> str:
    """A selector that stands in an object, as text."""
    equal = (f"{key}={value}" for key, value in sorted(mapping(selector, "matchLabels").items()))
    rest = map(requirement, mappings(selector, "matchExpressions"))
    more = (
        _TEXTS[one.operator].format(one.key, ",".join(map(str, one.values)))
        for one in rest
        if one.operator in _TEXTS
    )
    return ",".join((*equal, *more))


def read_labels(selector: str) -> tuple[Requirement, ...]:
    """What `a=b,c in (d),!e` wants. Raises SelectorError."""
    return tuple(map(_label, _parts(selector, _LABEL)))


def read_fields(selector: str) -> tuple[Requirement, ...]:
    """What `metadata.name=web,status.phase!=Running` wants. Raises SelectorError."""
    return tuple(map(_equality, _parts(selector, _FIELD)))


def _label(found: re.Match[str]) -> Requirement:
    if found["absent"]:
        return Requirement(found["missing"], "DoesNotExist")
    if found["operator"]:
        values = tuple(value.strip() for value in found["values"].split(","))
        return Requirement(found["key"], "In" if found["operator"] == "in" else "NotIn", values)
    return _equality(found) if found["sign"] else Requirement(found["key"], "Exists")


def _equality(found: re.Match[str]) -> Requirement:
    operator = "NotIn" if found["sign"] == "!=" else "In"
    return Requirement(found["key"], operator, (found["value"],))


def _parts(selector: str, pattern: re.Pattern[str]) -> list[re.Match[str]]:
    found, position = [], 0
    while position < len(selector):
        part = pattern.match(selector, position)
        if part is None or part.end() == position:
            raise SelectorError(f"unable to parse requirement: {selector}")
        found.append(part)
        position = part.end()
    return found
