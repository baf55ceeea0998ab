"""Releases that units were before: another name, another namespace, or other records.

helm-controller uninstalls what a HelmRelease was before it installs what it is now. Here that is a
unit of its own, which ends behind whatever its successor waits for, and before that begins:

    dependencies ──▶ former release ends ──▶ the release is installed ──▶ what waits for it

It is known by its records, which say whose they are; of one that Flux has made, by what the living
HelmRelease says of itself. So nothing is lost with a kill: while a record is there, the release is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from msgspec import structs

from tidegate.dialect.helm.belonging import Former, former_of, is_ended, revision_of
from tidegate.dialect.helm.record import OWNED, SECRET
from tidegate.errors import Place
from tidegate.flows.ended_releases import ending_policy, plan_end
from tidegate.flows.left_releases import other_release, read_own
from tidegate.flows.locked_releases import find_locks
from tidegate.flows.looking import body_of
from tidegate.flows.orphans import with_orphans
from tidegate.flows.planning import Planned
from tidegate.flows.session import Session
from tidegate.model.finding import Finding, Severity
from tidegate.model.ledger import ReleaseTerms
from tidegate.model.objects import Json, Live
from tidegate.model.plan import Because, Edge, Fragment, Plan, PlannedUnit
from tidegate.model.reading import mapping, text
from tidegate.model.unit import Destination, Unit, UnitId
from tidegate.world.ask import ask
from tidegate.world.calls import List, Selection, View
from tidegate.world.facts import Forbidden, Listed, is_refusal
from tidegate.world.refusals import refusal_error

Body = dict[str, Json]
PAGE = 500


async def with_ends(planned: Planned, session: Session) -> Planned:
    """The plan with the ends of all that Git has no more: units, and what releases were before."""
    return await with_formers(await with_orphans(planned, session), session)


async def with_formers(planned: Planned, session: Session) -> Planned:
    """The plan with the ends of what its releases were before."""
    released = [unit for unit in planned.plan.units if unit.policy.release is not None]
    plan, findings = planned.plan, list(planned.findings)
    leaving, formers = list(planned.leaving), dict[UnitId, UnitId]()
    for cluster in dict.fromkeys(unit.cluster for unit in released):
        mine = [unit for unit in released if unit.cluster == cluster]
        records = await _list("", cluster, session)
        if records is None:
            homes = _homes(mine)
            pages = [await _list(home, cluster, session) for home in homes]
            records = [one for page in pages for one in page or ()]
            findings.append(_half_seen(homes, cluster))
        findings += find_locks(mine, records)
        owns = await read_own((unit.id for unit in mine), session)
        for unit, terms in _former(mine, records, owns):
            end = await plan_end(_ending(unit, terms), unit.id, session)
            plan = _before(plan, end, unit.id)
            leaving += end.units
            formers[end.units[0].id] = unit.id
            findings.append(_told(unit, terms))
    return structs.replace(
        planned, plan=plan, findings=tuple(findings), leaving=tuple(leaving), formers=formers
    )


def _homes(units: Iterable[PlannedUnit]) -> list[str]:
    """The namespaces of releases: who may not see the records of all sees those of its own."""
    found = {
        home
        for unit in units
        if (terms := unit.policy.release) is not None
        for home in (terms.storage, terms.namespace)
    }
    return sorted(found)


async def _list(home: str, cluster: str, session: Session) -> list[Live] | None:
    selection = Selection(SECRET, home, labels=OWNED, view=View.METADATA)
    found: list[Live] = []
    resume = ""
    while True:
        (page,) = await ask(session.world, List(selection, PAGE, resume), cluster=cluster)
        if isinstance(page, Forbidden):
            return None
        if is_refusal(page):
            where = Place(f"Secrets of {home}" if home else "Secrets of all namespaces")
            raise refusal_error(page, "reading the records of releases", where=where)
        found += page.items if isinstance(page, Listed) else ()
        resume = page.resume if isinstance(page, Listed) else ""
        if not resume:
            return found


def _standing(records: Iterable[Live]) -> dict[tuple[str, str], Body]:
    """By the place of its records and its name, the newest record of each release that stands."""
    bodies = [body_of(one) for one in records]
    found: dict[tuple[str, str], Body] = {}
    for body in sorted(bodies, key=revision_of):
        metadata = mapping(body, "metadata")
        found[text(metadata, "namespace"), text(metadata, "labels", "name")] = body
    return {place: body for place, body in found.items() if not is_ended(body)}


def _former(
    units: Iterable[PlannedUnit], records: Iterable[Live], owns: Mapping[UnitId, Body]
) -> Iterator[tuple[PlannedUnit, ReleaseTerms]]:
    """By unit, the releases that stand and are not what it is now, in the order of their names.

    Records of ours say whose they are; of those that Flux has made, own objects say it. Of another
    chart it is known since the chart was rendered.
    """
    standing = _standing(records)
    told = (former_of(body) for body in standing.values())
    by_mark = defaultdict[str, list[Former]](list)
    for one in sorted(one for one in told if one is not None):
        by_mark[one.mark].append(one)
    for unit in units:
        terms = unit.policy.release
        if terms is None:
            continue
        before = [
            structs.replace(terms, storage=one.storage, name=one.name, namespace=one.namespace)
            for one in by_mark[unit.id.mark]
        ]
        said = other_release(owns[unit.id], terms) if unit.id in owns else None
        before += [said] if said and (said.storage, said.name) in standing else []
        now = (terms.storage, terms.name, terms.namespace)
        others = {(one.storage, one.name, one.namespace): one for one in before}
        yield from ((unit, one) for place, one in others.items() if place != now)
        if terms.former_chart:
            yield unit, structs.replace(terms, chart=terms.former_chart)


def _ending(unit: PlannedUnit, terms: ReleaseTerms) -> Unit:
    """A unit that no object of a cluster can be called like."""
    name = f"{unit.id.name}@{terms.storage}.{terms.namespace}.{terms.name}"
    own = structs.replace(unit.id, name=name)
    policy = structs.replace(
        ending_policy(terms), identity=unit.policy.identity, farewell=unit.policy.farewell
    )
    return Unit(id=own, destination=Destination(unit.cluster, terms.namespace), policy=policy)


def _before(plan: Plan, end: Plan, unit: UnitId) -> Plan:
    """The end comes behind whatever the unit waits for, and the unit behind the end."""
    own = {step.id for step in plan.steps if step.unit == unit}
    inner = {edge.after for edge in plan.edges if edge.before in own}
    heads = {name for name in own if name not in inner}
    first, last = end.steps[0].id, end.steps[-1].id
    waits = (edge for edge in plan.edges if edge.after in heads)
    edges = [*plan.edges, *end.edges]
    edges += [structs.replace(edge, after=first) for edge in waits]
    edges += [Edge(last, name, Because.STAGE) for name in sorted(heads)]
    at = next((at for at, step in enumerate(plan.steps) if step.unit == unit), len(plan.steps))
    return Plan.of(
        Fragment(
            units=(*plan.units, *end.units),
            steps=(*plan.steps[:at], *end.steps, *plan.steps[at:]),
            edges=tuple(dict.fromkeys(edges)),
            slots=plan.slots,
        )
    )


def _half_seen(homes: Iterable[str], cluster: str) -> Finding:
    where = f" of cluster `{cluster}`" if cluster else ""
    return Finding(
        code="flux.release-unseen",
        severity=Severity.NOTE,
        sentence="what releases were before is sought in "
        + ", ".join(f"`{one}`" for one in homes)
        + f"{where} alone: Secrets of all namespaces may not be listed",
        why="a release that had its records elsewhere would not be uninstalled",
        fix="allow listing Secrets, or uninstall a release that has moved by hand",
    )


def _told(unit: PlannedUnit, before: ReleaseTerms) -> Finding:
    now = unit.policy.release or before
    if now.former_chart == before.chart:
        return _other_chart(unit, now)
    return Finding(
        code="flux.release-moved",
        severity=Severity.NOTE,
        sentence=f"`{unit.id}` was the release `{before.namespace}/{before.name}` with its records"
        f" in `{before.storage}`, and is `{now.namespace}/{now.name}` in `{now.storage}` now: the"
        " former one is uninstalled, and the new one installed",
        why="Helm knows a release by its name and namespaces, and helm-controller does the same",
    )


def _other_chart(unit: PlannedUnit, now: ReleaseTerms) -> Finding:
    return Finding(
        code="flux.release-moved",
        severity=Severity.NOTE,
        sentence=f"`{unit.id}` was a release of the chart `{now.former_chart}`, and is one of"
        f" `{now.chart}` now: the former one is uninstalled, and the new one installed",
        why="helm-controller takes a chart of another name for another release",
        fix="`upgrade.chartNameChangeStrategy: InPlaceUpdate` upgrades it where it is",
    )
