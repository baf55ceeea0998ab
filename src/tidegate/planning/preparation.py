"""Preparation of a plan: policies, expressions, and everything that clusters are asked for.

plan_result = await prepare_plan(workspace.unit_trees, session)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tidegate.clusters.session import Session
from tidegate.model.finding import Finding, Severity
from tidegate.model.units.semantics import Semantics
from tidegate.model.units.unit import Unit, UnitId
from tidegate.planning.exclusions import exclude_units, without_tidegate_dependencies
from tidegate.planning.facts import read_planning_facts
from tidegate.planning.health_checks import check_expressions
from tidegate.planning.manifests import UnitManifests, read_manifests
from tidegate.planning.ownership import reject_shared
from tidegate.planning.plan import PlanInputs, PlanResult, make_plan
from tidegate.planning.policies import resolve_policies
from tidegate.workspace.discovery.unit_tree import RenderedUnit, UnitTree


async def prepare_plan(
    unit_trees: Sequence[UnitTree],
    session: Session,
    resources: tuple[str, ...] = (),
    semantics: Semantics | None = None,
    *,
    excluded: Mapping[UnitId, Finding] | None = None,
    is_removal: bool = False,
) -> PlanResult:
    """Ask what planning must know, and return the plan of these unit trees.

    Live objects that are not in the plan are pruned, so the plan must be complete if a unit
    prunes. Without `semantics` each unit runs with those of its dialect.
    `resources`: limits the plan to these objects.
    `excluded`: by unit, its error; if given, units in a dependency cycle are also excluded.
    `is_removal`: the units are deleted, so project rules and sync windows do not apply.
    Raises if an object belongs to another unit that does not share it.
    """
    members = [member for unit_tree in unit_trees for member in unit_tree.members]
    all_units = frozenset(member.unit.id for member in members)
    members = resolve_policies(
        members, semantics, is_partial=bool(resources), is_removal=is_removal
    )
    members, unmatched = _split_unmatched(members)
    members, ignored = without_tidegate_dependencies(members)
    checked = await check_expressions(members, unit_trees, session.cel, session.targets.expressions)
    members, findings = exclude_units(checked.members)
    plan_inputs = PlanInputs(
        members=members,
        all_units=all_units,
        facts=await read_planning_facts(members, session),
        resources=resources,
        breaks_cycles=excluded is not None,
        findings=(*unmatched, *ignored, *checked.findings, *findings),
        stuck=checked.stuck,
        excluded=excluded or {},
    )
    plan_result = make_plan(plan_inputs)
    await reject_shared(plan_result.plan, session)
    return plan_result


async def read_valid_manifests(
    members: Iterable[RenderedUnit], session: Session
) -> tuple[UnitManifests, ...]:
    """Return the manifests of those units that have no faults."""
    members = tuple(members)
    return tuple(read_manifests(members, await read_planning_facts(members, session)).units)


def _split_unmatched(members: list[RenderedUnit]) -> tuple[list[RenderedUnit], list[Finding]]:
    """Return the units that match a RollingSync step or need none, and findings on the others."""
    unmatched = [
        member.unit
        for member in members
        if member.unit.rolling_sync_step is not None and not member.unit.rolling_sync_step.number
    ]
    unmatched_ids = {unit.id for unit in unmatched}
    matched = [member for member in members if member.unit.id not in unmatched_ids]
    return matched, [_unmatched_finding(unit) for unit in unmatched]


def _unmatched_finding(unit: Unit) -> Finding:
    return Finding(
        code="appset.unmatched",
        severity=Severity.WARNING,
        message=f"`{unit.id}` is never synced",
        location=unit.location,
        reason=f"no step of `{unit.generated_by}` matches it",
        fix="add a step, or a label that a step matches",
    )
