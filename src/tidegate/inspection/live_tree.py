"""Tree of the objects that units have deployed, as the cluster reports them.

unit resource    its inventory, or the resources in the status of an Application
release          for a HelmRelease without inventory, the release record that it names
journal          where the unit resource is missing or has no inventory
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tidegate.clusters.journal import read_journal
from tidegate.clusters.session import Session
from tidegate.dialect.controllers.known import CONTROLLERS, SOURCE_KINDS
from tidegate.dialect.helm.record import read_record
from tidegate.dialect.helm.record_owner import manifest_refs
from tidegate.dialect.ownership.inventories import (
    inventory_refs,
    last_release_record,
    targets_other_cluster,
)
from tidegate.errors import UsageError
from tidegate.inspection.lineage import Lineage, flux_tree_name
from tidegate.model.k8s.objects import JsonObject, Kind, Ref, object_body, versionless_key
from tidegate.model.plans.plan import PlannedUnit
from tidegate.model.units.unit import UnitId
from tidegate.model.views.tree import TreeNode


class LiveTreeBuilder(msgspec.Struct, frozen=True):
    """Builder of trees of live objects, with notes on hooks, waves and absence from Git."""

    lineage: Lineage
    session: Session
    compact: bool = False
    """Whether to show units only."""

    async def build(self, name: UnitId) -> TreeNode:
        """Return the tree of a unit and the objects it has deployed.

        Raises UsageError if the cluster has no record of the unit.
        """
        unit_resource = await self._read_unit_resource(name)
        refs = await self._deployed_refs(name, unit_resource)
        if refs is None:
            problem = f"the cluster has no record of `{name}`: it was not rolled out there"
            hint = "run `tidegate tree` without a context to show the tree from Git"
            raise UsageError("usage.unit", problem, hint=hint)
        return await self._build_tree(name, unit_resource, refs, frozenset())

    async def _build_tree(
        self, name: UnitId, unit_resource: JsonObject, refs: Sequence[Ref], above: frozenset[UnitId]
    ) -> TreeNode:
        above = above | {name}
        desired = {
            versionless_key(managed.ref): managed for managed in self.lineage.objects.get(name, ())
        }
        children = []
        for ref in refs:
            known, inner = desired.get(versionless_key(ref)), self._child_unit(ref, name)
            not_in_git = "" if known is not None or name not in self.lineage.units else "not in Git"
            note = known.note if known is not None else not_in_git
            if inner is None and not self.compact:
                children.append(TreeNode(flux_tree_name(ref), note))
            elif inner is not None and inner not in above:
                children.append(await self._child_node(inner, note, above))
        state = "deployed to another cluster" if targets_other_cluster(unit_resource) else ""
        return TreeNode(str(name), state, tuple(children))

    async def _child_node(self, name: UnitId, note: str, above: frozenset[UnitId]) -> TreeNode:
        unit_resource = await self._read_unit_resource(name)
        node = await self._build_tree(
            name, unit_resource, await self._deployed_refs(name, unit_resource) or (), above
        )
        full_note = ", ".join(filter(None, (note, node.note)))
        return TreeNode(node.name, full_note, node.children)

    def _child_unit(self, ref: Ref, above: UnitId) -> UnitId | None:
        controller = CONTROLLERS.get(ref.kind.name)
        if (
            controller is None
            or ref.kind.name in SOURCE_KINDS
            or controller.group != ref.kind.group
        ):
            return None
        return UnitId(ref.kind.name, above.cluster, ref.namespace, ref.name)

    async def _read_unit_resource(self, name: UnitId) -> JsonObject:
        """Return the live unit resource, or an empty body. A plain unit has none."""
        if name.kind not in CONTROLLERS:
            return {}
        kind = Kind(CONTROLLERS[name.kind].group, "v1", name.kind)
        ref = Ref(kind, name.namespace, name.name)
        live = await self.session.reader(name.cluster).get(ref)
        return object_body(live) if live else {}

    async def _deployed_refs(self, name: UnitId, unit_resource: JsonObject) -> Sequence[Ref] | None:
        if targets_other_cluster(unit_resource):
            return ()
        refs = inventory_refs(unit_resource)
        if refs is None and name.kind == "HelmRelease":
            refs = await self._release_refs(unit_resource, name.cluster)
        return refs if refs is not None else await self._journal_refs(name)

    async def _release_refs(self, unit_resource: JsonObject, cluster: str) -> list[Ref] | None:
        """Return the objects of the release that a HelmRelease reports, or None."""
        release = last_release_record(unit_resource)
        if release is None:
            return None
        record, namespace = release
        live = await self.session.reader(cluster).get(record)
        return [*manifest_refs(read_record(object_body(live)), namespace)] if live else None

    async def _journal_refs(self, name: UnitId) -> list[Ref] | None:
        """Return the live objects in the journal of a unit, or None without a journal."""
        unit = self.lineage.units.get(name)
        cluster = name.cluster if unit is None else unit.destination.cluster
        stored = await read_journal(PlannedUnit(id=name, cluster=cluster), self.session.world)
        refs = [ref for ref, entry in stored.journal.entries.items() if not entry.hook]
        # The journal also has objects that were planned but not written.
        live_objects = await self.session.reader(cluster).get_many(sorted(refs))
        return [live.ref for live in live_objects.values()] if stored.secrets else None
