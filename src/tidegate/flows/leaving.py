"""What a unit has brought and Git no longer has, for verbs that only show it."""

from __future__ import annotations

from tidegate.flows.journal import read_journal
from tidegate.flows.looking import body_of, look_at
from tidegate.flows.means import stale_of
from tidegate.model.objects import identity
from tidegate.model.plan import Plan, PlannedUnit, items_of
from tidegate.plan.pruning import Stale, prune_units
from tidegate.world.exchange import Exchange


async def with_prunes(plan: Plan, world: Exchange) -> Plan:
    """The plan with the deletions that a rollout which prunes would add to it."""
    pruning = [unit for unit in plan.units if unit.policy.prunes]
    leaving = [(unit, await _stale(plan, unit, world)) for unit in pruning]
    return prune_units(plan, leaving)


async def _stale(plan: Plan, unit: PlannedUnit, world: Exchange) -> list[Stale]:
    wanted = {
        identity(item.ref)
        for step in plan.steps
        if step.cluster == unit.cluster
        for item in items_of(step)
    }
    entries = (await read_journal(unit, world)).journal.entries
    kept = (ref for ref, entry in entries.items() if not entry.hook)
    left = (ref for ref in kept if identity(ref) not in wanted)
    found = await look_at(world, left, cluster=unit.cluster)
    stale = (stale_of(body_of(live), unit) for live in found)
    return [one for one in stale if one is not None]
