"""Families of units become a plan: read by their dialects, put in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from tidegate.dialect.helm.acting import act
from tidegate.dialect.semantics import run_by
from tidegate.dialect.tracking import SET
from tidegate.errors import PlanError, TidegateError
from tidegate.flows.checks import settle_checks
from tidegate.flows.discover.families import Family, Member
from tidegate.flows.expressions import try_expressions
from tidegate.flows.keeping import is_kept
from tidegate.flows.lookups_ahead import settle_lookups
from tidegate.flows.projects import (
    closed_for_good,
    find_holds,
    window_findings,
)
from tidegate.flows.reading import Read, find_more, read_all, without_strangers
from tidegate.flows.rendering import Rendered, refuse_unsound
from tidegate.flows.session import Session
from tidegate.flows.setting_aside import set_aside, unpruned, without_own_words
from tidegate.flows.sharing import refuse_shared
from tidegate.flows.strays import find_strays
from tidegate.graph.declared import foreign_of, precedences_of
from tidegate.health.budget import budget
from tidegate.model.finding import Finding, Severity
from tidegate.model.ledger import Action
from tidegate.model.manifest import Manifests
from tidegate.model.plan import Plan, PlannedUnit
from tidegate.model.policy import Policy
from tidegate.model.semantics import ARGOCD, ChildGates, Semantics
from tidegate.model.unit import Unit, UnitId
from tidegate.plan.build import build_plan
from tidegate.plan.cycles import Circles, part_circles
from tidegate.plan.selection import select
from tidegate.schema.builtin import served_kinds


class Planned(msgspec.Struct, frozen=True):
    """A plan, what it was made of, and what is to be said of units that are not whole.

    `faults`: by unit, why nothing of it can be done; it is in the plan without its objects.
    `known`: all units, also those that nothing is done to. `leaving`: units that are gone behind
    the rollout. `formers`: of these, releases that other units were before. `refused`: of the
    faults, those that keep a unit from being rolled out by anybody's rules: its project, or an
    expression that cannot be used or is never true.
    """

    plan: Plan
    read: tuple[Read, ...]
    findings: tuple[Finding, ...] = ()
    faults: Mapping[UnitId, str] = msgspec.field(default_factory=dict)
    known: frozenset[UnitId] = frozenset()
    leaving: tuple[PlannedUnit, ...] = ()
    formers: Mapping[UnitId, UnitId] = msgspec.field(default_factory=dict)
    refused: Mapping[UnitId, str] = msgspec.field(default_factory=dict)

    @property
    def notes(self) -> tuple[TidegateError, ...]:
        return tuple(dict.fromkeys(note for one in self.read for note in one.notes))

    @property
    def unread(self) -> tuple[UnitId, ...]:
        """Units at fault of which it is not known what they bring."""
        read = {one.manifests.unit.id for one in self.read}
        return tuple(one for one in self.faults if one not in read)

    def unsound(self, *, takes_broken_seals: bool) -> dict[UnitId, str]:
        """By unit, why what it renders to may be previewed and not applied."""
        found: dict[UnitId, str] = {}
        for one in self.read:
            try:
                refuse_unsound(one.rendered, takes_broken_seals=takes_broken_seals)
            except TidegateError as error:
                found[one.manifests.unit.id] = error.problem
            except ExceptionGroup as errors:
                found[one.manifests.unit.id] = "; ".join(map(_problem, errors.exceptions))
        return found

    @property
    def rendered(self) -> Rendered:
        return Rendered.together(one.rendered for one in self.read)


def _problem(error: Exception) -> str:
    return error.problem if isinstance(error, TidegateError) else str(error)


async def make_plan(
    families: Sequence[Family],
    session: Session,
    resources: tuple[str, ...] = (),
    rules: Semantics | None = None,
    *,
    left_out: Mapping[UnitId, str] | None = None,
    ends: bool = False,
) -> Planned:
    """The plan of these families, and of that only the resources that are named.

    What is a unit's and not in the plan goes when it prunes, so that the plan must be all of it.
    Without `rules` each unit is run by those of its own dialect. `left_out`: by unit, its fault;
    where it is given, units that wait for each other are left out as well.
    Where the units are to end (`ends`), it does not matter what their projects refuse, and when.
    """
    members = [_ruled(member, rules) for family in families for member in family.members]
    all_known = frozenset(one.unit.id for one in members)
    members, unmatched = _in_steps(_awaiting([_in_step(one) for one in members]))
    members, inert = without_own_words(members)
    tried = await try_expressions(members, families, session.cel, session.target.expressions)
    members, findings = set_aside(tried.members)
    members, checks = await settle_checks(members, session)
    findings = [*unmatched, *inert, *tried.findings, *findings, *checks]
    if resources:
        members = [_unpruning(one) for one in members]
    members = [replace(one, unit=_unbound(one.unit)) for one in members] if ends else members
    reading = await read_all(members, session)
    findings += [
        *await find_more(reading, session),
        *await settle_lookups(reading, members, session, can_wait=not resources),
    ]
    wanted = [*map(_whole, reading.read), *map(_nothing, reading.faulty.values())]
    known = {one.unit.id for one in wanted}
    met = (without_strangers(one, known) for one in wanted)
    circles = Circles([*met]) if left_out is None else part_circles(met)
    plan = _plan_of(circles.wanted)
    if resources:
        plan = select(plan, resources)
    await refuse_shared(plan, session)
    findings += _unpruned(reading.read)
    faults = {one.unit.id: "it could not be rendered" for one in reading.faulty.values()}
    findings += await find_strays((one.manifests for one in reading.read), session)
    holds = find_holds((one.manifests.unit for one in reading.read), session.world.now())
    findings += window_findings(holds, session)
    stuck = {unit: why for unit, why in tried.stuck.items() if unit in known}
    refused = {**reading.refused, **closed_for_good(holds), **stuck}
    told = {unit: why for unit, why in (left_out or {}).items() if unit in known}
    return Planned(
        plan,
        tuple(reading.read),
        (*findings, *map(_circle, circles.refusals), *reading.findings),
        {**faults, **told, **circles.members, **refused},
        all_known,
        refused=refused,
    )


def _plan_of(wanted: list[Manifests]) -> Plan:
    others = foreign_of(wanted, served_kinds())
    return build_plan(wanted, precedences_of(wanted), others, budget=budget)


def _ruled(member: Member, rules: Semantics | None) -> Member:
    """The unit by these rules; where they are not its controller's, a person asks for it."""
    own = member.unit.policy.semantics
    chosen = own if rules is None or rules.name == own.name else rules
    policy = run_by(_acting(member), chosen)
    asked = policy.semantics.name != ARGOCD.name or not policy.starts
    policy = msgspec.structs.replace(policy, asked=asked)
    return replace(member, unit=msgspec.structs.replace(member.unit, policy=policy))


def _acting(member: Member) -> Policy:
    """The policy of a unit; of a release, for what is about to be done to it.

    What others may change of a release is theirs until it is another revision.
    """
    policy, rendered = member.unit.policy, member.rendered
    revised = rendered.revised if isinstance(rendered, Rendered) else None
    if policy.release is None or revised is None:
        return policy
    terms = msgspec.structs.replace(
        policy.release,
        action=Action.UPGRADE if revised.release.is_upgrade else Action.INSTALL,
        chart=revised.chart,
        former_chart=revised.former,
    )
    looks_up = isinstance(rendered, Rendered) and bool(rendered.looked_up)
    acting = msgspec.structs.replace(act(policy, terms), asks_first=looks_up)
    ignores = policy.release.ignores
    if not ignores or not is_kept(member):
        return acting
    return msgspec.structs.replace(acting, ignores=ignores, keeps_ignored=True)


def _unbound(unit: Unit) -> Unit:
    """The unit without what its project says of syncs; what it may touch stays as it is.

    The end of a release has a time of its own.
    """
    policy = msgspec.structs.replace(unit.policy, windows=())
    if policy.release is not None:
        timed = msgspec.structs.replace(policy, timeout=policy.release.uninstall.timeout)
        policy = run_by(timed, policy.semantics)
    return msgspec.structs.replace(unit, policy=policy, refused="", claim=None)


def _in_step(member: Member) -> Member:
    """The unit in its step, where that counts: under Argo CD's rules it must be in force.

    A step is over when its units are well, so that their last waves gate as well. Argo CD's syncs
    have ended by then: it waits for ever until the Applications are Healthy.
    """
    unit, step = member.unit, member.unit.rollout
    if step is None:
        return member
    is_argo = unit.policy.semantics.name == ARGOCD.name
    if not step.in_force and (is_argo or not step.number):
        return replace(member, unit=msgspec.structs.replace(unit, rollout=None, group=""))
    rules = msgspec.structs.replace(unit.policy.semantics, gates_last=True, forbears=is_argo)
    policy = msgspec.structs.replace(unit.policy, semantics=rules)
    return replace(member, unit=msgspec.structs.replace(unit, policy=policy))


def _awaiting(members: list[Member]) -> list[Member]:
    """Sets whose units come step by step: Argo CD has them healthy when the last one is."""
    rolling = {one.unit.parent for one in members if one.unit.rollout is not None}
    return [_awaits(one) if one.unit.id in rolling else one for one in members]


def _awaits(member: Member) -> Member:
    policy = member.unit.policy
    rules = msgspec.structs.replace(policy.semantics, children=ChildGates.ALWAYS)
    policy = msgspec.structs.replace(policy, semantics=rules)
    return replace(member, unit=msgspec.structs.replace(member.unit, policy=policy))


def _in_steps(members: list[Member]) -> tuple[list[Member], list[Finding]]:
    """Those that a step of their set takes; of the others it is told."""
    unmatched = [
        one.unit for one in members if one.unit.rollout is not None and not one.unit.rollout.number
    ]
    out = {unit.id for unit in unmatched}
    kept = [one for one in members if one.unit.id not in out]
    return kept, [_in_no_step(unit) for unit in unmatched]


def _unpruning(member: Member) -> Member:
    """The same for a part of its objects. Raises where somebody has asked to prune."""
    unit = member.unit
    if unit.policy.prunes and not unit.id.kind:
        raise no_part()
    policy = msgspec.structs.replace(unit.policy, prunes=False)
    return replace(member, unit=msgspec.structs.replace(unit, policy=policy))


def no_part() -> PlanError:
    problem = "only a whole unit can be pruned, and this is a part of one"
    return PlanError("plan.part", problem, hint="`--prune` does not go with `--resource`")


def _whole(read: Read) -> Manifests:
    """Who does not know all that it has brings what it knows, and prunes nothing.

    Nor does a set that generates nothing, unless somebody agrees.
    """
    unit = read.manifests.unit
    if read.rendered.unmet is not None:
        return Manifests(unit=unit, is_known=False)
    is_spared = unit.id.kind == SET and not (read.manifests.manifests or unit.policy.allows_empty)
    if not unit.policy.prunes or (read.is_whole and not is_spared):
        return read.manifests
    policy = msgspec.structs.replace(unit.policy, prunes=False)
    spared = msgspec.structs.replace(unit, policy=policy)
    return msgspec.structs.replace(read.manifests, unit=spared)


def _nothing(member: Member) -> Manifests:
    """A unit of which nothing is known, so that others can wait for it."""
    return Manifests(unit=member.unit, is_known=False)


def _circle(refusal: PlanError) -> Finding:
    return Finding(
        code=refusal.code,
        severity=Severity.ERROR,
        sentence=refusal.problem,
        where=refusal.where,
        why="none of them begins: each waits until another one is ready",
        fix=refusal.hint,
    )


def _in_no_step(unit: Unit) -> Finding:
    return Finding(
        code="argo.set-unmatched",
        severity=Severity.WARNING,
        sentence=f"nothing is done to `{unit.id}`",
        where=unit.where,
        why=f"no step of `{unit.made_by}` takes it, and Argo CD never syncs it then",
        fix="add a step, or a label",
    )


def _unpruned(read: Iterable[Read]) -> list[Finding]:
    pruning = [one for one in read if one.manifests.unit.policy.prunes]
    return [unpruned(one.manifests.unit) for one in pruning if one.rendered.lacks_objects]
