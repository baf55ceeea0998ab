"""The diff of an object: from its options, its unit's options and the live object.

Replace and force are requested by the desired object or by the live one.
"""

from __future__ import annotations

from functools import cache

import msgspec

from tidegate.dialect.argo.options import FORCE, REPLACE, has_sync_option
from tidegate.dialect.flux import metadata
from tidegate.engine.evaluator import WritePayload
from tidegate.engine.messages import Override
from tidegate.errors import sanitize
from tidegate.health.overrides import REPLICAS
from tidegate.health.overrides import find_override as find_field_override
from tidegate.model.display import join_quoted
from tidegate.model.k8s.json_fields import get_mappings, get_text
from tidegate.model.k8s.objects import JsonObject
from tidegate.model.plans.change import DiffAction, Difference
from tidegate.model.plans.drift import ObjectDrift
from tidegate.model.plans.plan import AWAIT_ACTIONS, ItemAction, PlanItem, PlannedUnit
from tidegate.model.units.ignore_differences import IgnoreDifference
from tidegate.model.units.policy import Order
from tidegate.plan.diff.adoption import DEFAULT_ADOPTED, adopted_managers, adoption_patch
from tidegate.plan.diff.compare import compare
from tidegate.plan.diff.fingerprint import compute_fingerprint as fingerprint_of
from tidegate.plan.diff.ignore_differences import with_live_values, without_ignored
from tidegate.plan.diff.owned_fields import field_managers, is_scalar
from tidegate.plan.diff.replace import compare_replacement, replacement_fingerprint
from tidegate.workers.jq import Jq

UNCHANGED = Difference(action=DiffAction.KEEP)


def find_difference(
    unit: PlannedUnit, item: PlanItem, live: JsonObject | None, jq: Jq, fingerprint: str = ""
) -> Difference:
    """Return what happens to an object; `fingerprint` is that of its last write."""
    if item.action in AWAIT_ACTIONS | {ItemAction.IGNORE} or (
        live is not None and is_unmanaged(unit, live)
    ):
        return UNCHANGED
    if live is None:
        return Difference(action=DiffAction.CREATE)
    if item.action is ItemAction.CREATE:
        return UNCHANGED
    replaces, manager, adopted = (
        is_replaced(item, live),
        unit.policy.manager,
        _managers_to_adopt(unit, item),
    )
    is_untouched = not replaces and fingerprint and fingerprint == fingerprint_of(live, manager)
    if is_untouched and not adopted_managers(live, manager, adopted):
        return UNCHANGED
    desired, actual = _comparable_bodies(unit, item, live, jq)
    if not replaces:
        return compare(desired, actual, manager=manager, adopted=adopted)
    difference = compare_replacement(desired, actual, manager=manager, fingerprint=fingerprint)
    if difference.action is DiffAction.REPLACE and is_forced(unit, item, live):
        return msgspec.structs.replace(difference, action=DiffAction.RECREATE)
    return difference


def describe_overwritten_fields(
    unit: PlannedUnit, item: PlanItem, live: JsonObject, jq: Jq, fingerprint: str
) -> str:
    """Describe which field manager changed which fields of the unit; empty without a change."""
    difference = find_difference(unit, item, live, jq, fingerprint)
    if difference.action is DiffAction.KEEP:
        return ""
    paths = [field.path for field in difference.fields] or ["some fields"]
    names = join_quoted(paths)
    return f"was changed by {sanitize(_last_writer(live, unit.policy.manager))}: {names}"


def find_override(unit: PlannedUnit, item: PlanItem, live: JsonObject, jq: Jq) -> Override | None:
    """Return a field that Git leaves out and another client set, so that no pod is updated.

    An ignored field may have any value.
    """
    desired, actual = _comparable_bodies(unit, item, live, jq)
    override = find_field_override(desired, actual)
    if override is None:
        return None
    managers = [sanitize(name) for name in field_managers(live, override.path)]
    by = f", set by {join_quoted(managers)}" if managers else ""
    value = f" is `{sanitize(str(override.value))}`" if is_scalar(override.value) else " is set"
    path = ".".join(override.path)
    message = f"no pod runs the applied template: `{path}`{value}{by}, and Git does not set it"
    return Override(message, is_scale=override.path == REPLICAS)


def find_drift(
    unit: PlannedUnit, item: PlanItem, live: JsonObject | None, jq: Jq
) -> ObjectDrift | None:
    """Return what others changed in an object of a unit; None if no field differs."""
    if live is None:
        return ObjectDrift("was deleted", is_deleted=True)
    fields = find_difference(unit, item, live, jq).fields
    if not fields:
        return None
    added = sum(not field.before for field in fields)
    removed = sum(not field.after for field in fields)
    changed = len(fields) - added - removed
    message = describe_overwritten_fields(unit, item, live, jq, "")
    return ObjectDrift(message, added=added, changed=changed, removed=removed)


def _last_writer(live: JsonObject, manager: str) -> str:
    """Return the field manager of the latest write that is not ours and not of the status."""
    writers = [
        (get_text(entry, "time"), get_text(entry, "manager", default="another client"))
        for entry in get_mappings(live, "metadata", "managedFields")
        if get_text(entry, "subresource") != "status" and get_text(entry, "manager") != manager
    ]
    return max(writers, default=("", "another client"))[1]


def is_replaced(item: PlanItem, live: JsonObject | None) -> bool:
    """Return whether an object is replaced instead of applied."""
    return item.options.replace or (live is not None and has_sync_option(live, REPLACE))


def is_forced(unit: PlannedUnit, item: PlanItem, live: JsonObject) -> bool:
    """Return whether an object may be deleted and created again where that helps."""
    is_requested = (
        metadata.is_forced(live) if _uses_flux_annotations(unit) else has_sync_option(live, FORCE)
    )
    return item.options.force or is_requested


def is_unmanaged(unit: PlannedUnit, live: JsonObject) -> bool:
    """Return whether the live object opts out of management with annotations of its dialect."""
    return _uses_flux_annotations(unit) and metadata.is_ignored(live)


def _uses_flux_annotations(unit: PlannedUnit) -> bool:
    return unit.policy.order is Order.STAGES


def build_payload(
    unit: PlannedUnit, item: PlanItem, live: JsonObject | None, jq: Jq
) -> WritePayload:
    body, replaces = item.body, is_replaced(item, live)
    rules = _ignore_rules(unit, item) if unit.policy.respect_ignore_differences else ()
    if live is not None and rules:
        desired: JsonObject = msgspec.json.decode(body)
        body = msgspec.json.encode(with_live_values(desired, live, rules, jq.paths_for(item)))
    return WritePayload(body, replaces)


def fingerprint_written(unit: PlannedUnit, item: PlanItem, live: JsonObject, jq: Jq) -> str:
    """Return the fingerprint of an object just written; while it matches, the object is in sync."""
    if is_replaced(item, live):
        return replacement_fingerprint(*_comparable_bodies(unit, item, live, jq))
    return fingerprint_of(live, unit.policy.manager)


def build_adoption_patch(unit: PlannedUnit, item: PlanItem, live: JsonObject) -> bytes | None:
    return adoption_patch(live, unit.policy.manager, _managers_to_adopt(unit, item))


def _comparable_bodies(
    unit: PlannedUnit, item: PlanItem, live: JsonObject, jq: Jq
) -> tuple[JsonObject, JsonObject]:
    """Return the desired and the live object without ignored differences."""
    desired: JsonObject = msgspec.json.decode(item.body)
    rules = _ignore_rules(unit, item)
    return without_ignored(desired, live, rules, jq.paths_for(item)) if rules else (desired, live)


def _ignore_rules(unit: PlannedUnit, item: PlanItem) -> tuple[IgnoreDifference, ...]:
    return tuple(rule for rule in unit.policy.ignore_differences if rule.matches(item.ref))


def _managers_to_adopt(unit: PlannedUnit, item: PlanItem) -> frozenset[str]:
    preserves_others = unit.policy.keep_other_appliers or item.options.keep_other_fields
    return _managers_adopted_by(unit.policy.manager, preserves_others=preserves_others)


@cache
def _managers_adopted_by(manager: str, *, preserves_others: bool) -> frozenset[str]:
    """Return the managers whose fields become ours; our own too, after a replace."""
    return frozenset({manager}) if preserves_others else DEFAULT_ADOPTED | {manager}
