"""Difference between a live object and the result of a full replacement by the desired one.

A replacement removes everything that is not desired, no matter which manager owns it. Fields that
servers and controllers set come back and are not removed again and again: once an object was
replaced, only fields that users and other appliers added since then count as extra.
"""

from __future__ import annotations

import msgspec

from tidegate.model.k8s.json_fields import get_mapping, get_text, get_value
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.plans.change import DiffAction, Difference
from tidegate.plan.diff.adoption import DEFAULT_ADOPTED, is_adopted
from tidegate.plan.diff.compare import build_difference, compare_fields
from tidegate.plan.diff.fingerprint import digest_parts, is_secret
from tidegate.plan.diff.owned_fields import Fields, entry_fields, managed_entries, merge_fields

REPLACED_PREFIX = "replaced "
POD_LABELLED_KINDS = frozenset(["Job", "ReplicationController"])


def replacement_fingerprint(desired: JsonObject, live: JsonObject) -> str:
    """Return the fingerprint after a replacement: it changes with a desired field or another
    object.

    That of a Secret does not depend on its values, but changes with every write.
    """
    uid = get_text(live, "metadata", "uid")
    if is_secret(live):
        return REPLACED_PREFIX + digest_parts(uid, get_text(live, "metadata", "resourceVersion"))
    desired_fields = {name: value for name, value in desired.items() if name != "status"}
    return REPLACED_PREFIX + digest_parts(uid, _project_live(desired_fields, live))


def compare_replacement(
    desired: JsonObject, live: JsonObject | None, *, manager: str, fingerprint: str
) -> Difference:
    """Return the change of a live object by a replacement with the desired one.

    `fingerprint` was recorded after the write of this manifest; empty if there was none.
    """
    if live is None:
        return Difference(action=DiffAction.CREATE)
    entries, was_replaced = managed_entries(live), fingerprint.startswith(REPLACED_PREFIX)
    if not entries and not was_replaced:
        # The managed fields were cleared: which fields would be removed is unknown.
        return Difference(action=DiffAction.REPLACE)
    removed_fields: Fields = {}
    other_fields: list[Fields] = []
    for entry in entries:
        if was_replaced and not _is_added_by_user(entry, manager):
            other_fields.append(entry_fields(entry))
        elif not entry.get("subresource"):
            removed_fields = merge_fields(removed_fields, _without_status(entry_fields(entry)))
    if not removed_fields and fingerprint == replacement_fingerprint(desired, live):
        return Difference(action=DiffAction.KEEP)
    comparison = compare_fields(
        _with_completions(_with_pod_labels(desired), live), live, removed_fields, other_fields
    )
    if not comparison.differences:
        return Difference(action=DiffAction.KEEP)
    difference = build_difference(comparison, live, desired)
    action = DiffAction.REPLACE if difference.action is DiffAction.CHANGE else difference.action
    return msgspec.structs.replace(difference, action=action)


def _with_pod_labels(desired: JsonObject) -> JsonObject:
    """Return the object with the labels of its pods, which some kinds get if they set none."""
    labels = get_value(desired, "spec", "template", "metadata", "labels")
    metadata = get_mapping(desired, "metadata")
    if desired.get("kind") not in POD_LABELLED_KINDS or not labels or metadata.get("labels"):
        return desired
    return {**desired, "metadata": {**metadata, "labels": labels}}


def _with_completions(desired: JsonObject, live: JsonObject) -> JsonObject:
    """Return a Job with the default of one completion, if it sets neither completions nor
    parallelism.
    """
    spec, completions = get_mapping(desired, "spec"), get_value(live, "spec", "completions")
    if (
        desired.get("kind") != "Job"
        or {"completions", "parallelism"} & spec.keys()
        or completions != 1
    ):
        return desired
    return {**desired, "spec": {**spec, "completions": completions}}


def _is_added_by_user(entry: JsonObject, manager: str) -> bool:
    return get_text(entry, "manager") != manager and is_adopted(entry, manager, DEFAULT_ADOPTED)


def _without_status(fields: Fields) -> Fields:
    """Return the fields without status, which is written separately."""
    return {name: inner for name, inner in fields.items() if name != "f:status"}


def _project_live(desired: Json, live: Json) -> Json:
    """Return the live values of desired fields; lists are not split."""
    if not isinstance(desired, dict) or not isinstance(live, dict):
        return live
    return {name: _project_live(inner, live.get(name)) for name, inner in desired.items()}
