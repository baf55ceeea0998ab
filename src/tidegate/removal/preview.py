"""What happens to the objects of a unit that a change removes, as far as files show it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from tidegate.health.readiness_timeout import readiness_timeout
from tidegate.model.k8s.objects import versionless_key
from tidegate.model.plans.manifest import Manifests
from tidegate.model.plans.plan import ItemAction, step_items
from tidegate.model.units.unit import Unit, UnitId
from tidegate.model.views.order_diff import Removal
from tidegate.plan.changes.delete_unit import build_deletion
from tidegate.plan.changes.prune import PruneCandidate


class RemovalPreview(msgspec.Struct, frozen=True, kw_only=True):
    """The removal of units between two revisions."""

    units: Mapping[UnitId, Unit]
    """The units before the change."""
    manifests: Mapping[UnitId, Manifests]
    """The known manifests before the change."""
    remaining_units: Mapping[UnitId, Unit]
    """The units after the change."""
    remaining_objects: Collection[tuple[str, ...]]
    """Cluster and versionless key of all objects after the change."""

    def find_removal(self, unit_id: UnitId) -> Removal | None:
        """Return what happens to the objects of a removed unit; None if they are not known."""
        manifests = self.manifests.get(unit_id)
        if manifests is None:
            return None
        reason = self._kept_reason(self.units[unit_id])
        if reason:
            return Removal(is_deleted=False, kept_reason=reason)
        cluster = manifests.unit.destination.cluster
        candidates = [
            PruneCandidate(manifest.ref, manifest.wave, manifest.options)
            for manifest in manifests.manifests
            if manifest.action is ItemAction.APPLY
            and manifest.hook_policies is None
            and (cluster, *versionless_key(manifest.ref)) not in self.remaining_objects
        ]
        deletion = build_deletion(manifests, candidates, readiness_timeout=readiness_timeout)
        batches = (
            tuple(item.ref for item in step_items(step) if item.action is ItemAction.DELETE)
            for step in deletion.steps
        )
        return Removal(is_deleted=True, steps=tuple(batch for batch in batches if batch))

    def _kept_reason(self, unit: Unit) -> str:
        """Return why the objects of a removed unit are kept; empty if they are deleted."""
        if unit.parent is None or not unit.parent.kind:
            return "no unit deploys it, so it stays until it is deleted by hand"
        parent = self.remaining_units.get(unit.parent)
        if parent is None:
            parent_unit = self.units.get(unit.parent)
            reason = "" if parent_unit is None else self._kept_reason(parent_unit)
            if reason:
                return reason
        elif not parent.policy.prune:
            return f"its parent `{unit.parent}` does not prune"
        if not unit.policy.cascades:
            return "it has no finalizer, or is set to keep its objects"
        return "Flux keeps the objects of a suspended unit" if unit.is_suspended else ""
