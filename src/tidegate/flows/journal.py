"""What a cluster remembers of a unit, how that is forgotten, and how it is made anew."""

from __future__ import annotations

import msgspec

from tidegate.dialect.living import read_living
from tidegate.engine.approvals import approval_ref
from tidegate.engine.heartbeat import lease_ref
from tidegate.engine.reach.contents import PASSING_KINDS
from tidegate.engine.record import Record
from tidegate.engine.stored import PAGE, SECRET, UNIT, label_value, read_head
from tidegate.engine.suspensions import suspension_ref
from tidegate.errors import ClusterError, Place
from tidegate.flows.looking import body_of, look_at, run_errand
from tidegate.flows.session import Session
from tidegate.model.journal import Journal, Kin
from tidegate.model.objects import Kind, Live, Ref
from tidegate.model.plan import PlannedUnit
from tidegate.model.unit import Unit
from tidegate.plan.build import plan_unit
from tidegate.world.ask import ask
from tidegate.world.calls import List, Selection, Verb, View, Write
from tidegate.world.exchange import Exchange
from tidegate.world.facts import Conflict, Listed, Missing, is_refusal
from tidegate.world.refusals import refusal_error


class Remembered(msgspec.Struct, frozen=True):
    """The journal of a unit, and the Secrets that hold it; none where nothing is remembered.

    `holder`: who rolls it out, or did when it died.
    """

    unit: PlannedUnit
    journal: Journal
    secrets: tuple[Ref, ...] = ()
    holder: str = ""


class Rebuilt(msgspec.Struct, frozen=True):
    """The objects that a journal was made of, and the kinds that could not be looked at."""

    unit: PlannedUnit
    objects: tuple[Ref, ...]
    unseen: tuple[str, ...] = ()


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
    mark = unit.id.mark
    leavings = (*remembered.secrets, approval_ref(mark), suspension_ref(mark))
    for live in await look_at(world, leavings, cluster=unit.cluster):
        (outcome,) = await ask(world, _deletion(live), cluster=unit.cluster)
        if isinstance(outcome, Conflict):
            return False
        if is_refusal(outcome) and not isinstance(outcome, Missing):
            where = Place(f"unit {unit.id}")
            raise refusal_error(outcome, "removing the journal", where=where)
    return True


async def rebuild_unit_journal(unit: Unit, session: Session) -> Rebuilt:
    """The same as below for a unit that is not planned."""
    return await rebuild_journal(plan_unit(unit), session)


async def rebuild_journal(unit: PlannedUnit, session: Session) -> Rebuilt:
    """Write the journal anew, from what bears the unit's mark. Raises ClusterError.

    Which hooks ran and which gates opened is nowhere else to be read, and is forgotten. A rollout
    that is at work keeps its journal.
    """
    world, record = session.world, Record(unit.id.mark, unit.cluster)
    where = Place(f"unit {unit.id}")
    old = await _stored(record, world)
    await _refuse_held(old, unit, world)
    refs, unseen = await _find_marked(unit, session)
    for live in old:
        (outcome,) = await ask(world, _deletion(live), cluster=unit.cluster)
        if is_refusal(outcome) and not isinstance(outcome, Missing):
            raise refusal_error(outcome, "removing the journal", where=where)
    if unit.parent is not None:
        record.kin = Kin.of(unit.id, unit.parent, unit.policy)
    record.expect("", refs, text="", source=unit.source, now=world.now())
    refused = await run_errand(record.write(world.now), world)
    if refused is not None and is_refusal(refused):
        raise refusal_error(refused, "writing the journal", where=where)
    return Rebuilt(unit, refs, unseen)


async def _stored(record: Record, world: Exchange) -> list[Live]:
    """The Secrets of a record, whole or not: the head, and whatever is called like a part."""
    label = f"{UNIT}={label_value(record.unit)}"
    selection = Selection(SECRET, record.ref.namespace, labels=label)
    (page,) = await ask(world, List(selection), cluster=record.cluster)
    if is_refusal(page):
        raise refusal_error(page, "reading the journal", where=Place(str(record.ref)))
    name, items = record.ref.name, page.items if isinstance(page, Listed) else ()
    return [one for one in items if f"{one.ref.name}.".startswith(f"{name}.")]


async def _refuse_held(stored: list[Live], unit: PlannedUnit, world: Exchange) -> None:
    for live in stored:
        try:
            holder = read_head(live).holder
        except ClusterError:
            continue  # it is what is to be mended
        if holder and await look_at(world, (lease_ref(holder),), cluster=unit.cluster):
            problem = f"`{holder}` rolls the unit out, and keeps its journal"
            hint = "wait until it has ended, or stop it"
            raise ClusterError("journal.held", problem, where=Place(f"unit {unit.id}"), hint=hint)


async def _find_marked(
    unit: PlannedUnit, session: Session
) -> tuple[tuple[Ref, ...], tuple[str, ...]]:
    """All objects that say they are the unit's, and the kinds that nobody let us look at."""
    kinds: dict[tuple[str, str], Kind] = {}
    for one in await session.kinds(unit.cluster):
        if "list" in one.verbs and one.plural not in PASSING_KINDS:
            kinds.setdefault((one.kind.group, one.kind.name), one.kind)
    found: set[Ref] = set()
    unseen: list[str] = []
    for kind in kinds.values():
        resume = ""
        while True:
            selection = Selection(kind, view=View.METADATA)
            (page,) = await ask(session.world, List(selection, PAGE, resume), cluster=unit.cluster)
            if not isinstance(page, Listed):
                unseen.append(str(kind))
                break
            livings = ((live.ref, read_living(body_of(live), unit)) for live in page.items)
            found.update(ref for ref, one in livings if one is not None and not one.is_hook)
            resume = page.resume
            if not resume:
                break
    return tuple(sorted(found)), tuple(unseen)


def _deletion(live: Live) -> Write:
    return Write(verb=Verb.DELETE, ref=live.ref, uid=live.uid, version=live.version)
