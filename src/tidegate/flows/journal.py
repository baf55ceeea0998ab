"""What a cluster remembers of a unit, and how that is forgotten."""

from __future__ import annotations

import msgspec

from tidegate.engine.journal import NAMESPACE, Keeper, resource_name
from tidegate.engine.lease import LEASE
from tidegate.engine.reach.errands import Errand, Pause
from tidegate.errors import Place
from tidegate.flows.looking import body_of, look_at
from tidegate.flows.session import Session
from tidegate.model.journal import Journal
from tidegate.model.objects import Live, Ref
from tidegate.model.plan import PlannedUnit
from tidegate.model.reading import text
from tidegate.model.unit import Unit
from tidegate.plan.build import plan_unit
from tidegate.world.ask import ask
from tidegate.world.calls import Verb, Write
from tidegate.world.exchange import Exchange
from tidegate.world.facts import Conflict, Missing, Outcome, is_refusal
from tidegate.world.refusals import refusal_error


class Remembered(msgspec.Struct, frozen=True):
    """The journal of a unit, and the Secrets that hold it; none where nothing is remembered."""

    unit: PlannedUnit
    journal: Journal
    secrets: tuple[Ref, ...] = ()


async def read_unit_journal(unit: Unit, session: Session) -> Remembered:
    """All that is remembered of a unit in its cluster. Raises ClusterError."""
    return await read_journal(plan_unit(unit), session.world)


async def read_journal(unit: PlannedUnit, world: Exchange) -> Remembered:
    """All that is remembered of a unit. Raises ClusterError."""
    keeper = Keeper(str(unit.id), unit.cluster)
    refused = await _run(keeper.load(), world, unit.cluster)
    if refused is not None and is_refusal(refused):
        raise refusal_error(refused, "reading the journal", where=Place(f"unit {unit.id}"))
    return Remembered(unit, keeper.journal(), keeper.secrets)


async def forget_unit(unit: PlannedUnit, world: Exchange) -> bool:
    """Remove the journal and the lease of a unit. False: a rollout is at work, and keeps them.

    What changes meanwhile is left alone, for somebody else needs it.
    """
    lease = Ref(LEASE, NAMESPACE, resource_name(str(unit.id)))
    secrets = (await read_journal(unit, world)).secrets
    found = await look_at(world, (*secrets, lease), cluster=unit.cluster)
    if any(text(body_of(live), "spec", "holderIdentity") for live in found if live.ref == lease):
        return False
    deletions = (_deletion(live) for live in found)
    outcomes = await ask(world, *deletions, cluster=unit.cluster)
    for outcome in outcomes:
        if is_refusal(outcome) and not isinstance(outcome, Missing | Conflict):
            where = Place(f"unit {unit.id}")
            raise refusal_error(outcome, "removing the journal", where=where)
    return True


def _deletion(live: Live) -> Write:
    return Write(verb=Verb.DELETE, ref=live.ref, uid=live.uid, version=live.version)


async def _run(errand: Errand[Outcome | None], world: Exchange, cluster: str) -> Outcome | None:
    """Run one errand alone."""
    party = world.party()
    try:
        wish = next(errand)
        while True:
            if isinstance(wish, Pause):
                await party.wait(wish.until)
                wish = errand.send(())
            else:
                requests = (one.request for one in wish)
                wish = errand.send(await ask(world, *requests, cluster=cluster))
    except StopIteration as end:
        came: Outcome | None = end.value
        return came
