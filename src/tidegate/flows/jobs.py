"""Jobs and hooks of units: how they stand, and how one is run again with what waits for it."""

from __future__ import annotations

from difflib import get_close_matches

import msgspec
from msgspec.structs import replace

from tidegate.errors import WordsError, foreign
from tidegate.flows.entering import Found
from tidegate.flows.journal import read_journal
from tidegate.flows.looking import body_of, look_at
from tidegate.flows.planning import Planned
from tidegate.flows.session import Session
from tidegate.flows.syncing import prepare, refuse_unknown
from tidegate.health.since import moment_in
from tidegate.model.objects import Json, Ref, Spot, identity
from tidegate.model.plan import Item, Plan, Step, items_of
from tidegate.model.reading import mappings, number, text
from tidegate.plan.rerun import is_run, rerun, runs_in, units_behind
from tidegate.report.jobs import JobRow
from tidegate.report.rollout.names import name_step

ENDS = ("Complete", "Failed", "Suspended")
"""Conditions of a Job that say how it stands."""


class Rerunning(msgspec.Struct, frozen=True):
    """What is run again, what waits behind it, and the plan of both."""

    planned: Planned
    ref: Ref

    @property
    def behind(self) -> list[Ref]:
        """Jobs and hooks that are run again as well."""
        items = [item for step in self.planned.plan.steps for item in items_of(step)]
        return [one.ref for one in items if is_run(one) and one.ref != self.ref]


async def list_jobs(session: Session, found: Found) -> list[JobRow]:
    """All Jobs and hooks, in the order of the plan."""
    prepared = await prepare(found, session, (), keeps_going=True)
    runs = runs_in(prepared.planned.plan)
    lives: dict[Spot, dict[str, Json]] = {}
    for cluster in dict.fromkeys(step.cluster for step, _ in runs):
        refs = {identity(one.ref): one.ref for step, one in runs if step.cluster == cluster}
        for live in await look_at(session.world, refs.values(), cluster=cluster):
            lives[Spot(cluster, refs[identity(live.ref)])] = body_of(live)
    return [_row(step, item, lives.get(Spot(step.cluster, item.ref))) for step, item in runs]


def _row(step: Step, item: Item, live: dict[str, Json] | None) -> JobRow:
    row = JobRow(unit=step.unit, step=name_step(step), ref=item.ref, is_hook=item.hook is not None)
    if live is None or item.ref.kind.name != "Job":
        return row if live is None else replace(row, status="there")
    conditions = {
        text(one, "type"): one
        for one in mappings(live, "status", "conditions")
        if text(one, "status") == "True"
    }
    end = next((one for one in ENDS if one in conditions), "")
    running = "Running" if number(live, "status", "active") else "Pending"
    at = moment_in(live, "status", "completionTime")
    return replace(
        row,
        status=end or running,
        finished=at or moment_in(conditions.get("Failed"), "lastTransitionTime"),
    )


async def plan_rerun(session: Session, found: Found, name: str) -> Rerunning:
    """The plan that runs a Job or hook again. Raises WordsError where none is meant, or several."""
    prepared = await prepare(found, session, (), keeps_going=False)
    found.refuse_faults(prepared.planned.findings, keeps_going=False)
    if session.target.simulation is None:
        refuse_unknown(prepared, keeps_going=False, takes_broken_seals=False)
    plan = prepared.planned.plan
    step, item = _called(plan, name)
    done = {
        unit.id: (await read_journal(unit, session.world)).journal.done
        for unit in units_behind(plan, step)
    }
    narrowed = rerun(plan, step, item.ref, done)
    return Rerunning(replace(prepared.planned, plan=narrowed), item.ref)


def _called(plan: Plan, name: str) -> tuple[Step, Item]:
    """The Job or hook of this name, which may have its namespace before it."""
    runs = runs_in(plan)
    found = [
        (step, item)
        for step, item in runs
        if name in {item.ref.name, f"{item.ref.namespace}/{item.ref.name}", str(item.ref)}
    ]
    if not found:
        near = get_close_matches(name, [item.ref.name for _, item in runs], n=1)
        guess = f"did you mean `{near[0]}`? " if near else ""
        problem = f"there is no Job and no hook `{foreign(name)}` here"
        raise WordsError("words.job", problem, hint=f"{guess}`tidegate jobs list` shows all")
    if len(found) > 1:
        names = ", ".join(f"{item.ref} of `{step.unit}`" for step, item in found)
        problem = f"several are called `{foreign(name)}`: {names}"
        hint = "write it as `Job NAMESPACE/NAME`, or choose a unit with `--unit`"
        raise WordsError("words.job", problem, hint=hint)
    return found[0]
