"""Ownership and deletion options of a live object.

Read before an object is pruned, deleted, or adopted from another unit.
"""

from __future__ import annotations

import msgspec

from tidegate.dialect.argo.hooks import DeletionPhase, read_hook, with_helm_annotations_only
from tidegate.dialect.argo.options import read_argo_options
from tidegate.dialect.argo.waves import live_wave
from tidegate.dialect.flux.metadata import read_flux_options
from tidegate.dialect.ownership.helm import belongs_to_release, foreign_release
from tidegate.dialect.ownership.tracking import owning_unit
from tidegate.errors import sanitize
from tidegate.model.k8s.json_fields import get_list, object_kind
from tidegate.model.k8s.kinds import CRD
from tidegate.model.k8s.objects import JsonObject
from tidegate.model.plans.plan import PlannedUnit
from tidegate.model.units.policy import ObjectOptions, Order


class LiveOwnership(msgspec.Struct, frozen=True):
    """Wave and options of a live object for its deletion.

    Hooks are never pruned; they are deleted with their unit.
    """

    wave: int
    options: ObjectOptions
    is_hook: bool
    is_post_delete: bool = False
    """Whether it runs after all other objects of its unit are deleted."""


def read_live_ownership(body: JsonObject, unit: PlannedUnit) -> LiveOwnership | None:
    """Read the deletion options of a live object.

    None if the unit may not delete it: it belongs to another unit or has an owner reference.
    """
    owner = owning_unit(body, unit.policy.owner_label)
    is_owned = owner == unit.id.tracking_id or belongs_to_release(body, unit.policy.release)
    if not is_owned or get_list(body, "metadata", "ownerReferences"):
        return None
    if unit.policy.order is Order.STAGES:
        return LiveOwnership(0, read_flux_options(body, unit.policy.object_options), is_hook=False)
    if unit.policy.order is Order.HELM:
        body = with_helm_annotations_only(body)
    hook = read_hook(body)
    is_post_delete = (
        hook is not None
        and not hook.phases
        and hook.deletion_phases == (DeletionPhase.POST_DELETE,)
    )
    options = read_argo_options(body, unit.policy.object_options)
    return LiveOwnership(
        live_wave(body), options, is_hook=hook is not None, is_post_delete=is_post_delete
    )


def other_owner(
    body: JsonObject, unit: PlannedUnit, label: str = "", *, is_deleted: bool = False
) -> str:
    """Return the unit or Helm release that loses a live object to this unit; empty if none does.

    Helm metadata stays on an object that another tool takes over. It counts until the object has
    tracking metadata of this unit, and again when the object is deleted: Helm still lists it.

    `label`: the label by which Argo CD tracks its objects, if the unit has none.
    """
    unit_owner = owning_unit(body, unit.policy.owner_label or label)
    if unit_owner not in {"", unit.id.tracking_id}:
        return f"unit `{sanitize(unit_owner)}`"
    if unit_owner and not is_deleted:
        return ""
    if object_kind(body) == CRD:  # shared, and without tracking metadata in most units
        return ""
    release = foreign_release(body, unit.policy.release)
    return f"Helm release `{sanitize(release)}`" if release else ""
