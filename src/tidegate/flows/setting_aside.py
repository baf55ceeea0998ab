"""Units that nothing is done to, those that are at fault, and what is said of both."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

import msgspec
from msgspec.structs import replace

from tidegate.errors import TidegateError
from tidegate.flows.discover.families import Member
from tidegate.model.finding import Finding, Severity
from tidegate.model.semantics import ARGOCD, FLUX, TIDEGATE, ChildGates
from tidegate.model.unit import Dependency, Unit, UnitId


def set_aside(members: Iterable[Member]) -> tuple[list[Member], list[Finding]]:
    """Those that something is done to; what one brings that is left alone is left alone with it."""
    kept: list[Member] = []
    findings: list[Finding] = []
    known: dict[UnitId, Unit] = {}
    left: set[UnitId] = set()
    for member in members:
        unit = member.unit
        known[unit.id] = unit
        parent = known.get(unit.parent) if unit.parent and unit.parent.kind else None
        if unit.suspended or unit.parent in left:
            findings.append(_suspended(unit))
        elif _is_manual(unit):
            findings.append(_manual(unit, parent))
        if unit.suspended or unit.parent in left or (parent and _is_manual(unit)):
            left.add(unit.id)
        else:
            kept.append(member)
    kept, held = _without_held(kept, left, known)
    findings += held
    findings += (finding for one in kept for finding in _unawaited(one.unit, left))
    return kept, findings


def _without_held(
    members: list[Member], left: set[UnitId], known: Mapping[UnitId, Unit]
) -> tuple[list[Member], list[Finding]]:
    """Flux's units that wait for one that nothing is done to never begin, nor do those behind."""
    findings: list[Finding] = []
    waiting = [one for one in members if one.unit.policy.semantics.name == FLUX.name]
    while True:
        held = [one for one in waiting if one.unit.id not in left and _holder(one.unit, left)]
        if not held:
            return [one for one in members if one.unit.id not in left], findings
        waits = (one.unit for one in held if one.unit.parent not in left)
        findings += [_held(one, _holder(one, left), known) for one in waits]
        left |= {one.unit.id for one in held}


def _holder(unit: Unit, left: Collection[UnitId]) -> Dependency | None:
    """What keeps a unit from beginning; what brings it is not there either."""
    if unit.parent in left:
        return Dependency(unit=unit.parent, where=unit.where)
    return next((one for one in unit.dependencies if one.unit in left), None)


def _held(unit: Unit, by: Dependency | None, known: Mapping[UnitId, Unit]) -> Finding:
    holder = known.get(by.unit) if by and by.unit else None
    is_suspended = holder is not None and holder.suspended
    return Finding(
        code="units.held",
        severity=Severity.WARNING,
        sentence=f"`{unit.id}` never begins: it waits for `{by.unit if by else ''}`",
        where=by.where if by else unit.where,
        why="nothing is done to that one, so that it does not become ready",
        fix="remove `suspend` from it, or the entry from `dependsOn`"
        if is_suspended
        else "mend what keeps that one from beginning",
        semantics=(FLUX.name,),
    )


def without_own_words(members: list[Member]) -> tuple[list[Member], list[Finding]]:
    """Units that run by others' rules do not wait for what only our own words say."""
    kept: list[Member] = []
    findings: list[Finding] = []
    for member in members:
        unit = member.unit
        inert = [one for one in unit.dependencies if one.ours]
        if not inert or unit.policy.semantics.name == TIDEGATE.name:
            kept.append(member)
            continue
        findings.append(_inert(unit, inert[0]))
        left = tuple(one for one in unit.dependencies if not one.ours)
        changed = msgspec.structs.replace(unit, dependencies=left)
        kept.append(replace(member, unit=changed))
    return kept, findings


def _inert(unit: Unit, one: Dependency) -> Finding:
    rules = unit.policy.semantics.name
    return Finding(
        code="units.inert",
        severity=Severity.NOTE,
        sentence=f"`{unit.id}` does not wait for what `tidegate.dev/depends-on` names",
        where=one.where,
        why=f"the rules of `{rules}` do not know that annotation",
        semantics=(rules,),
    )


def _is_manual(unit: Unit) -> bool:
    """Of a set with steps its controller syncs the members; those in no step, nobody."""
    rolls = unit.rollout is not None and unit.rollout.in_force
    starts = bool(unit.rollout.number) if unit.rollout and rolls else unit.policy.starts
    return unit.policy.semantics.name == ARGOCD.name and not starts


def _suspended(unit: Unit) -> Finding:
    why = "" if unit.suspended else f"`{unit.parent}`, which brings it, is left alone"
    return Finding(
        code="units.suspended",
        severity=Severity.NOTE,
        sentence=f"nothing is done to `{unit.id}`",
        where=unit.where,
        why=why or "somebody has suspended it",
        fix="" if why else "remove `suspend` from it, or `tidegate resume` it, to go on",
    )


def _manual(unit: Unit, parent: Unit | None) -> Finding:
    """Whoever looks at an entry is taken for somebody who syncs it."""
    end = "it is left out" if parent else "it is played as if somebody did"
    if parent and parent.policy.semantics.children is ChildGates.ALWAYS:
        end = f"it is left out, though later waves of `{parent.id}` wait until somebody does"
    return Finding(
        code="argo.manual",
        severity=Severity.WARNING if parent else Severity.NOTE,
        sentence=f"nobody syncs `{unit.id}`: {end}",
        where=unit.where,
        why="it has no `syncPolicy.automated`, so that Argo CD waits for a person",
        about=(unit.id.called,),
        fix="add `automated: {}` to its syncPolicy",
        semantics=(ARGOCD.name,),
    )


def _unawaited(unit: Unit, left: Collection[UnitId]) -> Iterator[Finding]:
    for one in unit.dependencies:
        if one.unit in left:
            yield Finding(
                code="units.unawaited",
                severity=Severity.NOTE,
                sentence=f"`{unit.id}` does not wait for `{one.unit}`",
                where=one.where,
                why="nothing is done to that one now",
            )


def faults_of(unit: Unit, errors: Iterable[TidegateError]) -> list[Finding]:
    """What keeps a unit from being rolled out."""
    return [
        Finding(
            code=error.code,
            severity=Severity.ERROR,
            sentence=f"`{unit.id}`: {error.problem}",
            where=error.where or unit.where,
            fix=error.hint,
        )
        for error in errors
    ]


def unpruned(unit: Unit) -> Finding:
    return Finding(
        code="units.unpruned",
        severity=Severity.WARNING,
        sentence=f"nothing of `{unit.id}` is pruned",
        where=unit.where,
        why="not all of its objects are known: what seems to have left Git may still be there",
    )
