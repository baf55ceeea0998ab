"""Fields that a client-side apply sent, by the annotation that it leaves.

    managedFields      spec.policyTypes, spec.podSelector     the server set the first by default
    last-applied       spec.podSelector

An apply on the client's side is an update: its manager also owns the defaults of the server. They
are not from Git, so they are not removed when Git does not have them.
"""

from __future__ import annotations

from typing import cast

import msgspec

from tidegate.model.k8s.json_fields import get_mapping, get_text
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.plan.diff.fingerprint import is_secret
from tidegate.plan.diff.owned_fields import (
    SELF,
    Fields,
    is_scalar,
    key_values,
    parse_key,
    parse_value,
)
from tidegate.plan.diff.values import normalize_secret

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
CLIENT_SIDE_MANAGERS = frozenset({"argocd-controller", "kubectl-client-side-apply"})
"""Managers that apply on the client's side and write the annotation."""


def without_defaults(fields: Fields, entry: JsonObject, live: JsonObject) -> Fields:
    """Return the fields of an entry that were applied, without those that the server added."""
    if get_text(entry, "manager") not in CLIENT_SIDE_MANAGERS:
        return fields
    applied = _read_last_applied(live)
    return fields if applied is None else _applied_fields(fields, applied)


def _read_last_applied(live: JsonObject) -> JsonObject | None:
    """Return the manifest of the last apply; None if it is unknown."""
    text = get_text(get_mapping(live, "metadata", "annotations"), LAST_APPLIED)
    try:
        body = msgspec.json.decode(text) if text else None
    except msgspec.DecodeError:
        return None
    if not isinstance(body, dict):
        return None
    return normalize_secret(body) if is_secret(body) else body


def _applied_fields(fields: Fields, applied: Json) -> Fields:
    applied_fields: Fields = {}
    for element, inner in fields.items():
        if element == SELF:
            applied_fields[element] = inner
            continue
        value, is_applied = _find_value(element, applied)
        applied_inner = _applied_fields(inner, value) if is_applied else {}
        if is_applied and (applied_inner or not inner):
            applied_fields[element] = applied_inner
    return applied_fields


def _find_value(element: str, applied: Json) -> tuple[Json, bool]:
    """Return the applied value of a field or list item, and whether there is one."""
    prefix, name = element[0], element[2:]
    if prefix == "f" and isinstance(applied, dict):
        return applied.get(name), name in applied
    if prefix == "k" and isinstance(applied, list):
        key = parse_key(element)
        items = (item for item in applied if isinstance(item, dict))
        matching = [item for item in items if key_values(item, key.names) == key.values]
        return (matching[0], True) if matching else (None, False)
    if prefix == "v" and isinstance(applied, list):
        value = parse_value(element)
        return value, any(item == value for item in applied if is_scalar(item))
    return cast("Json", None), prefix == "i"
