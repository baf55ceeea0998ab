"""What a unit has brought and Git no longer has, and what goes along; for verbs that show it."""

from __future__ import annotations

from tidegate.engine.belongings import CONTAINERS
from tidegate.engine.reach.contents import find_losses, told_loss
from tidegate.errors import Place, PlanError
from tidegate.flows.journal import read_journal
from tidegate.flows.looking import body_of, look_at, run_errand
from tidegate.flows.means import stale_of
from tidegate.flows.session import Session
from tidegate.model.objects import Spot, identity
from tidegate.model.plan import Deed, Plan, PlannedUnit, items_of
from tidegate.plan.pruning import Stale, prune_units
from tidegate.world.exchange import Exchange


async def with_prunes(plan: Plan, world: Exchange) -> Plan:
    """The plan with the deletions that a rollout which prunes would add to it."""
    pruning = [unit for unit in plan.units if unit.policy.prunes]
    leaving = [(unit, await _stale(plan, unit, world)) for unit in pruning]
    return prune_units(plan, leaving)


async def find_contents(plan: Plan, session: Session) -> tuple[PlanError, ...]:
    """What the deletions of a plan would take along that is not the unit's, a note for each."""
    notes: list[PlanError] = []
    leaving = {
        (step.cluster, *identity(item.ref))
        for step in plan.steps
        for item in items_of(step)
        if item.deed is Deed.DELETE
    }
    for step in plan.steps:
        going = [item.ref for item in items_of(step) if item.deed is Deed.DELETE]
        holders = [ref for ref in going if ref.kind in CONTAINERS]
        for live in await look_at(session.world, holders, cluster=step.cluster):
            spot, kinds = Spot(step.cluster, live.ref), await session.kinds(step.cluster)
            errand = find_losses(spot, live, kinds, session.craft.owner, step.unit.mark)
            along = await run_errand(errand, session.world)
            others = [ref for ref in along if (step.cluster, *identity(ref)) not in leaving]
            if others:
                problem, where = told_loss(others), Place(str(live.ref))
                notes.append(PlanError("plan.contents", problem, where=where))
    return tuple(notes)


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
