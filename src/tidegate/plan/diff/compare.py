"""Difference between a desired and a live object: the changes that an apply would make.

Desired fields are compared with the live ones. Defaults and fields of other managers do not count;
our fields that are no longer in Git do. In doubt an object is changed, because applying an object
that is in sync is harmless.
"""

from __future__ import annotations

from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import JsonObject
from tidegate.model.plans.change import MASK, DiffAction, Difference, FieldChange
from tidegate.plan.diff.adoption import (
    DEFAULT_ADOPTED,
    adopted_fields,
    is_adopted,
    unadopted_fields,
)
from tidegate.plan.diff.compare_fields import FieldComparison
from tidegate.plan.diff.defaults import BUILTIN_GROUPS
from tidegate.plan.diff.fingerprint import compute_fingerprint as fingerprint_of
from tidegate.plan.diff.fingerprint import content_digest, is_secret
from tidegate.plan.diff.owned_fields import (
    Fields,
    entry_fields,
    is_applied_by,
    managed_entries,
    merge_fields,
)
from tidegate.plan.diff.paths import FieldDifference, field_names, format_path
from tidegate.plan.diff.values import format_pair, is_zero, normalize_secret, word_set
from tidegate.schema.immutable import find_immutable

UNOWNED_METADATA = word_set(
    "clusterName creationTimestamp deletionGracePeriodSeconds deletionTimestamp generateName "
    "generation managedFields name namespace resourceVersion selfLink uid"
)
"""Fields of `metadata` that no manager owns."""


def compare(
    desired: JsonObject,
    live: JsonObject | None,
    *,
    manager: str,
    fingerprint: str = "",
    digest: str = "",
    adopted: frozenset[str] = DEFAULT_ADOPTED,
) -> Difference:
    """Return the change of a live object by a forced apply of the desired one.

    `digest` and `fingerprint` were recorded after the last apply: if both still match, nothing is
    compared. The fields of `adopted` managers count as ours.
    """
    if live is None:
        return Difference(action=DiffAction.CREATE)
    entries = managed_entries(live)
    adopted_entries = [entry for entry in entries if is_adopted(entry, manager, adopted)]
    has_record = bool(fingerprint and digest) and not adopted_entries
    if (
        has_record
        and digest == content_digest(desired)
        and fingerprint == fingerprint_of(live, manager)
    ):
        return Difference(action=DiffAction.KEEP)
    our_fields: Fields = {}
    other_fields: list[Fields] = []
    for entry in entries:
        if is_applied_by(entry, manager):
            our_fields = merge_fields(our_fields, entry_fields(entry))
        elif entry in adopted_entries:
            our_fields = merge_fields(our_fields, adopted_fields(entry, live))
            other_fields.append(unadopted_fields(entry))
        else:
            other_fields.append(entry_fields(entry))
    comparison = compare_fields(desired, live, our_fields, other_fields)
    if not (comparison.differences or comparison.changes_ownership or adopted_entries):
        return Difference(action=DiffAction.KEEP)
    return build_difference(
        comparison,
        live,
        desired,
        changes_ownership=comparison.changes_ownership or bool(adopted_entries),
    )


def compare_fields(
    desired: JsonObject, live: JsonObject, our_fields: Fields, other_fields: list[Fields]
) -> FieldComparison:
    """Compare two objects. Fields of ours that are not desired are removed."""
    group, separator, _ = str(desired.get("apiVersion", "")).rpartition("/")
    is_builtin = (group if separator else "") in BUILTIN_GROUPS
    is_crd = desired.get("kind") == "CustomResourceDefinition"
    if is_secret(desired):
        desired, our_fields = normalize_secret(desired), _merge_string_data(our_fields)
    desired_fields = {
        name: value for name, value in desired.items() if name not in {"apiVersion", "kind"}
    }
    metadata = get_mapping(desired, "metadata")
    desired_fields["metadata"] = {
        name: metadata[name] for name in metadata if name not in UNOWNED_METADATA
    }
    if not desired_fields["metadata"]:
        del desired_fields["metadata"]
    owns_status = "f:status" in our_fields or not (
        is_builtin or is_zero(desired_fields.get("status")) or _has_status_subresource(live)
    )
    if not owns_status:
        desired_fields.pop("status", None)
    comparison = FieldComparison(other_fields, is_builtin=is_builtin, is_crd=is_crd)
    comparison.compare_fields(desired_fields, live, our_fields)
    return comparison


def _has_status_subresource(live: JsonObject) -> bool:
    """Return whether the status was written separately, so that an apply does not change it."""
    return any(entry.get("subresource") == "status" for entry in managed_entries(live))


def _merge_string_data(our_fields: Fields) -> Fields:
    string_data = our_fields.get("f:stringData")
    if not string_data:
        return our_fields
    other_fields = {name: inner for name, inner in our_fields.items() if name != "f:stringData"}
    return {**other_fields, "f:data": merge_fields(our_fields.get("f:data", {}), string_data)}


def build_difference(
    comparison: FieldComparison,
    live: JsonObject,
    desired: JsonObject,
    *,
    changes_ownership: bool = False,
) -> Difference:
    """Return the result of a comparison in readable form."""
    format_change = _format_masked_change if is_secret(live) else _format_change
    paths = [field_names(difference.path) for difference in comparison.differences]
    immutable_paths = frozenset(find_immutable(paths, live, desired))
    immutable_fields = {
        format_path(difference.path)
        for difference, path in zip(comparison.differences, paths, strict=True)
        if path in immutable_paths
    }
    return Difference(
        action=DiffAction.RECREATE if immutable_fields else DiffAction.CHANGE,
        fields=tuple(sorted(map(format_change, comparison.differences))),
        immutable_fields=tuple(sorted(immutable_fields)),
        changes_ownership=changes_ownership,
    )


def _format_change(difference: FieldDifference) -> FieldChange:
    return FieldChange(
        format_path(difference.path), *format_pair(difference.before, difference.after)
    )


def _format_masked_change(difference: FieldDifference) -> FieldChange:
    before, after = (
        MASK if value is not None else "" for value in (difference.before, difference.after)
    )
    return FieldChange(format_path(difference.path), before, after)
