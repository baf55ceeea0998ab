"""What a cluster remembers of a unit, and how that is forgotten."""

from __future__ import annotations

import msgspec

from tidegate.engine.approvals import approval_ref
from tidegate.engine.heartbeat import lease_ref
from tidegate.engine.record import Record
from tidegate.errors import Place
from tidegate.flows.looking import look_at, run_errand
from tidegate.flows.session import Session
from tidegate.model.journal import Journal
from tidegate.model.objects import Live, Ref
from tidegate.model.plan import PlannedUnit
from tidegate.model.unit import Unit
from tidegate.plan.build import plan_unit
from tidegate.world.ask import ask
from tidegate.world.calls import Verb, Write
from tidegate.world.exchange import Exchange
from tidegate.world.facts import Conflict, Missing, is_refusal
from tidegate.world.refusals import refusal_error


class Remembered(msgspec.Struct, frozen=True):
    """The journal of a unit, and the Secrets that hold it; none where nothing is remembered.

    `holder`: who rolls it out, or did when it died.
    """

    unit: PlannedUnit
    journal: Journal
    secrets: tuple[Ref, ...] = ()
    holder: str = ""


async def read_unit_journal(unit: Unit, session: Session) -> Remembered:
    """All that is remembered of a unit in its cluster. Raises ClusterError."""
    return await read_journal(plan_unit(unit), session.world)


async def read_journal(unit: PlannedUnit, world: Exchange) -> Remembered:
    """All that is remembered of a unit. Raises ClusterError."""
    record = Record(unit.id.mark, unit.cluster)
    refused = await run_errand(record.read(world.now), world)
    if refused is not None and is_refusal(refused):
        raise refusal_error(refused, "reading the journal", where=Place(f"unit {unit.id}"))
    return Remembered(unit, record.journal(), record.secrets, record.holder)


async def forget_unit(unit: PlannedUnit, world: Exchange) -> bool:
    """Remove the record of a unit. False: a rollout is at work, and keeps it.

    A holder without a heartbeat is dead. What changes meanwhile is left alone, for somebody else
    needs it.
    """
    remembered = await read_journal(unit, world)
    holder = (lease_ref(remembered.holder),) if remembered.holder else ()
    if await look_at(world, holder, cluster=unit.cluster):
        return False
    leavings = (*remembered.secrets, approval_ref(unit.id.mark))
    for live in await look_at(world, leavings, cluster=unit.cluster):
        (outcome,) = await ask(world, _deletion(live), cluster=unit.cluster)
        if isinstance(outcome, Conflict):
            return False
        if is_refusal(outcome) and not isinstance(outcome, Missing):
            where = Place(f"unit {unit.id}")
            raise refusal_error(outcome, "removing the journal", where=where)
    return True


def _deletion(live: Live) -> Write:
    return Write(verb=Verb.DELETE, ref=live.ref, uid=live.uid, version=live.version)
