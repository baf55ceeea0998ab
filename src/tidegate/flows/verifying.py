"""Whether the order of a rollout was kept, by its record and by the cluster it went to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from tidegate.dialect.units import is_own_kind
from tidegate.flows.entering import Found, refuse_unnamed_clusters
from tidegate.flows.journal import read_journal
from tidegate.flows.looking import body_of, look_at
from tidegate.flows.planning import make_plan
from tidegate.flows.session import Session
from tidegate.flows.status import read_status
from tidegate.flows.units import unit_rows
from tidegate.health.since import last_write, made_by, moment_in, ready_since
from tidegate.model.finding import Finding
from tidegate.model.moment import Ms
from tidegate.model.objects import Live, Spot, identity
from tidegate.model.plan import Plan
from tidegate.model.proof import OrderPair, PairState, Sighting
from tidegate.model.run import RunHead, RunObject, RunRecord, RunStep
from tidegate.model.semantics import TIDEGATE
from tidegate.model.unit import UnitId
from tidegate.plan.proof import is_writing, prove
from tidegate.plan.seen_order import WRITTEN, Lookout, SeenOrder
from tidegate.plan.told_order import ToldTimes, tell_steps
from tidegate.report.proof import OrderProof, UnitProof

WORST_FIRST = (PairState.BROKEN, PairState.UNPROVEN, PairState.KEPT, PairState.IDLE)


class _Basis(msgspec.Struct, frozen=True):
    """What is to be proven, and what is known besides the cluster.

    `begun`: by unit, when the rollout began that is looked at. `synced`: units that are as Git
    wants them, of those that were compared.
    """

    head: RunHead
    told: ToldTimes | None = None
    begun: Mapping[UnitId, Ms] = msgspec.field(default_factory=dict)
    synced: Mapping[UnitId, bool] = msgspec.field(default_factory=dict)


async def verify_found(
    session: Session, found: Found, run: RunRecord | None, since: Ms | None
) -> tuple[OrderProof, tuple[Finding, ...]]:
    """Prove the order of what is pointed at, or of its record; units are compared with Git.

    Without a record, all that was written `since` a moment counts, or since the last rollout of
    each unit, as the cluster remembers it.
    """
    synced: dict[UnitId, bool] = {}
    for one in await read_status(found.one, session):
        if one.unit is not None:
            synced[one.unit] = synced.get(one.unit, True) and one.is_synced
    if run is not None:
        return await _verify(session, _of_run(run, synced)), found.findings
    planned = await make_plan(found.one, session, rules=TIDEGATE)
    waves = {row.unit.id: row.wave for row in unit_rows(found.families)}
    head = RunHead.of(planned.plan, waves)
    begun = await _begun(planned.plan, session, since)
    return await _verify(session, _Basis(head, None, begun, synced)), found.findings


async def verify_run(session: Session, run: RunRecord) -> OrderProof:
    """Prove the order that a record tells, and ask the cluster as well."""
    refuse_unnamed_clusters((step.cluster for step in run.head.steps), session)
    return await _verify(session, _of_run(run, {}))


def verify_record(run: RunRecord) -> OrderProof:
    """Prove it by the record alone."""
    return _proof(_of_run(run, {}), None, ())


def _of_run(run: RunRecord, synced: Mapping[UnitId, bool]) -> _Basis:
    began = min((event.at for event in run.events), default=run.head.at)
    begun = dict.fromkeys((one.id for one in run.head.units), began)
    return _Basis(run.head, tell_steps(run.head, run.events), begun, synced)


async def _begun(plan: Plan, session: Session, since: Ms | None) -> dict[UnitId, Ms]:
    if since is not None:
        return dict.fromkeys((unit.id for unit in plan.units), since)
    found = {unit.id: await read_journal(unit, session.world) for unit in plan.units}
    return {unit: one.journal.begun for unit, one in found.items() if one.journal.begun}


async def _verify(session: Session, basis: _Basis) -> OrderProof:
    sightings = await _sight(basis.head, session)
    lookout = Lookout(
        sightings=sightings,
        begun=basis.begun.get,
        passed=None if basis.told is None else basis.told.passed,
        is_own=lambda one: is_own_kind(one.ref.kind),
    )
    missing = tuple(
        Spot(step.cluster, one.ref)
        for step in basis.head.steps
        if basis.told is None or step.id in basis.told.passed
        for one in step.objects
        if _stays(one) and Spot(step.cluster, one.ref) not in sightings
    )
    return _proof(basis, SeenOrder(basis.head, lookout), missing)


def _stays(one: RunObject) -> bool:
    """Whether it should be there; an object that says what a unit is may not be served."""
    return one.deed in WRITTEN and not one.hook and not is_own_kind(one.ref.kind)


async def _sight(head: RunHead, session: Session) -> dict[Spot, Sighting]:
    managers = {unit.id: unit.manager for unit in head.units}
    wanted: dict[str, dict[tuple[str, ...], tuple[Spot, str]]] = {}
    for step in head.steps:
        for one in step.objects:
            spot = Spot(step.cluster, one.ref)
            known = wanted.setdefault(step.cluster, {})
            known.setdefault(identity(one.ref), (spot, managers.get(step.unit, "")))
    found: dict[Spot, Sighting] = {}
    for cluster, named in wanted.items():
        lives = await look_at(
            session.world, [spot.ref for spot, _ in named.values()], cluster=cluster
        )
        for live in lives:
            spot, manager = named[identity(live.ref)]
            found |= _sighting(live, spot, manager)
    return found


def _sighting(live: Live, spot: Spot, manager: str) -> dict[Spot, Sighting]:
    body = body_of(live)
    made, ready = moment_in(body, "metadata", "creationTimestamp"), ready_since(body)
    if made is None:
        return {}
    at, is_final = (ready.at, ready.is_final) if ready else (None, False)
    written = last_write(body, manager) if manager else None
    return {spot: Sighting(made, made_by(body), written, at, is_final)}


def _proof(basis: _Basis, seen: SeenOrder | None, missing: tuple[Spot, ...]) -> OrderProof:
    pairs = prove(basis.head, basis.told, seen)
    units = tuple(_units(basis, seen, pairs))
    return OrderProof(basis.head, pairs, units, missing, is_recorded=basis.told is not None)


def _units(
    basis: _Basis, seen: SeenOrder | None, pairs: Iterable[OrderPair]
) -> Iterable[UnitProof]:
    """Each unit that writes something, by wave as far as it has one, in the order of the plan."""
    steps: dict[UnitId, list[RunStep]] = {}
    for step in filter(is_writing, basis.head.steps):
        steps.setdefault(step.unit, []).append(step)
    owner = {step.id: step.unit for step in basis.head.steps}
    states: dict[UnitId, set[PairState]] = {}
    for pair in pairs:
        states.setdefault(owner[pair.after], set()).add(pair.state)
    units = {unit.id: unit for unit in basis.head.units}
    for name, own in steps.items():
        began, ready = _times(basis.told, own) if basis.told else _seen_times(seen, own)
        known = states.get(name, set())
        order = next((one for one in WORST_FIRST if one in known), None)
        yield UnitProof(
            name,
            units[name].wave,
            basis.synced.get(name),
            began,
            ready,
            order,
        )


def _times(told: ToldTimes, steps: list[RunStep]) -> tuple[Ms | None, Ms | None]:
    began = [told.begun[one.id] for one in steps if one.id in told.begun]
    passed = [told.passed.get(one.id) for one in steps]
    ends = [at for at in passed if at is not None]
    return min(began, default=None), max(ends) if len(ends) == len(passed) else None


def _seen_times(seen: SeenOrder | None, steps: list[RunStep]) -> tuple[Ms | None, Ms | None]:
    if seen is None:
        return None, None
    firsts = [one.at for one in map(seen.first_write, steps) if one]
    lasts = [one.at for one in (seen.ready(step.id) for step in steps) if one]
    return min(firsts, default=None), max(lasts, default=None)
