"""Families of units become a plan: read by their dialects, put in order."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from tidegate.dialect.manifests import read_manifests
from tidegate.dialect.semantics import run_by
from tidegate.dialect.units import is_own_kind
from tidegate.documents import Document, FieldPath
from tidegate.errors import PlanError, RenderError, TidegateError
from tidegate.flows.discover.families import Family, Member
from tidegate.flows.rendering import Rendered, Unrendered
from tidegate.flows.rendering.outcome import notes_of
from tidegate.flows.session import Session
from tidegate.flows.sharing import refuse_shared
from tidegate.health.budget import budget
from tidegate.model.finding import Finding, Severity
from tidegate.model.manifest import Manifest, Manifests
from tidegate.model.objects import Kind, Served, Spot
from tidegate.model.plan import Deed, Plan
from tidegate.model.reading import text
from tidegate.model.semantics import ARGOCD, Semantics
from tidegate.model.unit import Unit, UnitId
from tidegate.plan.build import build_plan
from tidegate.plan.selection import select


@dataclass(frozen=True, slots=True)
class Read:
    """What a unit deploys, and what it was rendered to."""

    manifests: Manifests
    rendered: Rendered

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
    """A plan, what it was made of, and what is to be said of units that are not whole."""

    plan: Plan
    read: tuple[Read, ...]
    findings: tuple[Finding, ...] = ()

    @property
    def notes(self) -> tuple[TidegateError, ...]:
        return tuple(dict.fromkeys(note for one in self.read for note in one.notes))

    @property
    def rendered(self) -> Rendered:
        return Rendered.together(one.rendered for one in self.read)


async def make_plan(
    families: Sequence[Family],
    session: Session,
    resources: tuple[str, ...] = (),
    rules: Semantics | None = None,
) -> Planned:
    """The plan of these families, and of that only the resources that are named.

    What is a unit's and not in the plan goes when it prunes, so that the plan must be all of it.
    Without `rules` each unit is run by those of its own dialect.
    """
    members = [_ruled(member, rules) for family in families for member in family.members]
    members, held = _without_suspended([_in_step(one) for one in members])
    if resources and any(one.unit.policy.prunes for one in members):
        problem = "only a whole unit can be pruned, and this is a part of one"
        raise PlanError("plan.part", problem, hint="`--prune` does not go with `--resource`")
    read = await read_members(members, session)
    known = {one.manifests.unit.id for one in read}
    wanted = [_refuse_empty(one.manifests) for one in read]
    plan = build_plan([_met(one, known) for one in wanted], budget=budget)
    if resources:
        plan = select(plan, resources)
    await refuse_shared(plan, session)
    return Planned(plan, read, tuple(held))


def _ruled(member: Member, rules: Semantics | None) -> Member:
    policy = run_by(member.unit.policy, rules or member.unit.policy.semantics)
    return replace(member, unit=msgspec.structs.replace(member.unit, policy=policy))


def _in_step(member: Member) -> Member:
    """The unit in its step, where that counts: under Argo CD's rules it must be in force.

    A step is over when its units are well, so that their last waves gate as well.
    """
    unit, step = member.unit, member.unit.rollout
    if step is None:
        return member
    is_argo = unit.policy.semantics.name == ARGOCD.name
    if not step.in_force and (is_argo or not step.number):
        return replace(member, unit=msgspec.structs.replace(unit, rollout=None, group=""))
    rules = msgspec.structs.replace(unit.policy.semantics, gates_last=True)
    policy = msgspec.structs.replace(unit.policy, semantics=rules)
    return replace(member, unit=msgspec.structs.replace(unit, policy=policy))


def _without_suspended(members: list[Member]) -> tuple[list[Member], list[Finding]]:
    """Those that something may be done to; what a suspended one brings is left alone with it."""
    held: dict[UnitId, Finding] = {}
    for unit in (one.unit for one in members):
        if unit.rollout is not None and not unit.rollout.number:
            held[unit.id] = _in_no_step(unit)
        elif unit.suspended or unit.parent in held:
            why = "" if unit.suspended else f"`{unit.parent}`, which brings it, is left alone"
            held[unit.id] = Finding(
                code="units.suspended",
                severity=Severity.NOTE,
                sentence=f"nothing is done to `{unit.id}`",
                where=unit.where,
                why=why or "somebody has suspended it",
                fix="" if why else "remove `suspend` from it to go on",
            )
    return [one for one in members if one.unit.id not in held], list(held.values())


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
    if unit.policy.prunes and not unit.policy.allows_empty and not wanted.manifests:
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


async def read_members(members: Iterable[Member], session: Session) -> tuple[Read, ...]:
    """What the rendered units of these ask for.

    Raises where what the user points at could not be rendered; a unit of a repository that could
    not is passed over, and told by whoever found it.
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
    whole = [(one.unit, one.rendered) for one in members if isinstance(one.rendered, Rendered)]
    brought = _Brought.of(unit for unit, _ in whole)
    documents: dict[str, list[Document]] = {}
    for unit, rendered in whole:
        documents.setdefault(unit.destination.cluster, []).extend(rendered.documents)
    scopes = {name: _Scope.of(await session.kinds(name), mine) for name, mine in documents.items()}
    read = []
    for unit, rendered in whole:
        scope = scopes[unit.destination.cluster]
        found = read_manifests(unit, rendered.documents, scope.is_namespaced)
        manifests = tuple(brought.by(one, unit, scope) for one in found.manifests)
        read.append(Read(msgspec.structs.replace(found, manifests=manifests), rendered))
    return tuple(read)


@dataclass(frozen=True, slots=True)
class _Brought:
    """All units of a plan, and those of them that sets of a parent generate."""

    ids: frozenset[UnitId]
    generated: Mapping[tuple[UnitId, str], tuple[UnitId, ...]]

    @classmethod
    def of(cls, units: Iterable[Unit]) -> _Brought:
        units, generated = tuple(units), dict[tuple[UnitId, str], tuple[UnitId, ...]]()
        for one in units:
            if one.made_by and one.parent:
                key = (one.parent, one.made_by)
                generated[key] = (*generated.get(key, ()), one.id)
        return cls(frozenset(one.id for one in units), generated)

    def by(self, manifest: Manifest, unit: Unit, scope: _Scope) -> Manifest:
        """An object of a dialect's own kind: the units that it is, and whether anybody takes it."""
        kind, ref = manifest.ref.kind, manifest.ref
        if not is_own_kind(kind):
            return manifest
        name = UnitId(kind.name, unit.destination.cluster, ref.namespace, ref.name)
        mark = f"{kind.name}/{ref.namespace}/{ref.name}"
        own = (name,) if name in self.ids and name != unit.id else ()
        deed = manifest.deed if scope.serves(kind) else Deed.SKIP
        brings = own or self.generated.get((unit.id, mark), ())
        return msgspec.structs.replace(manifest, brings=brings, deed=deed)


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

    def is_namespaced(self, kind: Kind) -> bool:
        return (kind.group, kind.name) not in self.wide
