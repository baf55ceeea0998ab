"""Adoption of fields that other tools applied: our field manager becomes their owner.

Server-side apply removes only fields that its own manager owned before. Fields of kubectl, Helm or
another engine would survive their removal from Git unless we own them first.
"""

from __future__ import annotations

from functools import cache
from typing import cast

import msgspec

from tidegate.model.k8s.helm_metadata import MANAGED_BY, RELEASE_NAME, RELEASE_NAMESPACE
from tidegate.model.k8s.json_fields import get_mapping, get_text
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.plan.diff.last_applied import LAST_APPLIED, without_defaults
from tidegate.plan.diff.owned_fields import (
    APPLY_OPERATION,
    SELF,
    Fields,
    entry_fields,
    is_applied_by,
    managed_entries,
    merge_fields,
)

DEFAULT_ADOPTED = frozenset(
    [
        "argocd-application-controller",
        "argocd-controller",
        "before-first-apply",
        "helm",
        "Helm",
        "helm-controller",
        "kubectl*",
        "kustomize-controller",
    ]
)
"""Managers whose fields we adopt. A trailing star matches a prefix."""
STATUS_WRITERS = frozenset({"argocd-application-controller"})
"""Adopted managers that also write status into the object; the status stays theirs."""
STATUS_FIELDS = frozenset({"f:status", "f:operation"})
RELEASE_FIELDS: Fields = {
    "f:annotations": {f"f:{RELEASE_NAME}": {}, f"f:{RELEASE_NAMESPACE}": {}},
    "f:labels": {f"f:{MANAGED_BY}": {}},
}
"""Metadata of a Helm release, which stays: Helm still lists the object in the release."""


def is_adopted(entry: JsonObject, manager: str, adopted: frozenset[str] = DEFAULT_ADOPTED) -> bool:
    """Return whether the manager adopts the fields of an entry. Its own applied fields need not
    be.
    """
    has_only_status = unadopted_fields(entry) and not _adoptable_fields(entry)
    if entry.get("subresource") or is_applied_by(entry, manager) or has_only_status:
        return False
    name = get_text(entry, "manager")
    return name in adopted or name.startswith(_prefixes(adopted))


def adopted_fields(entry: JsonObject, live: JsonObject) -> Fields:
    """Return the fields of an entry that the manager adopts: those that were applied."""
    return without_defaults(_adoptable_fields(entry), entry, live)


def _adoptable_fields(entry: JsonObject) -> Fields:
    """Return the fields of an entry without its status and without metadata of a Helm release."""
    return _without(entry_fields(entry), unadopted_fields(entry))


def unadopted_fields(entry: JsonObject) -> Fields:
    """Return the fields of an entry that are not adopted."""
    fields = entry_fields(entry)
    is_status_writer = get_text(entry, "manager") in STATUS_WRITERS
    kept = {
        name: inner for name, inner in fields.items() if is_status_writer and name in STATUS_FIELDS
    }
    metadata = fields.get("f:metadata", {})
    if f"f:{RELEASE_NAME}" in metadata.get("f:annotations", {}):
        kept["f:metadata"] = {
            name: {key: {} for key in sorted(keys)}
            for name, release_fields in RELEASE_FIELDS.items()
            if (keys := release_fields.keys() & metadata.get(name, {}).keys())
        }
    return kept


def _without(fields: Fields, removed: Fields) -> Fields:
    """Return the fields without those that are removed as a whole."""
    remaining: Fields = {}
    for name, inner in fields.items():
        if removed.get(name) and inner:
            inner_fields = _without(inner, removed[name])
            if inner_fields.keys() - {SELF}:
                remaining[name] = inner_fields
        elif name not in removed:
            remaining[name] = inner
    return remaining


@cache
def _prefixes(adopted: frozenset[str]) -> tuple[str, ...]:
    return tuple(name[:-1] for name in adopted if name.endswith("*"))


def adopted_managers(
    live: JsonObject, manager: str, adopted: frozenset[str] = DEFAULT_ADOPTED
) -> tuple[str, ...]:
    """Return the managers whose fields we adopt from an object."""
    adopted_entries = (
        entry for entry in managed_entries(live) if is_adopted(entry, manager, adopted)
    )
    return tuple(sorted({get_text(entry, "manager") for entry in adopted_entries}))


def adoption_patch(
    live: JsonObject, manager: str, adopted: frozenset[str] = DEFAULT_ADOPTED
) -> bytes | None:
    """Return a JSON patch that makes adopted fields ours, for this version of the object only.

    None if there is nothing to adopt.
    """
    entries = managed_entries(live)
    adopted_entries = [entry for entry in entries if is_adopted(entry, manager, adopted)]
    if not adopted_entries:
        return None
    our_entries = [entry for entry in entries if is_applied_by(entry, manager)]
    other_entries: list[Json] = [
        entry
        for entry in entries
        if not any(entry is merged_entry for merged_entry in (*our_entries, *adopted_entries))
    ]
    other_entries += (
        {**entry, "fieldsV1": cast("Json", remaining)}
        for entry in adopted_entries
        if (remaining := unadopted_fields(entry))
    )
    patch: list[Json] = [
        _replace_operation(
            "/metadata/managedFields",
            [_merge_entries(live, manager, [*our_entries, *adopted_entries]), *other_entries],
        ),
        # Replace without a test operation: the server then returns Conflict, not Invalid.
        _replace_operation(
            "/metadata/resourceVersion", get_text(live, "metadata", "resourceVersion")
        ),
    ]
    if LAST_APPLIED in get_mapping(live, "metadata", "annotations"):
        escaped_name = LAST_APPLIED.replace("/", "~1")
        patch.append({"op": "remove", "path": f"/metadata/annotations/{escaped_name}"})
    return msgspec.json.encode(patch)


def _replace_operation(path: str, value: Json) -> JsonObject:
    return {"op": "replace", "path": path, "value": value}


def _merge_entries(live: JsonObject, manager: str, entries: list[JsonObject]) -> JsonObject:
    fields: Fields = {}
    for entry in entries:
        is_ours = is_applied_by(entry, manager)
        own_fields = _adoptable_fields(entry) if is_ours else adopted_fields(entry, live)
        fields = merge_fields(fields, own_fields)
    times = [get_text(entry, "time") for entry in entries]
    return {
        "manager": manager,
        "operation": APPLY_OPERATION,
        "apiVersion": get_text(live, "apiVersion"),
        **({"time": max(times)} if any(times) else {}),
        "fieldsType": "FieldsV1",
        "fieldsV1": cast("Json", _without_last_applied(fields)),
    }


def _without_last_applied(fields: Fields) -> Fields:
    """Return the fields without the last-applied annotation, which the patch removes."""
    metadata = fields.get("f:metadata", {})
    annotations = metadata.get("f:annotations", {})
    if f"f:{LAST_APPLIED}" not in annotations:
        return fields
    remaining = {name: inner for name, inner in annotations.items() if name != f"f:{LAST_APPLIED}"}
    other_metadata = {name: inner for name, inner in metadata.items() if name != "f:annotations"}
    return {
        **fields,
        "f:metadata": {**other_metadata, **({"f:annotations": remaining} if remaining else {})},
    }
