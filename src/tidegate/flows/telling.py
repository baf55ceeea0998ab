"""What a cluster tells of units: Events about them and what they bring, and what pods print."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

import msgspec

from tidegate.dialect.requests import source_of
from tidegate.errors import foreign
from tidegate.flows.entering import Found
from tidegate.flows.evidence import EVENT, Background, collect_evidence, read_logs, told_at
from tidegate.flows.journal import read_unit_journal
from tidegate.flows.lineage import Lineage, is_kind, read_lineage
from tidegate.flows.looking import body_of, look_in
from tidegate.flows.named import NamedObject
from tidegate.flows.session import Session
from tidegate.flows.standing import UnitStanding
from tidegate.model.moment import Ms, parse_moment
from tidegate.model.objects import Json, Spot
from tidegate.model.plan import own_items_of
from tidegate.model.reading import mapping, number, text
from tidegate.model.unit import UnitId
from tidegate.model.verdict import Health
from tidegate.plan.naming import name_generated
from tidegate.report.rollout.discretion import Discretion
from tidegate.report.rollout.evidence import Evidence
from tidegate.report.rollout.failure import MOST_FAILURES
from tidegate.report.told import ContainerLog, EventRow

Body = dict[str, Json]
About = tuple[str, str, str]
"""Kind, namespace and name of whom an Event tells."""
RUNNING = frozenset(
    [
        *("Pod", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"),
        *("ReplicationController", "Job", "CronJob"),
    ]
)
"""Kinds that have pods."""


async def read_events(
    found: Found, session: Session, about: tuple[str, str], home: str
) -> list[EventRow]:
    """Events in the order in which they were told.

    `about`: a kind and a name; of a unit, its source and what it brings are meant as well. Where
    nobody is named, all units and sources of the repository are. `home`: in this namespace alone.
    """
    lineages = await read_lineage(found, session)
    discretion = _discreet(lineages)
    rows: dict[EventRow, None] = {}
    for cluster in session.target.contexts:
        wanted = _about(lineages, cluster, about)
        homes = {place for _, place, _ in wanted} if not home else {home}
        places = ((EVENT, one or "default") for one in sorted(homes))
        for live in await look_in(session.world, places, cluster=cluster):
            body = body_of(live)
            if _fits(body, wanted, about):
                rows[_row(body, discretion)] = None
    return sorted(rows, key=lambda row: (row.at, row.object, row.reason))


def _discreet(lineages: Iterable[Lineage]) -> Discretion:
    discretion = Discretion()
    for one in lineages:
        discretion.learn(one.plan)
    return discretion


def _about(lineages: Iterable[Lineage], cluster: str, about: tuple[str, str]) -> set[About]:
    """Whom Events may tell of that are meant."""
    kind, name = about
    found: set[About] = set()
    for lineage in lineages:
        own = [one for one in lineage.named if one.id.cluster == cluster]
        for one in own:
            is_named = is_kind(one.spot.ref.kind, kind) and one.id.name == name
            if not name or is_named:
                found.add((one.id.kind, one.id.namespace, one.id.name))
            if is_named:
                found |= _belonging(lineage, one)
        for item in (one for items in lineage.objects.values() for one in items):
            if name and item.ref.name == name and is_kind(item.ref.kind, kind):
                found.add((item.ref.kind.name, item.ref.namespace, item.ref.name))
    return found


def _belonging(lineage: Lineage, named: NamedObject) -> set[About]:
    """The source of a unit, and all that it brings."""
    brought = lineage.objects.get(named.id, ())
    found = {(one.ref.kind.name, one.ref.namespace, one.ref.name) for one in brought}
    source = source_of(named.own)
    return found | ({source} if source else set())


def _fits(body: Body, wanted: set[About], about: tuple[str, str]) -> bool:
    """What nobody here brings is told of as well, if it is named: a Pod."""
    told = mapping(body, "involvedObject")
    kind, home, name = text(told, "kind"), text(told, "namespace"), text(told, "name")
    asked, called = about
    is_named = bool(called) and name == called and kind.lower() == asked.lower()
    return (kind, home, name) in wanted or is_named


def _row(body: Body, discretion: Discretion) -> EventRow:
    told = mapping(body, "involvedObject")
    moment = Ms(0)
    with suppress(ValueError):
        moment = parse_moment(told_at(body))
    return EventRow(
        at=moment,
        type=text(body, "type"),
        reason=foreign(text(body, "reason")),
        namespace=text(told, "namespace"),
        object=foreign(f"{text(told, 'kind')}/{text(told, 'name')}"),
        message=foreign(discretion.hide(text(body, "message"))),
        times=max(1, number(body, "count")),
    )


async def explain_standings(
    standings: Sequence[UnitStanding], session: Session
) -> tuple[Evidence, ...]:
    """What is known of the objects of units that are not well, as far as it is told in full."""
    ill = [
        (one.plan, Spot(each.cluster, each.ref))
        for one in standings
        for each in one.objects
        if each.verdict.health not in {Health.HEALTHY, Health.MISSING}
    ]
    if not ill:
        return ()
    plan, known = ill[0][0], session.craft.rules.known
    discretion, behind = Discretion.of(plan), session.behind
    background = Background(plan=plan, catalogue=known, discretion=discretion, behind=behind)
    spots = [spot for _, spot in ill[:MOST_FAILURES]]
    return await collect_evidence(session.world, spots, background)


async def read_unit_logs(
    found: Found, session: Session, unit: UnitId, tail: int
) -> list[ContainerLog]:
    """What the pods have printed of that which failed or waits of a unit, hooks among it."""
    running = await find_running(found, session, unit)
    background = Background(discretion=running.discretion, behind=session.behind)
    return await read_logs(session.world, (*running.hooks, *running.kept), background, tail)


class RunningObjects(msgspec.Struct, frozen=True):
    """What of a unit has pods: hooks, by the names of their last run, and what stays.

    `discretion` knows what must not be said of what they print.
    """

    hooks: tuple[Spot, ...]
    kept: tuple[Spot, ...]
    discretion: Discretion


async def find_running(found: Found, session: Session, unit: UnitId) -> RunningObjects:
    """What of a unit has pods, by Git."""
    lineages = [one for one in await read_lineage(found, session) if unit in one.units]
    spots: list[tuple[Spot, bool]] = []
    for lineage in lineages[:1]:
        journal = (await read_unit_journal(lineage.units[unit], session)).journal
        begun = dict.fromkeys((one.id for one in lineage.plan.units), journal.begun)
        spots += [
            (Spot(step.cluster, item.ref), item.hook is not None)
            for step in name_generated(lineage.plan, begun=begun).steps
            if step.unit == unit
            for item in own_items_of(step)
            if item.ref.kind.name in RUNNING
        ]
    return RunningObjects(
        tuple(spot for spot, is_hook in spots if is_hook),
        tuple(spot for spot, is_hook in spots if not is_hook),
        _discreet(lineages),
    )
