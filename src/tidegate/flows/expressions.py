"""Expressions of units, tried before anything is planned: can they be used, and are they any good?

Those about health are compiled, and asked what they say of an object that says nothing. Those about
dependencies are asked twice: of a unit that has not begun, and of one that is ready. What Git says
of both units is known, and so is the status that a ready one has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from tidegate.errors import Place, foreign
from tidegate.flows.discover.families import Family, Member
from tidegate.flows.scripting import ScriptWorkers
from tidegate.health.cel.exchange import (
    CelAnswer,
    CelQuestion,
    Chose,
    Failing,
    Uncompiled,
    read_cel_answer,
    write_cel_question,
)
from tidegate.model.expressions import HealthExpressions
from tidegate.model.finding import Finding, Severity
from tidegate.model.objects import Json, Kind
from tidegate.model.reading import mapping, text
from tidegate.model.semantics import FLUX
from tidegate.model.unit import Dependency, Unit, UnitId

Body = dict[str, Json]
REVISION = "main@sha1:0000000000000000000000000000000000000000"
READY: Json = [
    {
        "type": "Ready",
        "status": "True",
        "reason": "ReconciliationSucceeded",
        "message": f"Applied revision: {REVISION}",
        "observedGeneration": 1,
    }
]
BEFORE: Body = {"observedGeneration": -1}
DONE: Body = {
    "observedGeneration": 1,
    "conditions": READY,
    "lastAppliedRevision": REVISION,
    "lastAttemptedRevision": REVISION,
}
NOT_SAID: Body = {"conditions": []}
STALLED = "Flux stops at that, and tries again when the text is another"


class Tried(msgspec.Struct):
    """What came of the expressions of some units."""

    members: list[Member]
    findings: list[Finding] = msgspec.field(default_factory=list)
    stuck: dict[UnitId, str] = msgspec.field(default_factory=dict)
    """Those that never begin, or never come to an end, and why."""


async def try_expressions(
    members: list[Member],
    families: Iterable[Family],
    cel: ScriptWorkers | None,
    own: tuple[HealthExpressions, ...] = (),
) -> Tried:
    """The members, without dependencies that hold nobody, and what is to be said of all.

    `own` are the repository's.
    """
    if not own and not any(map(_has, members)):
        return Tried(members)
    if cel is None:
        missing = [_missing(f"`{one.unit.id}`", one.unit.where) for one in members if _has(one)]
        missing += [_missing("this repository", one.where) for one in own[:1]]
        return Tried(members, missing)
    trial = _Trial(cel, _bodies(families))
    tried = await trial.run(members)
    tried.findings += [finding for one in own for finding in await trial.health(one)]
    return tried


def _has(member: Member) -> bool:
    unit = member.unit
    return bool(unit.policy.expressions) or any(one.ready_when for one in unit.dependencies)


def _bodies(families: Iterable[Family]) -> dict[UnitId, Body]:
    """What Git says of each unit."""
    found: dict[UnitId, Body] = {}
    for family in families:
        documents = [one for member in family.members for one in member.documents]
        for document in (*([family.own] if family.own else ()), *documents):
            body = document.body
            found[_id_of(body)] = body
    return found


def _id_of(body: Body) -> UnitId:
    kind = Kind.of(text(body, "apiVersion"), text(body, "kind"))
    metadata = mapping(body, "metadata")
    return UnitId(kind.name, "", text(metadata, "namespace"), text(metadata, "name"))


class _Trial:
    def __init__(self, cel: ScriptWorkers, bodies: Mapping[UnitId, Body]) -> None:
        self._cel = cel
        self._bodies = bodies

    async def run(self, members: list[Member]) -> Tried:
        tried = Tried([])
        for member in members:
            unit = member.unit
            said = [one for rule in unit.policy.expressions for one in await self.health(rule)]
            kept: list[Dependency] = []
            for one in unit.dependencies:
                told, holds = await self._dependency(unit, one)
                said += told
                kept += [one] if holds else []
            wrong = (one.sentence for one in said if one.severity is Severity.ERROR)
            if sentence := next(wrong, ""):
                tried.stuck[unit.id] = sentence
            tried.findings += said
            changed = msgspec.structs.replace(unit, dependencies=tuple(kept))
            tried.members.append(member if changed == unit else replace(member, unit=changed))
        return tried

    async def health(self, rule: HealthExpressions) -> list[Finding]:
        wrong: list[Finding] = []
        named = (("current", rule.current), ("inProgress", rule.in_progress))
        for name, expression in (*named, ("failed", rule.failed)):
            answer = await self._ask(expression, {}) if expression else Chose(-1)
            where = _field(rule.where, name)
            if isinstance(answer, Uncompiled):
                wrong.append(_uncompiled(where, answer.problem))
            elif name == "current" and answer == Chose(-1):
                wrong.append(_never(where, "it is false whatever the object says"))
        if not wrong and "conditions" in rule.current:
            silent: Body = {"metadata": {"generation": 1}, "spec": {}, "status": NOT_SAID}
            if await self._ask(rule.current, silent) == Chose(0):
                wrong.append(_vacuous(_field(rule.where, "current")))
        return wrong

    async def _dependency(self, unit: Unit, one: Dependency) -> tuple[list[Finding], bool]:
        """What is to be said of it, and whether the unit waits at all."""
        if not one.ready_when or one.unit is None:
            return [], True
        where = _field(one.where, "readyExpr")
        own, other = (self._bodies.get(_here(name), {}) for name in (unit.id, one.unit))
        before = await self._ask_of(one.ready_when, own, other, BEFORE)
        if isinstance(before, Uncompiled):
            return [_uncompiled(where, before.problem)], True
        if before == Chose(0):
            waits = unit.policy.asks_readiness or unit.policy.semantics.name != FLUX.name
            return ([] if waits else [_unawaited(unit, one, where)]), waits
        ready = await self._ask_of(one.ready_when, own, other, DONE)
        match ready:
            case Chose(0):
                return [], True
            case Failing(_, problem):
                return [_unsure(unit, one, where, problem)], True
            case _:
                why = f"it is false though `{one.unit}` is ready"
                return [_never(where, why)], True

    async def _ask_of(self, expression: str, own: Body, other: Body, status: Body) -> CelAnswer:
        variables = {"self": _with(own, DONE), "dep": _with(other, status)}
        return await self._ask(expression, variables, checked=True)

    async def _ask(
        self, expression: str, variables: Mapping[str, Json], *, checked: bool = False
    ) -> CelAnswer:
        question = CelQuestion((expression,), msgspec.json.encode(variables), checked)
        return read_cel_answer(await self._cel.ask(write_cel_question(question)))


def _with(body: Body, status: Body) -> Body:
    metadata: Body = {**mapping(body, "metadata"), "generation": 1}
    return {**body, "metadata": metadata, "status": status}


def _here(unit: UnitId) -> UnitId:
    return UnitId(unit.kind, "", unit.namespace, unit.name)


def _field(where: Place | None, name: str) -> Place | None:
    return where and where.at(f"{where.field}.{name}")


def _uncompiled(where: Place | None, problem: str) -> Finding:
    return Finding(
        code="flux.expression",
        severity=Severity.ERROR,
        sentence=f"{_named(where)} cannot be used: {foreign(problem)}",
        where=where,
        why=STALLED,
        fix="correct the expression",
    )


def _never(where: Place | None, why: str) -> Finding:
    return Finding(
        code="flux.never",
        severity=Severity.ERROR,
        sentence=f"{_named(where)} is never true",
        where=where,
        why=f"{why}: what waits for it waits for ever",
        fix="correct the expression",
    )


def _vacuous(where: Place | None) -> Finding:
    return Finding(
        code="flux.vacuous",
        severity=Severity.WARNING,
        sentence=f"{_named(where)} is true of an object that has no conditions yet",
        where=where,
        why="`all` over an empty list is true: the gate opens before anybody has said anything",
        fix="ask with `exists` for the condition that must be there",
    )


def _unawaited(unit: Unit, one: Dependency, where: Place | None) -> Finding:
    return Finding(
        code="flux.unawaited",
        severity=Severity.WARNING,
        sentence=f"`{unit.id}` does not wait until `{one.unit}` is ready",
        where=where,
        why="`readyExpr` is true before that one has begun, and Flux asks for nothing else",
        fix="ask for its condition `Ready` in the expression as well",
        semantics=(FLUX.name,),
    )


def _unsure(unit: Unit, one: Dependency, where: Place | None, problem: str) -> Finding:
    return Finding(
        code="flux.unsure",
        severity=Severity.WARNING,
        sentence=f"`{unit.id}` waits until `{one.unit}` is ready, whatever `readyExpr` says then",
        where=where,
        why=f"it asks for what only a live Flux tells: {foreign(problem)}",
    )


def _missing(owner: str, where: Place | None) -> Finding:
    return Finding(
        code="flux.unevaluated",
        severity=Severity.WARNING,
        sentence=f"expressions of {owner} are not evaluated: CEL is not installed",
        where=where,
        why="objects are judged by the rules of their kinds, and dependencies by readiness",
        fix="install `tidegate[cel]`",
    )


def _named(where: Place | None) -> str:
    return f"`{where.field}`" if where and where.field else "the expression"
