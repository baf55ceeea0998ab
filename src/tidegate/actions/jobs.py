"""Jobs and hooks of units: their status, and running one again with its dependents."""

from __future__ import annotations

from difflib import get_close_matches

import msgspec
from msgspec.structs import replace

from tidegate.actions.sync import prepare_rollout, refuse_unsafe
from tidegate.clusters.journal import read_journal
from tidegate.clusters.reader import get_objects, object_body
from tidegate.clusters.session import Session
from tidegate.errors import UsageError, sanitize
from tidegate.health.recorded_time import read_timestamp
from tidegate.model.k8s.json_fields import get_int, get_mappings, get_text
from tidegate.model.k8s.objects import ClusterRef, Json, Ref, versionless_key
from tidegate.model.plans.plan import Plan, PlanItem, Step, step_items
from tidegate.model.rollouts.names import step_name
from tidegate.model.views.jobs import JobRow
from tidegate.plan.changes.rerun import affected_units, find_tasks, is_task, rerun
from tidegate.planning.plan import PlanResult
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
    live_objects: dict[ClusterRef, dict[str, Json]] = {}
    for cluster in dict.fromkeys(step.cluster for step, _ in runs):
        refs = {
            versionless_key(run_item.ref): run_item.ref
            for step, run_item in runs
            if step.cluster == cluster
        }
        for live in await get_objects(session.world, refs.values(), cluster=cluster):
            live_objects[ClusterRef(cluster, refs[versionless_key(live.ref)])] = object_body(live)
    return [
        _job_row(step, item, live_objects.get(ClusterRef(step.cluster, item.ref)))
        for step, item in runs
    ]


def _job_row(step: Step, item: PlanItem, live: dict[str, Json] | None) -> JobRow:
    row = JobRow(unit=step.unit, step=step_name(step), ref=item.ref, is_hook=item.hook is not None)
    if live is None or item.ref.kind.name != "Job":
        return row if live is None else replace(row, status="Exists")
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
    runs = find_tasks(plan)
    matches = [
        (step, item)
        for step, item in runs
        if name in {item.ref.name, f"{item.ref.namespace}/{item.ref.name}", str(item.ref)}
    ]
    if not matches:
        closest = get_close_matches(name, [item.ref.name for _, item in runs], n=1)
        guess = f"did you mean `{closest[0]}`? " if closest else ""
        problem = f"no Job or hook `{sanitize(name)}` found"
        hint = f"{guess}list all with `tidegate jobs list`"
        raise UsageError("usage.job", problem, hint=hint)
    if len(matches) > 1:
        names = ", ".join(f"{item.ref} of `{step.unit}`" for step, item in matches)
        problem = f"name `{sanitize(name)}` is ambiguous: {names}"
        hint = "use `Job NAMESPACE/NAME`, or select a unit with `--unit`"
        raise UsageError("usage.job", problem, hint=hint)
    return matches[0]
