"""Families of units become a plan: read by their dialects, put in order."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from tidegate.dialect.manifests import read_manifests
from tidegate.dialect.semantics import run_by
from tidegate.dialect.tracking import SET
from tidegate.dialect.units import is_own_kind
from tidegate.documents import Document, FieldPath
from tidegate.errors import PlanError, RenderError, TidegateError, errors_of
from tidegate.flows.discover.families import Family, Member
from tidegate.flows.rendering import Rendered, Unrendered, refuse_unsound
from tidegate.flows.rendering.outcome import notes_of
from tidegate.flows.session import Session
from tidegate.flows.setting_aside import faults_of, set_aside, unpruned
from tidegate.flows.sharing import refuse_shared
from tidegate.graph.declared import precedences_of
from tidegate.health.budget import budget
from tidegate.model.finding import Finding, Severity
from tidegate.model.manifest import Manifest, Manifests
from tidegate.model.objects import Kind, Served, Spot
from tidegate.model.plan import Deed, Plan, PlannedUnit
from tidegate.model.reading import text
from tidegate.model.semantics import ARGOCD, ChildGates, Semantics
from tidegate.model.unit import Unit, UnitId
from tidegate.plan.build import build_plan
from tidegate.plan.selection import select


@dataclass(frozen=True, slots=True)
class Read:
    """What a unit deploys, and what it was rendered to."""

    manifests: Manifests
    rendered: Rendered

    @property
    def is_whole(self) -> bool:
        """Whether all of its objects are known."""
        return not (self.rendered.locked or self.rendered.weakened)

    @property
    def notes(self) -> tuple[TidegateError, ...]:
        """What is not certain; that there is nothing at all is rarely meant."""
        notes, sources = notes_of(self.rendered), self.manifests.unit.sources
        if self.rendered.documents or notes or not sources:
            return notes
        problem = f"`{sources[0].source}` has no objects"
        hint = "look whether it is the right directory"
        return (RenderError("render.nothing", problem, hint=hint),)

    def hidden(self) -> Iterator[tuple[Spot, tuple[FieldPath, ...]]]:
        """By object, the fields that stood encrypted or came out of a Secret."""
        unit = self.manifests.unit
        places: dict[tuple[str, str, str, str], tuple[FieldPath, ...]] = {}
        for document, fields in zip(self.rendered.documents, self.rendered.hidden, strict=True):
            body, home = document.body, unit.destination.namespace
            kind = Kind.of(text(body, "apiVersion"), text(body, "kind"))
            inside = text(body, "metadata", "namespace", default=home)
            places[kind.group, kind.name, inside, text(body, "metadata", "name")] = fields
        for ref in (one.ref for one in self.manifests.manifests):
            found = places.get((ref.kind.group, ref.kind.name, ref.namespace, ref.name), ())
            if found:
                yield Spot(unit.destination.cluster, ref), found


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, what it was made of, and what is to be said of units that are not whole.

    `faults`: by unit, why nothing of it can be done; it is in the plan without its objects.
    `known`: all units, also those that nothing is done to. `leaving`: units that are gone behind
    the rollout.
    """

    plan: Plan
    read: tuple[Read, ...]
    findings: tuple[Finding, ...] = ()
    faults: Mapping[UnitId, str] = field(default_factory=dict)
    known: frozenset[UnitId] = frozenset()
    leaving: tuple[PlannedUnit, ...] = ()

    @property
    def notes(self) -> tuple[TidegateError, ...]:
        return tuple(dict.fromkeys(note for one in self.read for note in one.notes))

    def unsound(self, *, takes_broken_seals: bool) -> dict[UnitId, str]:
        """By unit, why what it renders to may be previewed and not applied."""
        found: dict[UnitId, str] = {}
        for one in self.read:
            try:
                refuse_unsound(one.rendered, takes_broken_seals=takes_broken_seals)
            except (TidegateError, ExceptionGroup):
                found[one.manifests.unit.id] = "not all of it is known"
        return found

    @property
    def rendered(self) -> Rendered:
        return Rendered.together(one.rendered for one in self.read)


async def make_plan(
    families: Sequence[Family],
    session: Session,
    resources: tuple[str, ...] = (),
    rules: Semantics | None = None,
    *,
    left_out: Collection[UnitId] = (),
) -> Planned:
    """The plan of these families, and of that only the resources that are named.

    What is a unit's and not in the plan goes when it prunes, so that the plan must be all of it.
    Without `rules` each unit is run by those of its own dialect. `left_out` are at fault already.
    """
    members = [_ruled(member, rules) for family in families for member in family.members]
    all_known = frozenset(one.unit.id for one in members)
    members, unmatched = _in_steps(_awaiting([_in_step(one) for one in members]))
    members, findings = set_aside(members)
    findings = [*unmatched, *findings]
    if resources:
        members = [_unpruning(one) for one in members]
    reading = await _read_all(members, session)
    wanted = [*map(_whole, reading.read), *map(_nothing, reading.faulty)]
    known = {one.unit.id for one in wanted}
    met = [_met(one, known) for one in wanted]
    plan = build_plan(met, precedences_of(met), budget=budget)
    if resources:
        plan = select(plan, resources)
    await refuse_shared(plan, session)
    pruning = [one for one in reading.read if one.manifests.unit.policy.prunes]
    findings += [unpruned(one.manifests.unit) for one in pruning if not one.is_whole]
    faults = {one.unit.id: "it could not be rendered" for one in reading.faulty}
    faults |= dict.fromkeys(left_out, "something is wrong with it")
    return Planned(plan, reading.read, (*findings, *reading.findings), faults, all_known)


def _ruled(member: Member, rules: Semantics | None) -> Member:
    policy = run_by(member.unit.policy, rules or member.unit.policy.semantics)
    return replace(member, unit=msgspec.structs.replace(member.unit, policy=policy))


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
    is_spared = unit.id.kind == SET and not (read.manifests.manifests or unit.policy.allows_empty)
    if not unit.policy.prunes or (read.is_whole and not is_spared):
        return read.manifests
    policy = msgspec.structs.replace(unit.policy, prunes=False)
    spared = msgspec.structs.replace(unit, policy=policy)
    return msgspec.structs.replace(read.manifests, unit=spared)


def _nothing(member: Member) -> Manifests:
    """A unit of which nothing is known, so that others can wait for it."""
    return Manifests(unit=member.unit, is_known=False)


def _in_no_step(unit: Unit) -> Finding:
    return Finding(
        code="argo.set-unmatched",
        severity=Severity.WARNING,
        sentence=f"nothing is done to `{unit.id}`",
        where=unit.where,
        why=f"no step of `{unit.made_by}` takes it, and Argo CD never syncs it then",
        fix="add a step, or a label",
    )


def _refuse_empty(wanted: Manifests) -> Manifests:
    """Raise where pruning would take all of a unit away because nothing is left of it."""
    unit = wanted.unit
    guarded = unit.policy.prunes and not unit.policy.allows_empty and unit.id.kind != SET
    if guarded and not wanted.manifests:
        problem = f"`{unit.id}` has no objects, and pruning would delete all that it has brought"
        hint = "look whether it is the right directory; `--allow-empty` goes on"
        raise PlanError("plan.empty", problem, where=unit.where, hint=hint)
    return wanted


def _met(wanted: Manifests, known: Collection[UnitId]) -> Manifests:
    """Without dependencies on units that are not in the plan: of those it is told."""
    unit = wanted.unit
    kept = tuple(one for one in unit.dependencies if one.unit is None or one.unit in known)
    if kept == unit.dependencies:
        return wanted
    return msgspec.structs.replace(wanted, unit=msgspec.structs.replace(unit, dependencies=kept))


@dataclass(frozen=True, slots=True)
class _ReadUnits:
    """What units ask for, those of which that is not known, and what is said of these."""

    read: tuple[Read, ...]
    faulty: tuple[Member, ...] = ()
    findings: tuple[Finding, ...] = ()


async def read_members(members: Iterable[Member], session: Session) -> tuple[Read, ...]:
    """What the rendered units of these ask for."""
    return (await _read_all(members, session)).read


async def _read_all(members: Iterable[Member], session: Session) -> _ReadUnits:
    """Raises where what the user points at could not be rendered or read.

    A unit of a repository that could not is at fault, and so is what it would bring.
    """
    members = list(members)
    errors = [
        error
        for one in members
        if isinstance(one.rendered, Unrendered) and not one.unit.id.kind
        for error in one.rendered.errors
    ]
    if errors:
        raise ExceptionGroup("not rendered", errors)
    brought = _Brought.of(one.unit for one in members)
    documents: dict[str, list[Document]] = {}
    for one in members:
        documents.setdefault(one.unit.destination.cluster, []).extend(one.documents)
    scopes = {name: _Scope.of(await session.kinds(name), mine) for name, mine in documents.items()}
    read: list[Read] = []
    faulty: dict[UnitId, Member] = {}
    findings: list[Finding] = []
    for member in members:
        unit, rendered = member.unit, member.rendered
        if isinstance(rendered, Unrendered) or unit.parent in faulty:
            faulty[unit.id] = member
            continue
        found = _attempt(unit, rendered, brought, scopes[unit.destination.cluster])
        if isinstance(found, Read):
            read.append(found)
        else:
            faulty[unit.id] = member
            findings += faults_of(unit, found)
    return _ReadUnits(tuple(read), tuple(faulty.values()), tuple(findings))


def _attempt(
    unit: Unit, rendered: Rendered, brought: _Brought, scope: _Scope
) -> Read | list[TidegateError]:
    """What a unit asks for, or what is wrong with it; of what is pointed at, that is raised."""
    try:
        return _read(unit, rendered, brought, scope)
    except TidegateError as error:
        if not unit.id.kind:
            raise
        return [error]
    except ExceptionGroup as group:
        if not unit.id.kind:
            raise
        return [*errors_of(group)]


def _read(unit: Unit, rendered: Rendered, brought: _Brought, scope: _Scope) -> Read:
    found = read_manifests(unit, rendered.documents, scope.is_namespaced)
    manifests = tuple(brought.by(one, unit, scope) for one in found.manifests)
    read = Read(msgspec.structs.replace(found, manifests=manifests), rendered)
    if read.is_whole:
        _refuse_empty(read.manifests)
    return read


@dataclass(frozen=True, slots=True)
class _Brought:
    """All units of a plan."""

    ids: frozenset[UnitId]

    @classmethod
    def of(cls, units: Iterable[Unit]) -> _Brought:
        return cls(frozenset(one.id for one in units))

    def by(self, manifest: Manifest, unit: Unit, scope: _Scope) -> Manifest:
        """An object of a dialect's own kind: the units that it is, and whether anybody takes it.

        It is not waited for: its controller does not run while we do its work.
        """
        kind, ref = manifest.ref.kind, manifest.ref
        if not is_own_kind(kind):
            return manifest
        name = UnitId(kind.name, unit.destination.cluster, ref.namespace, ref.name)
        own = (name,) if name in self.ids and name != unit.id else ()
        deed = manifest.deed if scope.serves(kind) else Deed.SKIP
        return msgspec.structs.replace(
            manifest, brings=own, deed=deed, gates=False, awaited=kind.name == SET
        )


@dataclass(frozen=True, slots=True)
class _Scope:
    """The kinds of a cluster, by group and name: those it serves, and those without namespaces."""

    served: frozenset[tuple[str, str]]
    wide: frozenset[tuple[str, str]]

    @classmethod
    def of(cls, kinds: Iterable[Served], documents: Iterable[Document]) -> _Scope:
        """What the cluster serves, and what the documents define."""
        kinds = tuple(kinds)
        served = {(one.kind.group, one.kind.name) for one in kinds}
        wide = {(one.kind.group, one.kind.name) for one in kinds if not one.namespaced}
        for document in documents:
            body = document.body
            if text(body, "kind") == "CustomResourceDefinition":
                name = (text(body, "spec", "group"), text(body, "spec", "names", "kind"))
                served.add(name)
                if text(body, "spec", "scope") == "Cluster":
                    wide.add(name)
        return cls(frozenset(served), frozenset(wide))

    def serves(self, kind: Kind) -> bool:
        return (kind.group, kind.name) in self.served

    def is_namespaced(self, kind: Kind) -> bool | None:
        name = (kind.group, kind.name)
        return False if name in self.wide else True if name in self.served else None
