"""A sync: the rollout of a workspace, from its plan to the resumed controllers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from tidegate.actions.rollout_plan import (
    can_plan_change,
    prepare_rollout,
    refuse_unsafe,
    replan,
)
from tidegate.actions.user import RolloutUser
from tidegate.clusters.journal import delete_record
from tidegate.clusters.session import Session
from tidegate.controllers.takeover import TakeoverResult, resume_controllers, take_over
from tidegate.inspection.diff import Preview, compare_plan
from tidegate.inspection.saved_plan import SavedPlan, with_saved_plan
from tidegate.model.rollouts.event import RolloutOutcome
from tidegate.model.units.policy import PreflightMode
from tidegate.model.units.unit import UnitId
from tidegate.planning.plan import PlanResult, PreparedRollout
from tidegate.releases.history import build_history
from tidegate.rollout.run import RolloutOptions
from tidegate.rollout.status_writer import build_statuses
from tidegate.workspace.request import LoadRequest
from tidegate.workspace.selection import find_approved_units
from tidegate.workspace.workspace import Workspace


class SyncOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a workspace is synced."""

    resources: tuple[str, ...] = ()
    """The objects to sync, as the user named them; all if empty."""
    saved_plan: SavedPlan | None = None
    """The plan that must be rolled out unchanged."""
    refuses_suspended: bool = False
    """Whether a suspended unit that the user selected is an error."""
    keep_going: bool = False
    """Whether units with errors are left out, with their dependents."""
    ignore_sops_mac: bool = False
    takes_over: bool = False
    """Whether a running Argo CD or Flux is paused for these units."""
    hands_back: bool = False
    """Whether paused controllers are resumed afterwards."""
    preflight_mode: PreflightMode = PreflightMode.AUTO
    approved: tuple[str, ...] = ()
    """Names of units that do not wait for an approval."""


async def sync(
    request: LoadRequest,
    workspace: Workspace,
    session: Session,
    options: SyncOptions,
    user: RolloutUser,
    confirm: Callable[[Preview], None] | None,
) -> RolloutOutcome:
    """Roll out a workspace. `confirm` asks the user about the changes, and raises if they decline.

    Raises PlanError before the first write if an object or a unit must not be rolled out.
    """
    prepared = await _prepare(request, workspace, session, options)
    user.show_findings(prepared.findings)
    workspace.require_no_errors(prepared.plan_result.findings, keep_going=options.keep_going)
    left_out = _left_out_units(prepared, session, options)
    approved = find_approved_units(options.approved, workspace.members)
    user.warn(prepared.plan_result.notes)
    if confirm is not None:
        preview = (await compare_plan(prepared.plan_result, session)).preview
        if preview.has_changes:
            confirm(preview)
    takeover = await take_over(
        prepared.plan_result,
        session,
        takes_over=options.takes_over,
        hands_back=options.hands_back,
    )
    user.note(takeover.notes)
    newer_plans = _NewerPlans(request, session, options, takeover, left_out)
    rollout_options = RolloutOptions(
        skip_faulty_units=options.keep_going,
        preflight_mode=options.preflight_mode,
        excluded=left_out,
        approved=approved,
        replan=newer_plans.make if _can_change(prepared.plan_result, session, options) else None,
    )
    if not options.resources:  # a part of a unit does not tell the status of the unit
        rollout_options = msgspec.structs.replace(
            rollout_options,
            statuses=await build_statuses(takeover.plan_result, session, prepared.fault_findings),
            history=await build_history(takeover.plan_result, session),
        )
    outcome = await user.roll_out(takeover.plan_result.plan, rollout_options)
    has_passed = outcome is RolloutOutcome.PASSED
    for unit in (newer_plans.newest or prepared.plan_result).removed_units if has_passed else ():
        await delete_record(unit, session.world)
    if options.hands_back and has_passed:
        user.note(await resume_controllers(takeover, session))
    elif takeover.paused:
        user.note((f"{takeover.paused_message}; add `--hand-back` to resume them",))
    return outcome


async def _prepare(
    request: LoadRequest, workspace: Workspace, session: Session, options: SyncOptions
) -> PreparedRollout:
    """Return the plan of the workspace, or the saved plan if the workspace still has it."""
    prepared = await prepare_rollout(
        workspace,
        session,
        options.resources,
        keep_going=options.keep_going,
        requested=request.selection if options.refuses_suspended else None,
    )
    if options.saved_plan is None:
        return prepared
    return await with_saved_plan(options.saved_plan, prepared, workspace, session)


def _left_out_units(
    prepared: PreparedRollout, session: Session, options: SyncOptions
) -> dict[UnitId, str]:
    """Return the units that are not rolled out, with the reason."""
    if session.targets.simulation is not None:
        return {**prepared.left_out}
    return refuse_unsafe(
        prepared, keep_going=options.keep_going, ignore_sops_mac=options.ignore_sops_mac
    )


def _can_change(plan_result: PlanResult, session: Session, options: SyncOptions) -> bool:
    """Return whether the plan may change during the rollout; a saved one is never changed."""
    return options.saved_plan is None and can_plan_change(plan_result.plan, session)


class _NewerPlans:
    """Makes newer plans of a running sync."""

    def __init__(
        self,
        request: LoadRequest,
        session: Session,
        options: SyncOptions,
        takeover: TakeoverResult,
        left_out: Mapping[UnitId, str],
    ) -> None:
        self._request = request
        self._session = session
        self._options = options
        self._takeover = takeover
        self._left_out = left_out if options.keep_going else {}
        self.newest: PlanResult | None = None

    async def make(self) -> PlanResult:
        """Return the plan of the current state."""
        plan_result = await replan(
            self._request,
            self._session,
            self._options.resources,
            self._left_out,
            ignore_sops_mac=self._options.ignore_sops_mac,
        )
        self.newest = self._takeover.pause_in_plan(plan_result)
        return self.newest
