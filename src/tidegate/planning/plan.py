"""The plan of unit trees: manifests read by dialect, and put in order."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from tidegate.dialect.ownership.tracking import APPLICATION_SET
from tidegate.errors import TidegateError
from tidegate.graph.declared import find_external_dependencies, find_precedences
from tidegate.health.readiness_timeout import readiness_timeout
from tidegate.model.finding import Finding, Severity
from tidegate.model.plans.manifest import Manifests
from tidegate.model.plans.plan import Plan, PlannedUnit
from tidegate.model.units.unit import UnitId
from tidegate.plan.build.build import build_plan
from tidegate.plan.build.cycles import Cycle, CycleResolution, break_cycles
from tidegate.plan.changes.selection import select_objects
from tidegate.planning.exclusions import (
    unpruned_finding,
)
from tidegate.planning.facts import PlanningFacts
from tidegate.planning.health_checks import resolve_health_checks
from tidegate.planning.lookups import resolve_lookups
from tidegate.planning.manifests import (
    UnitManifests,
    find_further_problems,
    read_manifests,
    without_unknown_dependencies,
)
from tidegate.planning.ownership import find_shared_objects
from tidegate.planning.projects import (
    find_orphaned_resources,
    find_window_blocks,
    permanently_closed,
    window_findings,
)
from tidegate.schema.builtin import served_kinds
from tidegate.workspace.discovery.unit_tree import RenderedUnit
from tidegate.workspace.rendering.result import RenderResult, require_deployable


class Fault(msgspec.Struct, frozen=True):
    """Why a unit cannot be rolled out."""

    reason: str
    finding: Finding | None = None
    """The finding with this reason, if there is one."""

    @classmethod
    def from_finding(cls, finding: Finding) -> Fault:
        return cls(finding.message, finding)


class PlanResult(msgspec.Struct, frozen=True):
    """A plan, its inputs and its findings."""

    plan: Plan
    unit_manifests: tuple[UnitManifests, ...]
    """The manifests of each unit that could be read."""
    findings: tuple[Finding, ...] = ()
    faults: Mapping[UnitId, Fault] = msgspec.field(default_factory=dict)
    """By unit, why it cannot be rolled out. Such a unit is in the plan without its objects."""
    all_units: frozenset[UnitId] = frozenset()
    """All units, including those that are excluded from the plan."""
    removed_units: tuple[PlannedUnit, ...] = ()
    """Units that are gone after the rollout."""
    previous_releases: Mapping[UnitId, UnitId] = msgspec.field(default_factory=dict)
    """By the id of a removed previous release, the unit that was moved."""
    rejected: Mapping[UnitId, str] = msgspec.field(default_factory=dict)
    """The faults that block a unit under any semantics.

    Its project rejects it, or an expression is invalid or never true.
    """

    @property
    def notes(self) -> tuple[TidegateError, ...]:
        """Notes about uncertain results, each once."""
        return tuple(
            dict.fromkeys(note for manifests in self.unit_manifests for note in manifests.notes)
        )

    @property
    def unknown_units(self) -> tuple[UnitId, ...]:
        """Faulty units whose objects are not known."""
        known = {manifests.manifests.unit.id for manifests in self.unit_manifests}
        return tuple(unit for unit in self.faults if unit not in known)

    def find_unsafe(self, *, ignore_sops_mac: bool) -> dict[UnitId, str]:
        """Return, by unit, why its objects may be previewed but not applied."""
        unsafe: dict[UnitId, str] = {}
        for manifests in self.unit_manifests:
            try:
                require_deployable(manifests.rendered, ignore_sops_mac=ignore_sops_mac)
            except TidegateError as error:
                unsafe[manifests.manifests.unit.id] = error.problem
            except ExceptionGroup as errors:
                unsafe[manifests.manifests.unit.id] = "; ".join(map(_problem, errors.exceptions))
        return unsafe

    @property
    def rendered(self) -> RenderResult:
        return RenderResult.merge(manifests.rendered for manifests in self.unit_manifests)


def _problem(error: Exception) -> str:
    return error.problem if isinstance(error, TidegateError) else str(error)


class PlanInputs(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a plan is made from."""

    members: Sequence[RenderedUnit]
    """The units to plan, with their policies."""
    all_units: frozenset[UnitId]
    """All units, including those that are not planned."""
    facts: PlanningFacts
    resources: tuple[str, ...] = ()
    """The objects to plan, as the user named them; all if empty."""
    breaks_cycles: bool = False
    """Whether units in a dependency cycle are excluded; otherwise they are an error."""
    findings: tuple[Finding, ...] = ()
    """Findings about the selection of the units."""
    stuck: Mapping[UnitId, Finding] = msgspec.field(default_factory=dict)
    """Units that never start or never end, with the reason."""
    excluded: Mapping[UnitId, Finding] = msgspec.field(default_factory=dict)
    """Units that are not rolled out, with their errors."""


def make_plan(inputs: PlanInputs) -> PlanResult:
    """Return the plan of these inputs. Raises for a PATH that cannot be planned."""
    facts = inputs.facts
    members, checks = resolve_health_checks([*inputs.members], facts)
    manifest_set = read_manifests(members, facts)
    can_replan = not inputs.resources
    findings = [
        *inputs.findings,
        *checks,
        *find_further_problems(manifest_set, facts),
        *resolve_lookups(manifest_set, members, facts, can_replan=can_replan),
    ]
    desired = [
        *map(_manifests_to_plan, manifest_set.units),
        *map(_unknown_manifests, manifest_set.faulty.values()),
    ]
    planned_ids = {manifests.unit.id for manifests in desired}
    resolved = (without_unknown_dependencies(manifests, planned_ids) for manifests in desired)
    cycles = break_cycles(resolved) if inputs.breaks_cycles else CycleResolution([*resolved])
    plan = _build_plan(cycles.desired)
    if inputs.resources:
        plan = select_objects(plan, inputs.resources)
    manifests = [unit_manifests.manifests for unit_manifests in manifest_set.units]
    blocks = find_window_blocks((unit_manifests.unit for unit_manifests in manifests), facts.now)
    findings += [
        *find_shared_objects(plan),
        *_unpruned_findings(manifest_set.units),
        *find_orphaned_resources(manifests, facts.orphans, facts.evaluator.find_owner),
        *window_findings(blocks, facts.now, is_simulated=facts.is_simulated),
    ]
    cycle_findings = [(cycle, _cycle_finding(cycle)) for cycle in cycles.cycles]
    unrendered = Fault("cannot be rendered")
    rejected = {
        **_faults(manifest_set.rejected),
        **_faults(permanently_closed(blocks)),
        **_finding_faults(inputs.stuck, planned_ids),
    }
    faults = {
        **dict.fromkeys(manifest_set.faulty, unrendered),
        **_finding_faults(inputs.excluded, planned_ids),
        **{
            unit: Fault.from_finding(finding)
            for cycle, finding in reversed(cycle_findings)
            for unit in cycle.units
        },
        **rejected,
    }
    return PlanResult(
        plan,
        tuple(manifest_set.units),
        (*findings, *(finding for _, finding in cycle_findings), *manifest_set.findings),
        faults,
        inputs.all_units,
        rejected={unit: fault.reason for unit, fault in rejected.items()},
    )


def _faults(reasons: Mapping[UnitId, str]) -> dict[UnitId, Fault]:
    return {unit: Fault(reason) for unit, reason in reasons.items()}


def _finding_faults(
    findings: Mapping[UnitId, Finding], planned_ids: Collection[UnitId]
) -> dict[UnitId, Fault]:
    """Return the faults of those units that are in the plan."""
    return {
        unit: Fault.from_finding(finding)
        for unit, finding in findings.items()
        if unit in planned_ids
    }


def _build_plan(manifests: list[Manifests]) -> Plan:
    external = find_external_dependencies(manifests, served_kinds())
    return build_plan(
        manifests, find_precedences(manifests), external, readiness_timeout=readiness_timeout
    )


def _manifests_to_plan(unit_manifests: UnitManifests) -> Manifests:
    """Return the manifests to plan; a unit whose objects are not all known does not prune.

    Nor does an ApplicationSet that generates nothing, unless `--allow-empty` is given.
    """
    unit = unit_manifests.manifests.unit
    if unit_manifests.rendered.lookup_error is not None:
        return Manifests(unit=unit, has_known_objects=False)
    is_empty_set = unit.id.kind == APPLICATION_SET and not (
        unit_manifests.manifests.manifests or unit.policy.allow_empty
    )
    if not unit.policy.prune or (unit_manifests.is_complete and not is_empty_set):
        return unit_manifests.manifests
    policy = msgspec.structs.replace(unit.policy, prune=False)
    unpruned_unit = msgspec.structs.replace(unit, policy=policy)
    return msgspec.structs.replace(unit_manifests.manifests, unit=unpruned_unit)


def _unknown_manifests(member: RenderedUnit) -> Manifests:
    """Return empty manifests for a faulty unit, so that others can depend on it."""
    return Manifests(unit=member.unit, has_known_objects=False)


def _cycle_finding(cycle: Cycle) -> Finding:
    error, is_mutual = cycle.error, len(cycle.units) > 1
    return msgspec.structs.replace(
        Finding.from_error(error),
        reason="the units wait for each other, so none of them starts",
        unit=None if is_mutual else cycle.units[0],
        unit_problem=error.unit_problem,
        cycle=cycle.units if is_mutual else (),
    )


def _unpruned_findings(unit_manifests: Iterable[UnitManifests]) -> list[Finding]:
    pruning = [manifests for manifests in unit_manifests if manifests.manifests.unit.policy.prune]
    return [
        unpruned_finding(manifests.manifests.unit)
        for manifests in pruning
        if manifests.rendered.may_miss_objects
    ]


class PreparedRollout(msgspec.Struct, frozen=True):
    """The plan of a rollout with its findings and left-out units."""

    plan_result: PlanResult
    findings: tuple[Finding, ...]
    left_out: Mapping[UnitId, str]
    """Units that are not rolled out, with the reason."""

    @property
    def fault_findings(self) -> dict[UnitId, Finding]:
        """By unit, the error that keeps it from starting, or the first that its status reports."""
        reported = {
            finding.unit: finding
            for finding in reversed(self.findings)
            if finding.severity is Severity.ERROR and finding.unit and finding.unit_problem
        }
        faults = self.plan_result.faults.items()
        return {**reported, **{unit: fault.finding for unit, fault in faults if fault.finding}}
