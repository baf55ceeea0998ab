"""Units that are no longer in Git though somebody who brought them is: what they have brought.

It goes where whoever brought them prunes, and they say that it goes with them: their own objects
where these still live, else what is remembered of them. Else it stays, and that is told.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

import msgspec
from msgspec import structs
from msgspec.structs import replace

from tidegate.dialect.argo.application import cascade_of
from tidegate.dialect.argo.waves import live_wave
from tidegate.dialect.semantics import KSTATUS
from tidegate.dialect.tracking import SET
from tidegate.engine.stored import NAMESPACE, list_heads, read_head
from tidegate.errors import ClusterError
from tidegate.flows.ended_releases import ending_policy, read_end
from tidegate.flows.journal import read_journal
from tidegate.flows.left_releases import find_left, own_ends
from tidegate.flows.looking import body_of, look_at, run_errand
from tidegate.flows.means import ending_of
from tidegate.flows.planning import Planned
from tidegate.flows.session import Session
from tidegate.flows.suspended import suspended_among
from tidegate.health.budget import budget
from tidegate.model.finding import Finding, Severity
from tidegate.model.journal import Kin
from tidegate.model.objects import Kind, Propagation, Ref, identity
from tidegate.model.plan import Because, Edge, Fragment, Plan, PlannedUnit, Step, items_of
from tidegate.model.policy import Order, Policy, Tracking
from tidegate.model.unit import Destination, Unit, UnitId
from tidegate.plan.build import plan_unit
from tidegate.plan.cycles import put_in_order
from tidegate.plan.deletion import build_deletion, with_own

MOST_NAMED = 3
OF_FLUX = ("Kustomization", "HelmRelease")
APPLICATION = Kind("argoproj.io", "v1alpha1", "Application")
ARGO = Policy(tracking=Tracking.ARGO, manager="argocd-controller")
POLICIES = {"Application": ARGO, SET: Policy(order=Order.NONE)}
FLUX = Policy(tracking=Tracking.FLUX, rules=KSTATUS, order=Order.STAGES)


class _Orphan(msgspec.Struct, frozen=True):
    """A unit that a cluster remembers, and whether it goes."""

    kin: Kin
    unit: Unit
    goes: bool
    suspended: bool


class _Living(NamedTuple):
    """What the own object of a unit says of its end, and the wave that it came in."""

    way: Propagation | None
    wave: int


UNKNOWN = _Living(None, 0)


class _End(NamedTuple):
    """How a unit ends, who brought it, and in which wave."""

    plan: Plan
    parent: UnitId
    wave: int


async def with_orphans(planned: Planned, session: Session) -> Planned:
    """The plan with the ends of units that have left Git, and what is said of them."""
    plan, findings, leaving = planned.plan, list(planned.findings), list[PlannedUnit]()
    kin = [
        one for cluster in session.target.contexts for one in await _kin(cluster, session, findings)
    ]
    kin += await find_left(plan.units, planned.known | {one.unit for one, _ in kin}, session)
    left = [
        one.unit for one, _ in kin if one.unit not in planned.known and one.unit.kind in OF_FLUX
    ]
    still = await suspended_among(left, session)
    says = await _ask_living(kin, planned, session)
    orphans = _find(planned, _as_living(kin, says), session, still)
    ending = {one.unit.id for one in orphans if one.goes}
    wanted = {(step.cluster, *identity(item.ref)) for step in plan.steps for item in items_of(step)}
    units = {one.id: one for one in plan.units}
    ends: dict[UnitId, _End] = {}
    for one in orphans:
        try:
            end, stale = await _plan_end(one, wanted, ending, session)
        except ClusterError as error:
            if not error.code.startswith("journal."):
                raise
            findings.append(_unread(error))
            continue
        if one.goes:
            parent = units.get(one.kin.parent)
            end = with_own(end, await own_ends(one.kin, parent, session))
            ends[one.unit.id] = _End(end, one.kin.parent, says.get(one.unit.id, UNKNOWN).wave)
            leaving.append(end.units[0])
        if one.goes or stale:
            findings.append(_told(one, stale))
    plan = _with_ends(plan, ends) if ends else plan
    return replace(planned, plan=plan, findings=tuple(findings), leaving=tuple(leaving))


async def _plan_end(
    one: _Orphan,
    wanted: Collection[tuple[str, ...]],
    ending: Collection[UnitId],
    session: Session,
) -> tuple[Plan, list[Ref]]:
    """The plan of its end, and what it has brought. Raises where its journal cannot be read."""
    unit = plan_unit(one.unit)
    entries = (await read_journal(unit, session.world)).journal.entries
    wanted_end, released = await read_end(one.unit, session)
    lives = await look_at(session.world, {*entries, *released}, cluster=unit.cluster)
    hooks = one.kin.release is None  # those of a release go by their own policies alone
    found = (ending_of(body_of(live), unit, ending, hooks=hooks) for live in lives)
    stale = [it for it in found if it and (unit.cluster, *identity(it.ref)) not in wanted]
    return build_deletion(wanted_end, stale, budget=budget), [it.ref for it in stale]


def _find(
    planned: Planned, kin: list[tuple[Kin, str]], session: Session, still: Collection[UnitId]
) -> list[_Orphan]:
    """Those whose parents are known as a whole, or have left Git themselves.

    `still`: suspended ones, of which Flux takes the finalizers off and does no more.
    """
    whole = {one.manifests.unit.id for one in planned.read if one.is_whole}
    prunes = {one.id: one.policy.prunes for one in planned.plan.units if one.id in whole}
    left = [one for one in kin if one[0].unit not in planned.known]
    agreed = any(one.policy.deletes_contents for one in planned.plan.units)
    found: list[_Orphan] = []
    remembered = {one.unit for one, _ in kin} | planned.known

    def goes_by(one: Kin) -> bool | None:
        """Whether what it has brought goes; None where nobody who would know is left."""
        if one.parent in prunes:
            return one.cascades and prunes[one.parent]
        if one.above in prunes and one.parent not in remembered:
            return one.cascades and one.falls and prunes[one.above]
        return None

    while fresh := [one for one in left if goes_by(one[0]) is not None]:
        for one, cluster in fresh:
            goes = goes_by(one) is True and one.unit not in still
            prunes[one.unit] = goes
            policy = structs.replace(
                _policy(one, session),
                farewell=one.farewell,
                deletes_contents=agreed,
                cascades=one.cascades,
            )
            home = Destination(cluster)
            unit = Unit(id=one.unit, destination=home, policy=policy, parent=one.parent)
            found.append(_Orphan(one, unit, goes, one.unit in still))
        left = [one for one in left if one not in fresh]
    return found


async def _ask_living(
    kin: list[tuple[Kin, str]], planned: Planned, session: Session
) -> dict[UnitId, _Living]:
    """What Applications say that have left Git and still live."""
    left: dict[str, dict[Ref, UnitId]] = {}
    for unit in (one.unit for one, _ in kin if one.unit not in planned.known):
        if unit.kind == APPLICATION.name and unit.cluster in session.target.contexts:
            ref = Ref(APPLICATION, unit.namespace, unit.name)
            left.setdefault(unit.cluster, {})[ref] = unit
    says: dict[UnitId, _Living] = {}
    for cluster, refs in left.items():
        for live in await look_at(session.world, refs, cluster=cluster):
            body = body_of(live)
            says[refs[live.ref]] = _Living(cascade_of(body), live_wave(body))
    return says


def _as_living(kin: list[tuple[Kin, str]], says: Mapping[UnitId, _Living]) -> list[tuple[Kin, str]]:
    """With what those say of their end that still live: Argo CD goes by that alone."""
    return [
        (_parting(one, says[one.unit].way) if one.unit in says else one, cluster)
        for one, cluster in kin
    ]


def _parting(one: Kin, way: Propagation | None) -> Kin:
    return structs.replace(one, cascades=way is not None, farewell=way)


def _policy(kin: Kin, session: Session) -> Policy:
    """As such a unit was run; the repository's Argo CD may know its objects by a label."""
    if kin.release is not None:
        return ending_policy(kin.release)
    label, policy = session.craft.owner_label, POLICIES.get(kin.unit.kind, FLUX)
    return structs.replace(policy, instance_label=label, labels_only=bool(label))


async def _kin(cluster: str, session: Session, findings: list[Finding]) -> list[tuple[Kin, str]]:
    """Who is remembered in a cluster and was brought by somebody; what cannot be read is told."""
    heads = await run_errand(list_heads(cluster, NAMESPACE), session.world)
    found: list[tuple[Kin, str]] = []
    for live in (heads or {}).values():
        try:
            one = read_head(live).kin
        except ClusterError as error:
            findings.append(_unread(error))
        else:
            found += [(one, cluster)] if one is not None else []
    return found


def _unread(error: ClusterError) -> Finding:
    """A record that nobody can read keeps its unit from going, and nobody else."""
    return Finding(
        code="units.unread",
        severity=Severity.WARNING,
        sentence="of a unit that may have left Git nothing is deleted: what is remembered of it "
        "cannot be read",
        where=error.where,
        why=error.problem,
        fix=error.hint,
    )


def _with_ends(plan: Plan, ends: Mapping[UnitId, _End]) -> Plan:
    """The plan, and the ends of units behind it: who goes with its parent goes before that.

    A child stands between the steps of its parent's end, as it does when both are deleted. Of two
    that the same parent brought, the one of the later wave goes first, as Argo CD prunes.
    """
    last = {one.unit: one for one in plan.steps}
    steps = {step.id: step for one in ends.values() for step in one.plan.steps}
    edges = [*(edge for one in ends.values() for edge in one.plan.edges), *_by_waves(ends)]
    begins: list[Edge] = []
    for name, end in ends.items():
        if not end.plan.steps:
            continue
        first, final = end.plan.steps[0].id, end.plan.steps[-1].id
        parent = end.parent
        if parent in ends and (chain := ends[parent].plan.steps):
            at = next((at for at, step in enumerate(chain) if _deletes(step, name)), 0)
            edges.append(Edge(final, chain[at].id, Because.PARENT))
            edges += [Edge(chain[at - 1].id, first, Because.PARENT)] if at else []
        while parent in ends:
            parent = ends[parent].parent
        if parent in last:
            begins.append(Edge(last[parent].id, first, Because.PARENT))
    return Plan.of(
        Fragment(
            units=(*plan.units, *(unit for one in ends.values() for unit in one.plan.units)),
            steps=(*plan.steps, *put_in_order(steps, edges)),
            edges=(*plan.edges, *edges, *begins),
            slots=plan.slots,
        )
    )


def _by_waves(ends: Mapping[UnitId, _End]) -> Iterator[Edge]:
    """What comes of waves between units of one parent."""
    families: dict[UnitId, dict[int, list[Plan]]] = {}
    for one in ends.values():
        if one.plan.steps:
            families.setdefault(one.parent, {}).setdefault(one.wave, []).append(one.plan)
    for waves in families.values():
        for later, earlier in pairwise(sorted(waves, reverse=True)):
            for first in waves[later]:
                for then in waves[earlier]:
                    yield Edge(first.steps[-1].id, then.steps[0].id, Because.PARENT)


def _deletes(step: Step, unit: UnitId) -> bool:
    """Whether the own object of a unit goes in a step."""
    named = (unit.kind, unit.namespace, unit.name)
    refs = (item.ref for item in items_of(step))
    return any((ref.kind.name, ref.namespace, ref.name) == named for ref in refs)


def _told(one: _Orphan, refs: Collection[Ref]) -> Finding:
    named = ", ".join(map(str, [*refs][:MOST_NAMED])) or "nothing"
    more = f" and {len(refs) - MOST_NAMED} more" if len(refs) > MOST_NAMED else ""
    deed = "is deleted" if one.goes else "stays"
    why = f"`{one.kin.parent}`, which brought it, does not prune"
    if one.kin.cascades is False:
        why = "it had no finalizer, or said that its objects outlive it"
    if one.suspended:
        why = "it was suspended, and Flux leaves what a suspended unit has brought"
    return Finding(
        code="units.orphan",
        severity=Severity.NOTE if one.goes else Severity.WARNING,
        sentence=f"`{one.kin.unit}` has left Git; what it has brought {deed}: {named}{more}",
        why="" if one.goes else why,
        fix="" if one.goes else "delete it by hand, or bring the unit back and delete it",
    )
