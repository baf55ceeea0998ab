"""Edits and commits of a scenario during a simulated rollout."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import structs
from msgspec.structs import replace

from tidegate.flows.assuming import reload_with_assumptions
from tidegate.flows.committing import ScenarioCommits
from tidegate.flows.entering import Workspace
from tidegate.flows.former_releases import with_moved_releases
from tidegate.flows.healing import RunSync, SelfHeal, failed_edit_findings
from tidegate.flows.late_clusters import regenerates_during_rollout
from tidegate.flows.planning import PlanResult, make_plan
from tidegate.flows.pointing import LoadRequest
from tidegate.flows.releases import HelmHistory, build_history, has_releases
from tidegate.flows.resyncing import DoubleSync
from tidegate.flows.session import Session
from tidegate.flows.taking_up import RefreshSchedule, RevisionRollout
from tidegate.flows.wiring import as_sandbox
from tidegate.model.absence import MissingDependency
from tidegate.model.drift import Drift
from tidegate.model.event import Event
from tidegate.model.finding import Finding
from tidegate.model.moment import Ms
from tidegate.model.plan import EdgeReason, Plan, PlanFragment
from tidegate.model.semantics import Semantics
from tidegate.model.unit import UnitId
from tidegate.model.uptake import RevisionSync

PREVENTS_START_CODES = ("units.unknown", "flux.itself", "argo.destination")
"""Codes of findings that prevent a unit from ever starting."""


class ScenarioChanges(msgspec.Struct):
    """A simulated rollout, with the changes that the scenario makes during and after it."""

    session: Session
    request: LoadRequest
    semantics: Semantics | None
    workspace: Workspace
    """The workspace that `plan_result` was made from."""
    plan_result: PlanResult
    """The newest plan that was rolled out."""
    commits: ScenarioCommits | None
    sync: RunSync
    until: Ms
    releases: HelmHistory
    """The release history of `plan_result`."""
    double_sync: DoubleSync
    missing_dependencies: tuple[MissingDependency, ...] = ()
    """Missing dependencies that newer plans added."""

    async def replan(self) -> PlanResult:
        """Return the plan of the current revision."""
        newer_request = self.commits and self.commits.request_at(self.request, self._elapsed)
        plan = self.plan_result.plan  # each try of a release is another revision
        if newer_request or regenerates_during_rollout(plan) or has_releases(plan):
            self.workspace, newly_missing = await reload_with_assumptions(
                self.session, newer_request or self.request
            )
            plan_result = await make_plan(
                self.workspace.deployable_trees, self.session, semantics=self.semantics
            )
            plan_result = await with_moved_releases(plan_result, self.session)
            excluded = {
                **find_unstartable_units(self.workspace, plan_result),
                **plan_result.rejected,
            }
            plan = _with_adopted_names(plan_result.plan) if newer_request else plan_result.plan
            self.plan_result = replace(plan_result, plan=plan, rejected=excluded)
            self.missing_dependencies = tuple(
                dict.fromkeys((*self.missing_dependencies, *newly_missing))
            )
        return self.plan_result

    @property
    def _elapsed(self) -> Ms:
        return Ms(self.session.world.now() - self._start)

    @property
    def _start(self) -> Ms:
        sandbox = as_sandbox(self.session.raw_world)
        return sandbox.started_at if sandbox is not None else Ms(0)

    async def sync_commits(self, events: Sequence[Event]) -> tuple[RevisionSync, ...]:
        """Roll out each commit after the other, and return what units did with it."""
        revision_syncs: list[RevisionSync] = []
        world, config = self.session.world, self.session.targets.simulation
        schedule = RefreshSchedule.from_events(events, self._start, config.seed if config else 0)
        for commit in self.commits.commits if self.commits else ():
            committed = Ms(self._start + commit.at)
            if committed > self.until:
                break
            client = world.client()
            while world.now() < committed:
                await client.wait(committed)
            old, newer = self.plan_result, await self.replan()
            self.releases = await build_history(newer, self.session, stores_charts=False)
            changed = schedule.changed_units(old, newer, committed)
            revision_rollout = RevisionRollout(
                world, self.sync, newer.plan, committed, self.until, self.double_sync
            )
            revision_syncs += await revision_rollout.run(changed)
        return tuple(revision_syncs)

    async def heal_drifts(self, events: Sequence[Event]) -> tuple[tuple[Drift, ...], list[Finding]]:
        """Return the drifts, reverted or not, and findings about failed edits."""
        sandbox = as_sandbox(self.session.raw_world)
        if sandbox is None or not (sandbox.edits or sandbox.next_edit() is not None):
            return (), []
        self_heal = SelfHeal(self.plan_result.plan, self.session, sandbox, self.sync, self.until)
        return await self_heal.run(events), failed_edit_findings(sandbox)


def _with_adopted_names(plan: Plan) -> Plan:
    """Return the plan of a newer revision, whose units may be defined in another location."""
    units = tuple(
        structs.replace(unit, policy=structs.replace(unit.policy, adopts_name=True))
        for unit in plan.units
    )
    return Plan.from_fragment(
        PlanFragment(units=units, steps=plan.steps, edges=plan.edges, slots=plan.slots)
    )


def find_unstartable_units(workspace: Workspace, plan_result: PlanResult) -> dict[UnitId, str]:
    """Return the units that no semantics would start, with the reason.

    Units without objects that others wait for are included. Unavailable units count as started.
    """
    plan = plan_result.plan
    planned_units = {unit.id for unit in plan.units} - workspace.unavailable
    awaited = {
        dependency.unit for member in workspace.members for dependency in member.unit.dependencies
    }
    first_steps = {edge.before for edge in plan.edges if edge.because is EdgeReason.ROLLOUT_STEP}
    awaited |= {step.unit for step in plan.steps if step.id in first_steps}
    unknown = {name: reason for name, reason in plan_result.faults.items() if name in awaited}
    faults = {**unknown, **workspace.faulty_units_for(PREVENTS_START_CODES)}
    return {name: reason for name, reason in faults.items() if name in planned_units}
