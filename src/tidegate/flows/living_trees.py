"""What units have brought, by what a cluster says, as a tree.

own object       its inventory; of an Application its resources
release          of a HelmRelease without an inventory, the record that it names
journal          where the own object is not there, or says nothing
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tidegate.dialect.helm.belonging import objects_of
from tidegate.dialect.helm.record import read_record
from tidegate.dialect.inventories import goes_elsewhere, inventory_refs, release_of
from tidegate.dialect.masters import MASTERS, SOURCES
from tidegate.errors import WordsError
from tidegate.flows.journal import read_journal
from tidegate.flows.lineage import Lineage, name_of
from tidegate.flows.looking import body_of, look_at
from tidegate.flows.session import Session
from tidegate.model.objects import Json, Kind, Ref, identity
from tidegate.model.plan import PlannedUnit
from tidegate.model.unit import UnitId
from tidegate.report.lineage import TreeNode

Body = dict[str, Json]


class LivingTrees(msgspec.Struct, frozen=True):
    """Draws what a cluster says, with what Git knows of it: hooks, waves, and what it has not."""

    lineage: Lineage
    session: Session
    compact: bool = False
    """Units alone."""

    async def draw(self, name: UnitId) -> TreeNode:
        """A unit, and below it what it has brought. Raises WordsError where nobody knows."""
        own = await self._own(name)
        refs = await self._brought(name, own)
        if refs is None:
            problem = f"the cluster knows nothing of `{name}`: it was not rolled out there"
            hint = "without a context, `tidegate tree` shows what Git says"
            raise WordsError("words.unit", problem, hint=hint)
        return await self._tree(name, own, refs, frozenset())

    async def _tree(
        self, name: UnitId, own: Body, refs: Sequence[Ref], above: frozenset[UnitId]
    ) -> TreeNode:
        above = above | {name}
        wanted = {identity(one.ref): one for one in self.lineage.objects.get(name, ())}
        children = []
        for ref in refs:
            known, inner = wanted.get(identity(ref)), self._unit_of(ref, name)
            stray = "" if known is not None or name not in self.lineage.units else "not in Git"
            note = known.note if known is not None else stray
            if inner is None and not self.compact:
                children.append(TreeNode(name_of(ref), note))
            elif inner is not None and inner not in above:
                children.append(await self._inner(inner, note, above))
        state = "it goes to another cluster" if goes_elsewhere(own) else ""
        return TreeNode(str(name), state, tuple(children))

    async def _inner(self, name: UnitId, note: str, above: frozenset[UnitId]) -> TreeNode:
        own = await self._own(name)
        node = await self._tree(name, own, await self._brought(name, own) or (), above)
        told = ", ".join(filter(None, (note, node.note)))
        return TreeNode(node.name, told, node.children)

    def _unit_of(self, ref: Ref, above: UnitId) -> UnitId | None:
        master = MASTERS.get(ref.kind.name)
        if master is None or ref.kind.name in SOURCES or master.group != ref.kind.group:
            return None
        return UnitId(ref.kind.name, above.cluster, ref.namespace, ref.name)

    async def _own(self, name: UnitId) -> Body:
        """The own object as it lives; nothing where it does not."""
        kind = Kind(MASTERS[name.kind].group, "v1", name.kind)
        refs = (Ref(kind, name.namespace, name.name),)
        lives = await look_at(self.session.world, refs, cluster=name.cluster)
        return body_of(lives[0]) if lives else {}

    async def _brought(self, name: UnitId, own: Body) -> Sequence[Ref] | None:
        if goes_elsewhere(own):
            return ()
        found = inventory_refs(own)
        if found is None and name.kind == "HelmRelease":
            found = await self._released(own, name.cluster)
        return found if found is not None else await self._remembered(name)

    async def _released(self, own: Body, cluster: str) -> list[Ref] | None:
        """The objects of the release that a HelmRelease says it has made."""
        release = release_of(own)
        if release is None:
            return None
        record, home = release
        lives = await look_at(self.session.world, (record,), cluster=cluster)
        return [*objects_of(read_record(body_of(lives[0])), home)] if lives else None

    async def _remembered(self, name: UnitId) -> list[Ref] | None:
        """What the journal of a unit has, where there is one."""
        unit = self.lineage.units.get(name)
        cluster = name.cluster if unit is None else unit.destination.cluster
        found = await read_journal(PlannedUnit(id=name, cluster=cluster), self.session.world)
        kept = [ref for ref, entry in found.journal.entries.items() if not entry.hook]
        # What was about to be written is in a journal, too.
        lives = await look_at(self.session.world, sorted(kept), cluster=cluster)
        return [one.ref for one in lives] if found.secrets else None
