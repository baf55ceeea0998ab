"""Jobs and hooks of units: their status, and running one again with its dependents."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec
from msgspec.structs import replace

from tidegate.actions.rollout_plan import prepare_rollout, refuse_unsafe
from tidegate.actions.user import RolloutUser
from tidegate.clusters.journal import read_journal
from tidegate.clusters.reader import get_objects
from tidegate.clusters.session import Session
from tidegate.controllers.takeover import take_over
from tidegate.errors import UsageError
from tidegate.health.recorded_time import read_timestamp
from tidegate.model.k8s.json_fields import get_int, get_mappings, get_text
from tidegate.model.k8s.objects import ClusterRef, LiveObject, Ref, object_body
from tidegate.model.plans.plan import Plan, PlanItem, Step, step_items
from tidegate.model.rollouts.event import RolloutOutcome
from tidegate.model.rollouts.names import step_name
from tidegate.model.text.names import resolve_name
from tidegate.model.views.jobs import JobRow
from tidegate.plan.changes.rerun import affected_units, find_tasks, is_task, rerun
from tidegate.planning.plan import PlanResult
from tidegate.rollout.run import RolloutOptions
from tidegate.workspace.workspace import Workspace

END_CONDITIONS = ("Complete", "Failed", "Suspended")
"""Conditions of a Job that determine its status."""


class JobRerun(msgspec.Struct, frozen=True):
    """A Job or hook to run again, and the plan with its dependents."""

    plan_result: PlanResult
    ref: Ref

    @property
    def also_run(self) -> list[Ref]:
        """Other Jobs and hooks that are run again."""
        items = [item for step in self.plan_result.plan.steps for item in step_items(step)]
        return [
            run_item.ref for run_item in items if is_task(run_item) and run_item.ref != self.ref
        ]


async def list_jobs(session: Session, workspace: Workspace) -> list[JobRow]:
    """Return all Jobs and hooks, in plan order."""
    prepared = await prepare_rollout(workspace, session, (), keep_going=True)
    runs = find_tasks(prepared.plan_result.plan)
    cluster_refs = [ClusterRef(step.cluster, item.ref) for step, item in runs]
    live_objects = await get_objects(session.world, cluster_refs)
    return [
        _job_row(step, item, live_objects.get(cluster_ref))
        for (step, item), cluster_ref in zip(runs, cluster_refs, strict=True)
    ]


def _job_row(step: Step, item: PlanItem, live_job: LiveObject | None) -> JobRow:
    row = JobRow(unit=step.unit, step=step_name(step), ref=item.ref, is_hook=item.hook is not None)
    if live_job is None or item.ref.kind.name != "Job":
        return row if live_job is None else replace(row, status="Exists")
    live = object_body(live_job)
    conditions = {
        get_text(condition, "type"): condition
        for condition in get_mappings(live, "status", "conditions")
        if get_text(condition, "status") == "True"
    }
    end = next(
        (end_condition for end_condition in END_CONDITIONS if end_condition in conditions), ""
    )
    running = "Running" if get_int(live, "status", "active") else "Pending"
    completed = read_timestamp(live, "status", "completionTime")
    return replace(
        row,
        status=end or running,
        finished=completed or read_timestamp(conditions.get("Failed"), "lastTransitionTime"),
    )


async def rerun_job(
    name: str,
    workspace: Workspace,
    session: Session,
    user: RolloutUser,
    confirm: Callable[[JobRerun], None] | None,
) -> RolloutOutcome:
    """Run a Job or hook again, then everything that depends on it.

    `confirm` asks the user, and raises if they decline. A running Argo CD or Flux is not paused.
    """
    planned_rerun = await plan_rerun(session, workspace, name)
    user.show_findings(workspace.findings)
    if confirm is not None:
        confirm(planned_rerun)
    takeover = await take_over(planned_rerun.plan_result, session)
    user.note(takeover.notes)
    return await user.roll_out(takeover.plan_result.plan, RolloutOptions())


async def plan_rerun(session: Session, workspace: Workspace, name: str) -> JobRerun:
    """Return the plan that runs a Job or hook again.

    Raises UsageError if the name matches none, or several.
    """
    prepared = await prepare_rollout(workspace, session, (), keep_going=False)
    workspace.require_no_errors(prepared.plan_result.findings, keep_going=False)
    if session.targets.simulation is None:
        refuse_unsafe(prepared, keep_going=False, ignore_sops_mac=False)
    plan = prepared.plan_result.plan
    step, item = _find_job(plan, name)
    finished_digests = {
        unit.id: (await read_journal(unit, session.world)).journal.completed_digest
        for unit in affected_units(plan, step)
    }
    narrowed = rerun(plan, step, item.ref, finished_digests)
    return JobRerun(replace(prepared.plan_result, plan=narrowed), item.ref)


def _find_job(plan: Plan, name: str) -> tuple[Step, PlanItem]:
    """Return the Job or hook of this name, which may be prefixed with its namespace."""
    runs = (
        ((*item.ref.names, f"{item.ref} of {step.unit}"), (step, item))
        for step, item in find_tasks(plan)
    )
    return resolve_name(
        name,
        runs,
        partial(UsageError, "usage.job"),
        noun="Job or hook",
        hint="list all with `tidegate jobs list`",
    )
