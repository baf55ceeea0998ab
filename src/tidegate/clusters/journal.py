"""The journal of a unit in its cluster: reading, deleting and rebuilding it."""

from __future__ import annotations

import msgspec

from tidegate.clusters.reader import ClusterReader, run_procedure
from tidegate.clusters.session import Session
from tidegate.dialect.ownership.live import read_live_ownership
from tidegate.engine.cluster.contents import TRANSIENT_RESOURCES
from tidegate.engine.records.heartbeat import lease_ref
from tidegate.engine.records.markers import approval_ref, suspension_ref
from tidegate.engine.records.record import UnitRecord
from tidegate.engine.records.storage import PAGE_SIZE, UNIT_LABEL, label_value, read_head
from tidegate.errors import ClusterError, Location
from tidegate.model.k8s.kinds import SECRET
from tidegate.model.k8s.objects import Kind, LiveObject, Ref, object_body
from tidegate.model.plans.plan import PlannedUnit
from tidegate.model.rollouts.journal import Journal, UnitOrigin
from tidegate.model.units.unit import Unit
from tidegate.plan.build.build import plan_unit
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.errors import raise_for_error
from tidegate.world.messages import Conflict, NotFound
from tidegate.world.one_shot import send_requests
from tidegate.world.requests import Selection, Verb, View, Write


class StoredJournal(msgspec.Struct, frozen=True):
    """The journal of a unit and the Secrets that store it; no Secrets if there is none."""

    unit: PlannedUnit
    journal: Journal
    secrets: tuple[Ref, ...] = ()
    holder: str = ""
    """The process that rolls the unit out, or did when it was killed."""


class RebuiltJournal(msgspec.Struct, frozen=True):
    """The objects of a rebuilt journal."""

    unit: PlannedUnit
    objects: tuple[Ref, ...]
    unlisted: tuple[str, ...] = ()
    """Kinds that could not be listed."""


async def read_unit_journal(unit: Unit, session: Session) -> StoredJournal:
    """Return the journal of a unit in its cluster. Raises ClusterError."""
    return await read_journal(plan_unit(unit), session.world)


async def read_journal(unit: PlannedUnit, world: Dispatcher) -> StoredJournal:
    """Return the journal of a planned unit. Raises ClusterError."""
    record = UnitRecord(unit.id.tracking_id, unit.cluster)
    outcome = await run_procedure(record.read(world.now), world)
    raise_for_error(outcome, "reading the journal", Location(f"unit {unit.id}"))
    return StoredJournal(unit, record.to_journal(), record.secret_refs, record.holder)


async def delete_record(unit: PlannedUnit, world: Dispatcher) -> bool:
    """Delete the record of a unit. False: a rollout is running and needs it.

    A holder without a heartbeat is dead. A Secret that changes in between is kept: another
    process uses it.
    """
    stored, reader = await read_journal(unit, world), ClusterReader(world, unit.cluster)
    if stored.holder and await reader.get(lease_ref(stored.holder)):
        return False
    tracking_id = unit.id.tracking_id
    refs = (*stored.secrets, approval_ref(tracking_id), suspension_ref(tracking_id))
    for live in (await reader.get_many(refs)).values():
        (outcome,) = await send_requests(world, _delete_request(live), cluster=unit.cluster)
        if isinstance(outcome, Conflict):
            return False
        location = Location(f"unit {unit.id}")
        raise_for_error(outcome, "deleting the journal", location, ignored=NotFound)
    return True


async def rebuild_unit_journal(unit: Unit, session: Session) -> RebuiltJournal:
    """Rebuild the journal of a unit that is not planned."""
    return await rebuild_journal(plan_unit(unit), session)


async def rebuild_journal(unit: PlannedUnit, session: Session) -> RebuiltJournal:
    """Write the journal again, from the live objects that the unit owns. Raises ClusterError.

    Which hooks ran and which gates opened is stored nowhere else, and is lost. The journal of a
    running rollout is not touched.
    """
    world, record = session.world, UnitRecord(unit.id.tracking_id, unit.cluster)
    location = Location(f"unit {unit.id}")
    old = await _list_record_secrets(record, world)
    await _reject_active_rollout(old, unit, world)
    refs, unlisted = await _find_owned_objects(unit, session)
    for live in old:
        (outcome,) = await send_requests(world, _delete_request(live), cluster=unit.cluster)
        raise_for_error(outcome, "deleting the journal", location, ignored=NotFound)
    if unit.parent is not None:
        record.origin = UnitOrigin.from_policy(unit.id, unit.parent, unit.policy)
    record.register_objects("", refs, digest="", source=unit.source, now=world.now())
    write_outcome = await run_procedure(record.write(world.now), world)
    raise_for_error(write_outcome, "writing the journal", location)
    return RebuiltJournal(unit, refs, unlisted)


async def _list_record_secrets(record: UnitRecord, world: Dispatcher) -> list[LiveObject]:
    """Return the Secrets of a record, complete or not: its head, and all parts by name."""
    label = f"{UNIT_LABEL}={label_value(record.unit)}"
    selection = Selection(SECRET, record.ref.namespace, label_selector=label)
    secrets = await ClusterReader(world, record.cluster).list_all(
        (selection,), "reading the journal"
    )
    return [live for live in secrets if f"{live.ref.name}.".startswith(f"{record.ref.name}.")]


async def _reject_active_rollout(
    stored: list[LiveObject], unit: PlannedUnit, world: Dispatcher
) -> None:
    for live in stored:
        try:
            holder = read_head(live).holder
        except ClusterError:
            continue  # the damaged record to be rebuilt
        if holder and await ClusterReader(world, unit.cluster).get(lease_ref(holder)):
            problem = f"`{holder}` is rolling out the unit and uses its journal"
            hint = "wait until the rollout has finished, or stop it"
            raise ClusterError(
                "journal.held", problem, location=Location(f"unit {unit.id}"), hint=hint
            )


async def _find_owned_objects(
    unit: PlannedUnit, session: Session
) -> tuple[tuple[Ref, ...], tuple[str, ...]]:
    """Return all objects with the unit's ownership marker, and the kinds that cannot be listed."""
    kinds: dict[tuple[str, str], Kind] = {}
    for served in await session.kinds(unit.cluster):
        if "list" in served.verbs and served.plural not in TRANSIENT_RESOURCES:
            kinds.setdefault((served.kind.group, served.kind.name), served.kind)
    owned: set[Ref] = set()
    unlisted: list[str] = []
    for kind in kinds.values():
        selection = Selection(kind, view=View.METADATA)
        listing = await session.reader(unit.cluster).list_each((selection,), page_size=PAGE_SIZE)
        unlisted += [str(kind)] if listing.errors else []
        ownerships = (
            (live.ref, read_live_ownership(object_body(live), unit)) for live in listing.items
        )
        owned.update(
            ref for ref, ownership in ownerships if ownership is not None and not ownership.is_hook
        )
    return tuple(sorted(owned)), tuple(unlisted)


def _delete_request(live: LiveObject) -> Write:
    return Write(
        verb=Verb.DELETE, ref=live.ref, uid=live.uid, resource_version=live.resource_version
    )
