"""The plan of a rollout: the removals of units that left Git, and what must not be rolled out."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from tidegate.clusters.session import Session
from tidegate.controllers.requests import refuse_suspended
from tidegate.model.plans.plan import Plan
from tidegate.model.units.semantics import TIDEGATE
from tidegate.model.units.unit import UnitId
from tidegate.planning.exclusions import apply_suspensions
from tidegate.planning.plan import PlanResult, PreparedRollout
from tidegate.planning.policies import with_drift_detection
from tidegate.planning.preparation import prepare_plan
from tidegate.releases.history import has_releases
from tidegate.removal.moved_releases import with_removals
from tidegate.rollout.replan import regenerates_during_rollout
from tidegate.simulation.assumptions import reload_with_assumptions
from tidegate.workspace.rendering.result import require_deployable
from tidegate.workspace.request import LoadRequest, UnitSelection
from tidegate.workspace.workspace import Workspace


async def prepare_rollout(
    workspace: Workspace,
    session: Session,
    resources: tuple[str, ...],
    *,
    keep_going: bool,
    requested: UnitSelection | None = None,
) -> PreparedRollout:
    """Plan the workspace. Without `keep_going`, an error in one unit stops all of them.

    `requested`: raise if one of these units is suspended, instead of leaving it out.
    """
    if requested is not None:
        await refuse_suspended(requested, workspace, session)
    left_out = workspace.faulty_units if keep_going else None
    unit_trees, suspension_findings = await apply_suspensions(workspace.deployable_trees, session)
    unit_trees = with_drift_detection(unit_trees)
    plan_result = await prepare_plan(unit_trees, session, resources, TIDEGATE, excluded=left_out)
    if not resources:
        plan_result = await with_removals(plan_result, session)
    faults = {
        unit: fault.reason
        for unit, fault in plan_result.faults.items()
        if unit not in workspace.unavailable
    }
    return PreparedRollout(
        plan_result, (*workspace.findings, *plan_result.findings, *suspension_findings), faults
    )


def can_plan_change(plan: Plan, session: Session) -> bool:
    """Return whether the plan may change before it is rolled out.

    A simulated repository has no commits; but each attempt of a release is a new revision, and
    an ApplicationSet may have to generate for a new cluster.
    """
    return (
        session.targets.simulation is None or has_releases(plan) or regenerates_during_rollout(plan)
    )


async def replan(
    request: LoadRequest,
    session: Session,
    resources: tuple[str, ...],
    left_out: Mapping[UnitId, str],
    *,
    ignore_sops_mac: bool,
) -> PlanResult:
    """Return the plan of the current state. Raises the errors of the plan.

    Errors of units in `left_out` are known and not raised again.
    """
    workspace, _ = await reload_with_assumptions(session, request)
    prepared = await prepare_rollout(workspace, session, resources, keep_going=bool(left_out))
    is_known = bool(left_out) and prepared.left_out.keys() <= left_out.keys()
    workspace.require_no_errors(prepared.plan_result.findings, keep_going=is_known)
    faults = dict(prepared.left_out)
    if session.targets.simulation is None:
        faults = refuse_unsafe(prepared, keep_going=is_known, ignore_sops_mac=ignore_sops_mac)
    return replace(prepared.plan_result, rejected=faults)


def refuse_unsafe(
    prepared: PreparedRollout, *, keep_going: bool, ignore_sops_mac: bool
) -> dict[UnitId, str]:
    """Return the units that must not be rolled out to a real cluster, with the reason.

    Raises the errors instead, unless `keep_going` is set.
    """
    plan_result = prepared.plan_result
    if keep_going:
        unsafe = plan_result.find_unsafe(ignore_sops_mac=ignore_sops_mac)
        return {**prepared.left_out, **unsafe}
    require_deployable(plan_result.rendered, ignore_sops_mac=ignore_sops_mac)
    return {**prepared.left_out}
