"""Ignored differences: objects compared without them, and live values written in their place.

An ignored field counts on neither side, and neither does its owner. Each path is resolved on both
sides separately; a path that does not resolve ignores nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias, cast

from tidegate.model.k8s.json_fields import get_mapping, get_text
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.units.ignore_differences import (
    DifferencePath,
    DifferencePathFinder,
    IgnoreDifference,
)
from tidegate.plan.diff.copy_fields import copy_live_value
from tidegate.plan.diff.owned_fields import Fields, entry_fields, managed_entries, merge_fields
from tidegate.plan.diff.remove_fields import (
    RemovedFields,
    managed_paths,
    strip_fields,
    strip_managed_fields,
)

IgnoreRules: TypeAlias = tuple[IgnoreDifference, ...]
STATUS_FIELD = "status"


def without_ignored(
    desired: JsonObject, live: JsonObject, rules: IgnoreRules, find_paths: DifferencePathFinder
) -> tuple[JsonObject, JsonObject]:
    """Return both objects without ignored fields."""
    desired_removed, live_removed = map(
        RemovedFields.from_paths, _ignored_paths(desired, live, rules, find_paths)
    )
    remaining = _with_remaining_owners(_strip(live, live_removed), live, live_removed)
    return _strip(desired, desired_removed, drop_empty=True), remaining


def with_live_values(
    desired: JsonObject, live: JsonObject, rules: IgnoreRules, find_paths: DifferencePathFinder
) -> JsonObject:
    """Return the desired object with the live values of ignored fields, except for its status."""
    desired_paths, live_paths = _ignored_paths(desired, live, rules, find_paths)
    body = _strip(desired, RemovedFields.from_paths(desired_paths))
    for path in sorted(set(live_paths), key=str):
        if path[0] != STATUS_FIELD:
            body = cast("JsonObject", copy_live_value(body, live, path))
    return body


def _strip(body: JsonObject, removed: RemovedFields, *, drop_empty: bool = False) -> JsonObject:
    return (
        cast("JsonObject", strip_fields(body, removed, drop_empty=drop_empty))
        if removed.children
        else body
    )


def _ignored_paths(
    desired: JsonObject, live: JsonObject, rules: IgnoreRules, find_paths: DifferencePathFinder
) -> list[list[DifferencePath]]:
    """Return the ignored paths of both objects, without the empty path."""
    expressions = tuple(
        dict.fromkeys(expression for rule in rules for expression in rule.expressions)
    )
    expression_paths = find_paths(expressions, (desired, live)) if expressions else ((), ())
    pointers = [pointer for rule in rules for pointer in rule.pointers]
    trusted_fields = _trusted_fields(live, rules)
    return [
        list(
            filter(
                None,
                (*paths, *_pointer_paths(pointers, body), *managed_paths(trusted_fields, body)),
            )
        )
        for body, paths in zip((desired, live), expression_paths, strict=True)
    ]


def _trusted_fields(live: JsonObject, rules: IgnoreRules) -> Fields:
    """Return the fields of managers whose changes are ignored."""
    names = {name for rule in rules for name in rule.managers}
    fields: Fields = {}
    for entry in managed_entries(live) if names else ():
        if get_text(entry, "manager") in names:
            fields = merge_fields(fields, entry_fields(entry))
    return fields


def _pointer_paths(pointers: Iterable[str], body: JsonObject) -> Iterator[DifferencePath]:
    for pointer in pointers:
        path: list[str | int] = []
        value: Json = body
        for part in pointer.split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            if isinstance(value, dict) and name in value:
                value = value[name]
                path.append(name)
            elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
                value = value[int(name)]
                path.append(int(name))
            else:
                break
        else:
            yield tuple(path)


def _with_remaining_owners(
    remaining: JsonObject, live: JsonObject, removed: RemovedFields
) -> JsonObject:
    """Return the rest of a live object, with the managed fields of that rest."""
    if remaining is live:
        return live
    entries = (
        (entry, strip_managed_fields(entry_fields(entry), live, removed))
        for entry in managed_entries(live)
    )
    managed_fields: list[Json] = [
        {**entry, "fieldsV1": cast("Json", fields)} for entry, fields in entries if fields
    ]
    return {
        **remaining,
        "metadata": {**get_mapping(remaining, "metadata"), "managedFields": managed_fields},
    }
