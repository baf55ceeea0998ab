"""Label and field selectors, as structs of objects and as kubectl's text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from tidegate.model.k8s.json_fields import get_list, get_mapping, get_mappings, get_text
from tidegate.model.k8s.objects import Json
from tidegate.model.text.lazy_regex import lazy_regex

_LABEL = lazy_regex(
    r"\s*(?:(?P<absent>!)\s*(?P<missing>[^\s,!=()]+)"
    r"|(?P<key>[^\s,!=()]+)\s*(?:(?P<operator>in|notin)\s*\((?P<values>[^)]*)\)"
    r"|(?P<sign>==|!=|=)\s*(?P<value>[^\s,]*))?)\s*(?:,|$)"
)
_FIELD = lazy_regex(r"\s*(?P<key>[^\s,!=]+)\s*(?P<sign>==|!=|=)\s*(?P<value>[^\s,]*)\s*(?:,|$)")
_FORMATS = {
    "In": "{0} in ({1})",
    "NotIn": "{0} notin ({1})",
    "Exists": "{0}",
    "DoesNotExist": "!{0}",
}


class SelectorError(ValueError):
    """A selector that an API server would reject."""


class Requirement(NamedTuple):
    """A requirement of a selector on one label or field."""

    key: str
    operator: str
    values: tuple[Json, ...] = ()

    def matches(self, labels: Mapping[str, Json]) -> bool:
        """Return whether labels meet the requirement. An unknown operator is always met."""
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
                return self._compares(labels.get(self.key))
            case _:
                return True

    def _compares(self, value: Json) -> bool:
        try:
            actual, bound = int(str(value)), int(str(self.values[0]))
        except (ValueError, IndexError):
            return False
        return actual > bound if self.operator == "Gt" else actual < bound


def parse_requirement(expression: Json) -> Requirement:
    """Parse an entry of `matchExpressions` or `matchFields`."""
    values = tuple(get_list(expression, "values"))
    return Requirement(get_text(expression, "key"), get_text(expression, "operator"), values)


def selector_matches(selector: Json, labels: Mapping[str, Json]) -> bool:
    """Return whether a label selector of an object selects these labels.

    An empty selector selects all.
    """
    equal = get_mapping(selector, "matchLabels")
    # The API server reads null in a string map as an empty string.
    if any(labels.get(key) != (value or "") for key, value in equal.items()):
        return False
    return all(
        parse_requirement(expression).matches(labels)
        for expression in get_mappings(selector, "matchExpressions")
    )


def format_selector(selector: Json) -> str:
    """Format a label selector of an object as text."""
    equal = (
        f"{key}={value}" for key, value in sorted(get_mapping(selector, "matchLabels").items())
    )
    requirements = map(parse_requirement, get_mappings(selector, "matchExpressions"))
    expressions = (
        _FORMATS[requirement.operator].format(
            requirement.key, ",".join(map(str, requirement.values))
        )
        for requirement in requirements
        if requirement.operator in _FORMATS
    )
    return ",".join((*equal, *expressions))


def parse_label_selector(selector: str) -> tuple[Requirement, ...]:
    """Parse a label selector such as `a=b,c in (d),!e`. Raises SelectorError."""
    return tuple(map(_label_requirement, _split_requirements(selector, _LABEL)))


def parse_field_selector(selector: str) -> tuple[Requirement, ...]:
    """Parse a field selector such as `metadata.name=web,status.phase!=Running`.

    Raises SelectorError.
    """
    return tuple(map(_equality_requirement, _split_requirements(selector, _FIELD)))


def _label_requirement(match: re.Match[str]) -> Requirement:
    if match["absent"]:
        return Requirement(match["missing"], "DoesNotExist")
    if match["operator"]:
        values = tuple(value.strip() for value in match["values"].split(","))
        return Requirement(match["key"], "In" if match["operator"] == "in" else "NotIn", values)
    return _equality_requirement(match) if match["sign"] else Requirement(match["key"], "Exists")


def _equality_requirement(match: re.Match[str]) -> Requirement:
    operator = "NotIn" if match["sign"] == "!=" else "In"
    return Requirement(match["key"], operator, (match["value"],))


def _split_requirements(selector: str, pattern: re.Pattern[str]) -> list[re.Match[str]]:
    parts, position = [], 0
    while position < len(selector):
        part = pattern.match(selector, position)
        if part is None or part.end() == position:
            raise SelectorError(f"unable to parse requirement: {selector}")
        parts.append(part)
        position = part.end()
    return parts
