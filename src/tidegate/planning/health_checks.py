"""Checks of CEL expressions and health checks before planning.

Health expressions are compiled, and evaluated for an object without status. Readiness
expressions of dependencies are evaluated twice: for a unit that has not started, and for a
ready one. The specs of both units are known from Git, and so is the status of a ready unit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from tidegate.dialect.flux.field_reader import STABLE_VERSIONS
from tidegate.dialect.units import is_dialect_kind
from tidegate.documents import Document
from tidegate.errors import Location, sanitize
from tidegate.health.cel.messages import (
    CelCompileError,
    CelEvaluationError,
    CelMatch,
    CelRequest,
    CelResponse,
    decode_cel_response,
    encode_cel_request,
)
from tidegate.model.finding import Finding, Severity
from tidegate.model.k8s.json_fields import get_mapping, object_kind
from tidegate.model.k8s.objects import Json, JsonObject, Kind, Ref, with_served_version
from tidegate.model.units.expressions import HealthExpressions
from tidegate.model.units.semantics import FLUX
from tidegate.model.units.unit import Dependency, Unit, UnitId
from tidegate.planning.facts import PlanningFacts
from tidegate.workers.scripts import ScriptWorkers
from tidegate.workspace.discovery.unit_tree import RenderedUnit, UnitTree
from tidegate.workspace.locations import FieldLocator
from tidegate.workspace.selection import unit_resources

REVISION = "main@sha1:0000000000000000000000000000000000000000"
READY_CONDITIONS: Json = [
    {
        "type": "Ready",
        "status": "True",
        "reason": "ReconciliationSucceeded",
        "message": f"Applied revision: {REVISION}",
        "observedGeneration": 1,
    }
]
NOT_STARTED_STATUS: JsonObject = {"observedGeneration": -1}
READY_STATUS: JsonObject = {
    "observedGeneration": 1,
    "conditions": READY_CONDITIONS,
    "lastAppliedRevision": REVISION,
    "lastAttemptedRevision": REVISION,
}
EMPTY_STATUS: JsonObject = {"conditions": []}
STALLED_REASON = "Flux stalls, and retries only after the expression changes"


class ExpressionResults(msgspec.Struct):
    """The units after the check of their expressions, with findings."""

    members: list[RenderedUnit]
    findings: list[Finding] = msgspec.field(default_factory=list)
    stuck: dict[UnitId, Finding] = msgspec.field(default_factory=dict)
    """Units that never start or never end, with the first error."""


async def check_expressions(
    members: list[RenderedUnit],
    unit_trees: Iterable[UnitTree],
    cel: ScriptWorkers | None,
    repository_expressions: tuple[HealthExpressions, ...] = (),
) -> ExpressionResults:
    """Check the expressions of all units, and remove dependencies that never block.

    `repository_expressions`: the health expressions of the repository.
    """
    if not repository_expressions and not any(map(_has_expressions, members)):
        return ExpressionResults(members)
    if cel is None:
        missing = [
            _cel_missing_finding(f"`{member.unit.id}`", member.unit.location)
            for member in members
            if _has_expressions(member)
        ]
        missing += [
            _cel_missing_finding("tidegate.yaml", expression.location)
            for expression in repository_expressions[:1]
        ]
        return ExpressionResults(members, missing)
    checker = _ExpressionChecker(cel, unit_resources(unit_trees))
    results = await checker.run(members)
    results.findings += [
        finding
        for expression in repository_expressions
        for finding in await checker.check_health(expression)
    ]
    return results


def _has_expressions(member: RenderedUnit) -> bool:
    unit = member.unit
    return bool(unit.policy.expressions) or any(
        dependency.ready_when for dependency in unit.dependencies
    )


class _ExpressionChecker:
    def __init__(self, cel: ScriptWorkers, resources: Mapping[UnitId, Document]) -> None:
        self._cel = cel
        self._resources = resources

    async def run(self, members: list[RenderedUnit]) -> ExpressionResults:
        results = ExpressionResults([])
        for member in members:
            unit = member.unit
            findings = [
                finding
                for rule in unit.policy.expressions
                for finding in await self.check_health(rule)
            ]
            dependencies: list[Dependency] = []
            for dependency in unit.dependencies:
                dependency_findings, waits = await self._check_dependency(unit, dependency)
                findings += dependency_findings
                dependencies += [dependency] if waits else []
            errors = [finding for finding in findings if finding.severity is Severity.ERROR]
            if errors:
                results.stuck[unit.id] = errors[0]
            results.findings += findings
            changed = msgspec.structs.replace(unit, dependencies=tuple(dependencies))
            results.members.append(member if changed == unit else replace(member, unit=changed))
        return results

    async def check_health(self, rule: HealthExpressions) -> list[Finding]:
        findings: list[Finding] = []
        fields = (("current", rule.current), ("inProgress", rule.in_progress))
        for name, expression in (*fields, ("failed", rule.failed)):
            answer = await self._evaluate(expression, {}) if expression else CelMatch(-1)
            location = _field_location(rule.location, name)
            if isinstance(answer, CelCompileError):
                findings.append(_invalid_finding(location, answer.problem))
            elif name == "current" and answer == CelMatch(-1):
                findings.append(_never_true_finding(location, "it is false for every object"))
        if not findings and "conditions" in rule.current:
            without_status: JsonObject = {
                "metadata": {"generation": 1},
                "spec": {},
                "status": EMPTY_STATUS,
            }
            if await self._evaluate(rule.current, without_status) == CelMatch(0):
                findings.append(_always_true_finding(_field_location(rule.location, "current")))
        return findings

    async def _check_dependency(
        self, unit: Unit, dependency: Dependency
    ) -> tuple[list[Finding], bool]:
        """Return the findings about a dependency, and whether the unit waits for it."""
        if not dependency.ready_when or dependency.unit is None:
            return [], True
        location = _field_location(dependency.location, "readyExpr")
        unit_body, dependency_body = (
            resource.body if (resource := self._resources.get(unit_id)) else {}
            for unit_id in (unit.id, dependency.unit)
        )
        before = await self._evaluate_readiness(
            dependency.ready_when, unit_body, dependency_body, NOT_STARTED_STATUS
        )
        if isinstance(before, CelCompileError):
            return [_invalid_finding(location, before.problem)], True
        if before == CelMatch(0):
            waits = (
                unit.policy.requires_ready_dependencies or unit.policy.semantics.name != FLUX.name
            )
            return ([] if waits else [_no_wait_finding(unit, dependency, location)]), waits
        ready = await self._evaluate_readiness(
            dependency.ready_when, unit_body, dependency_body, READY_STATUS
        )
        match ready:
            case CelMatch(0):
                return [], True
            case CelEvaluationError(_, problem):
                return [_undecidable_finding(unit, dependency, location, problem)], True
            case _:
                why = f"it is false even if `{dependency.unit}` is ready"
                return [_never_true_finding(location, why)], True

    async def _evaluate_readiness(
        self,
        expression: str,
        unit_body: JsonObject,
        dependency_body: JsonObject,
        status: JsonObject,
    ) -> CelResponse:
        variables = {
            "self": _with_status(unit_body, READY_STATUS),
            "dep": _with_status(dependency_body, status),
        }
        return await self._evaluate(expression, variables, checked=True)

    async def _evaluate(
        self, expression: str, variables: Mapping[str, Json], *, checked: bool = False
    ) -> CelResponse:
        request = CelRequest((expression,), msgspec.json.encode(variables), checked)
        return decode_cel_response(await self._cel.request(encode_cel_request(request)))


def _with_status(body: JsonObject, status: JsonObject) -> JsonObject:
    metadata: JsonObject = {**get_mapping(body, "metadata"), "generation": 1}
    return {**body, "metadata": metadata, "status": status}


def _field_location(location: Location | None, name: str) -> Location | None:
    return location and location.with_field(f"{location.field}.{name}")


def _invalid_finding(location: Location | None, problem: str) -> Finding:
    return Finding(
        code="flux.expression",
        severity=Severity.ERROR,
        message=f"{_field_name(location)} is invalid: {sanitize(problem)}",
        location=location,
        reason=STALLED_REASON,
        fix="correct the expression",
    )


def _never_true_finding(location: Location | None, why: str) -> Finding:
    return Finding(
        code="flux.never",
        severity=Severity.ERROR,
        message=f"{_field_name(location)} is never true",
        location=location,
        reason=f"{why}, so its dependents wait forever",
        fix="correct the expression",
    )


def _always_true_finding(location: Location | None) -> Finding:
    return Finding(
        code="flux.always-true",
        severity=Severity.NOTE,
        message=f"{_field_name(location)} is true for an object without conditions",
        location=location,
        reason="`all` is true for an empty list, which some controllers write first",
        fix="require the condition with `exists`",
    )


def _no_wait_finding(unit: Unit, dependency: Dependency, location: Location | None) -> Finding:
    return Finding(
        code="flux.not-awaited",
        severity=Severity.WARNING,
        message=f"`{unit.id}` does not wait until `{dependency.unit}` is ready",
        location=location,
        reason="`readyExpr` is true before the dependency starts, and Flux checks nothing else",
        fix="also require the condition `Ready` of the dependency in the expression",
        semantics=(FLUX.name,),
    )


def _undecidable_finding(
    unit: Unit, dependency: Dependency, location: Location | None, problem: str
) -> Finding:
    return Finding(
        code="flux.ready-expression",
        severity=Severity.WARNING,
        message=(
            f"`readyExpr` cannot be evaluated: `{unit.id}` waits until `{dependency.unit}` is ready"
        ),
        location=location,
        reason=f"only a live Flux can provide the value: {sanitize(problem)}",
    )


def _cel_missing_finding(owner: str, location: Location | None) -> Finding:
    return Finding(
        code="flux.unevaluated",
        severity=Severity.WARNING,
        message=f"CEL expressions of {owner} are not evaluated: CEL is not installed",
        location=location,
        reason="the built-in health rules and dependency readiness are used instead",
        fix="install `tidegate[cel]`",
    )


def _field_name(location: Location | None) -> str:
    return f"`{location.field}`" if location and location.field else "the expression"


GroupKind = tuple[str, str]


def resolve_health_checks(
    members: list[RenderedUnit], facts: PlanningFacts
) -> tuple[list[RenderedUnit], list[Finding]]:
    """Return the units with their health checks in served versions, and findings.

    Flux matches group and kind only, so an old version works there, too.
    """
    findings: list[Finding] = []
    resolved: list[RenderedUnit] = []
    deployed_kinds = (
        _deployed_kinds(members)
        if any(member.unit.policy.gating_refs for member in members)
        else {}
    )
    parents = {_unit_key(member.unit): member.unit.parent for member in members}
    for rendered_unit in members:
        unit = rendered_unit.unit
        if not unit.policy.gating_refs:
            resolved.append(rendered_unit)
            continue
        kinds = {served.kind: None for served in facts.kinds[unit.destination.cluster]}
        refs = tuple(_served_ref(ref, kinds, deployed_kinds) for ref in unit.policy.gating_refs)
        pairs = enumerate(zip(unit.policy.gating_refs, refs, strict=True))
        findings += [
            _version_finding(unit, index, old, new) for index, (old, new) in pairs if old != new
        ]
        unserved = [check for check in refs if _is_unserved_unit(check, unit, parents, kinds)]
        findings += [_unchecked_finding(unit, check) for check in unserved]
        checks = tuple(check for check in refs if check not in unserved)
        policy = msgspec.structs.replace(unit.policy, gating_refs=checks)
        resolved.append(rendered_unit.with_policy(policy))
    return resolved, [*FieldLocator(facts.root).locate_findings(findings)]


def _deployed_kinds(members: Iterable[RenderedUnit]) -> dict[GroupKind, Kind]:
    """Return the kinds of all rendered objects, in the version in which they are rendered."""
    bodies = (document.body for member in members for document in member.documents)
    kinds = (object_kind(body) for body in bodies)
    return {(kind.group, kind.name): kind for kind in kinds}


def _served_ref(ref: Ref, kinds: dict[Kind, None], deployed_kinds: dict[GroupKind, Kind]) -> Ref:
    """Return the object in a served version, or in the version in which it is rendered."""
    served = with_served_version(ref, kinds)
    if served.kind in kinds or ref.kind.version in STABLE_VERSIONS:
        return served
    kind = deployed_kinds.get((ref.kind.group, ref.kind.name), ref.kind)
    return msgspec.structs.replace(ref, kind=kind)


def _unit_key(unit: Unit) -> tuple[str, str, str]:
    return unit.id.kind, unit.id.namespace, unit.id.name


def _is_unserved_unit(
    ref: Ref,
    unit: Unit,
    parents: dict[tuple[str, str, str], UnitId | None],
    kinds: dict[Kind, None],
) -> bool:
    """Return whether a ref is the resource of a unit with another parent and an unserved kind."""
    name = (ref.kind.name, ref.namespace, ref.name)
    is_unit = is_dialect_kind(ref.kind) and name in parents
    return is_unit and parents[name] != unit.id and ref.kind not in kinds


def _unchecked_finding(unit: Unit, ref: Ref) -> Finding:
    return Finding(
        code="flux.uncheckable",
        severity=Severity.WARNING,
        message=f"`{unit.id}` does not wait for {ref}",
        location=unit.location and unit.location.with_field("spec.healthChecks"),
        reason="another unit deploys it, and the cluster does not serve its kind",
        fix="depend on that unit with `dependsOn`",
    )


def _version_finding(unit: Unit, index: int, old: Ref, new: Ref) -> Finding:
    location = unit.location and unit.location.with_field(f"spec.healthChecks[{index}].apiVersion")
    return Finding(
        code="flux.check",
        severity=Severity.NOTE,
        message=f"a health check uses `{old.kind.api_version}` of {old.kind.name}, which is not"
        " served",
        location=location,
        reason="Flux matches group and kind only, so the check still works",
        fix=f"set apiVersion `{new.kind.api_version}`",
    )
