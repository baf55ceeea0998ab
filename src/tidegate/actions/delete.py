"""Deletion of units: last waves first, with the deletion hooks around it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from tidegate.actions.user import RolloutUser
from tidegate.clusters.evaluator import prune_candidate
from tidegate.clusters.journal import StoredJournal, delete_record, read_journal
from tidegate.clusters.reader import ClusterReader
from tidegate.clusters.session import Session
from tidegate.controllers.takeover import report_still_paused, take_over_for_delete
from tidegate.errors import PlanError, TidegateError
from tidegate.health.readiness_timeout import readiness_timeout
from tidegate.model.finding import Finding, Severity
from tidegate.model.k8s.objects import ClusterRef, LiveObject, Ref, object_body
from tidegate.model.plans.manifest import Manifests
from tidegate.model.plans.plan import ItemAction, Plan, PlannedUnit, step_items
from tidegate.model.rollouts.event import RolloutOutcome
from tidegate.model.units.semantics import TIDEGATE
from tidegate.plan.build.build import plan_unit
from tidegate.plan.changes.delete_unit import build_deletion
from tidegate.plan.changes.delete_units import join_deletions
from tidegate.plan.changes.narrow import has_hooks
from tidegate.plan.changes.prune import PruneCandidate
from tidegate.planning.manifests import UnitManifests, error_from_finding
from tidegate.planning.plan import PlanResult
from tidegate.planning.preparation import prepare_plan
from tidegate.releases.history import build_uninstall_history
from tidegate.removal.prune import find_collateral_deletions
from tidegate.removal.uninstall import is_installed, with_final_step
from tidegate.rollout.run import RolloutOptions
from tidegate.workspace.rendering.result import (
    RenderFailure,
    RenderResult,
    render_notes,
    require_deployable,
)
from tidegate.workspace.workspace import Workspace
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.requests import Selection


class Deletion(msgspec.Struct, frozen=True, kw_only=True):
    """The plan that deletes a unit."""

    plan: Plan
    rendered: RenderResult
    stored_journal: StoredJournal
    deleted: tuple[Ref, ...] = ()
    """Objects that are deleted."""
    remaining: tuple[Ref, ...] = ()
    """Objects that stay because of their own options."""
    unconfirmed: tuple[Ref, ...] = ()
    """Objects among `remaining` that would be deleted after a confirmation."""
    other_owners: dict[ClusterRef, str] = {}
    """The Helm releases that lose a deleted object."""
    is_in_progress: bool = False
    """Whether the same deletion was started before and not finished."""
    has_release_records: bool = False
    """Whether the unit is a release with Helm release records."""

    @property
    def is_needed(self) -> bool:
        """Whether an object is to be deleted or a deletion hook may have to run."""
        is_unfinished = self.has_release_records or (self.is_in_progress and self.runs_hooks)
        return bool(self.deleted) or is_unfinished

    @property
    def effective_plan(self) -> Plan:
        """The plan; without steps if there is nothing to do."""
        return (
            self.plan if self.is_needed else msgspec.structs.replace(self.plan, steps=(), edges=())
        )

    @property
    def runs_hooks(self) -> bool:
        """Whether the plan creates hooks before everything is deleted."""
        return any(has_hooks(step) for step in self.plan.steps)


class Deletions(msgspec.Struct, frozen=True):
    """The plan that deletes all units, and the deletion of each."""

    plan: Plan
    units: tuple[Deletion, ...]
    plan_result: PlanResult
    """The plan of the units as Git has them."""
    findings: tuple[Finding, ...] = ()
    content_notes: tuple[TidegateError, ...] = ()
    """Notes about objects of other owners that are deleted along."""

    @property
    def deleted(self) -> tuple[Ref, ...]:
        return tuple(ref for deletion in self.units for ref in deletion.deleted)

    @property
    def other_owners(self) -> dict[ClusterRef, str]:
        return {
            ref: owner for deletion in self.units for ref, owner in deletion.other_owners.items()
        }

    @property
    def is_needed(self) -> bool:
        return any(deletion.is_needed for deletion in self.units)

    @property
    def notes(self) -> tuple[TidegateError, ...]:
        return (
            *(note for deletion in self.units for note in render_notes(deletion.rendered)),
            *self.content_notes,
        )


async def delete_units(
    workspace: Workspace,
    session: Session,
    user: RolloutUser,
    confirm: Callable[[Deletions], None] | None,
    *,
    takes_over: bool,
) -> tuple[Deletions, RolloutOutcome]:
    """Delete all units of a workspace in one rollout.

    `confirm` asks the user about the deletions, and raises if they decline. `takes_over`: a running
    Argo CD or Flux is paused for these units.
    """
    deletions = await plan_deletions(session, workspace)
    user.show_findings(deletions.findings)
    if confirm is not None and deletions.deleted:
        confirm(deletions)
    for deletion in deletions.units if session.targets.simulation is None else ():
        if deletion.runs_hooks:
            require_deployable(deletion.rendered, ignore_sops_mac=False)
    user.warn(deletions.notes)
    outcome = RolloutOutcome.PASSED
    if deletions.is_needed:
        takeover = await take_over_for_delete(deletions.plan_result, session, takes_over=takes_over)
        user.note(takeover.notes)
        rollout_options = RolloutOptions(history=build_uninstall_history(deletions.plan))
        outcome = await user.roll_out(deletions.plan, rollout_options)
        user.note(await report_still_paused(takeover, session))
    if outcome is RolloutOutcome.PASSED:
        for deletion in deletions.units:
            await finish_deletion(deletion, session.world)
    return deletions, outcome


async def plan_deletions(session: Session, workspace: Workspace) -> Deletions:
    """Plan the deletion of all units; units that no other unit waits for come first.

    Raises the errors of units that could not be rendered: their objects are unknown.
    """
    faults = [
        error
        for member in workspace.members
        if isinstance(member.result, RenderFailure)
        for error in member.result.errors
    ]
    if faults:
        raise ExceptionGroup("not rendered", faults)
    plan_result = await prepare_plan(
        workspace.deployable_trees, session, semantics=TIDEGATE, is_removal=True
    )
    units = {manifests.manifests.unit.id: manifests for manifests in plan_result.unit_manifests}
    _refuse_unknown_units(workspace, plan_result)
    order = dict.fromkeys((*(step.unit for step in plan_result.plan.steps), *units))
    deletions = {name: await plan_deletion(units[name], session) for name in reversed(order)}
    parts = [
        (units[name].manifests, deletion.effective_plan) for name, deletion in deletions.items()
    ]
    plan = join_deletions(parts)
    contents = await find_collateral_deletions(plan, session)
    findings = (
        *(finding for finding in workspace.findings if finding.severity is not Severity.ERROR),
        *plan_result.findings,
    )
    return Deletions(plan, tuple(deletions.values()), plan_result, findings, contents)


def _refuse_unknown_units(workspace: Workspace, plan_result: PlanResult) -> None:
    """Raise all errors if the objects of a unit are unknown."""
    if plan_result.unknown_units:
        findings = dict.fromkeys((*workspace.findings, *plan_result.findings))
        errors = [
            error_from_finding(finding)
            for finding in findings
            if finding.severity is Severity.ERROR
        ]
        problem = (
            f"nothing was deleted: the objects of `{plan_result.unknown_units[0]}` are unknown"
        )
        raise ExceptionGroup("not read", [*errors, PlanError("plan.errors", problem)])


async def plan_deletion(unit_manifests: UnitManifests, session: Session) -> Deletion:
    """Plan the deletion of a unit: the tracked objects in its journal or in Git.

    If the policy of the unit confirms, objects that require a confirmation are also deleted.
    """
    manifests, unit = unit_manifests.manifests, unit_manifests.manifests.unit
    confirmed = unit.policy.confirmed
    stored_journal = await read_journal(plan_unit(unit), session.world)
    journal = stored_journal.journal
    live_objects = await _find_live(manifests, journal.entries, session.world)
    candidates = _candidates(live_objects, plan_unit(unit))
    plan = with_final_step(
        build_deletion(manifests, candidates, readiness_timeout=readiness_timeout)
    )
    needs_confirmation = _deleted_refs(plan)
    refs = [candidate.ref for candidate in candidates]
    deleted = {
        ref: None
        for ref in refs
        if ref in needs_confirmation and (confirmed or not needs_confirmation[ref])
    }
    remaining = [ref for ref in refs if ref not in deleted]
    find_owner, planned_unit = session.evaluator.find_other_owner, plan.units[0]
    owners = {
        ClusterRef(step.cluster, item.ref): find_owner(
            planned_unit, item, object_body(live_objects[item.ref])
        )
        for step in plan.steps
        for item in step_items(step)
        if item.ref in deleted
    }
    return Deletion(
        plan=plan,
        rendered=unit_manifests.rendered,
        stored_journal=stored_journal,
        deleted=tuple(deleted),
        remaining=tuple(remaining),
        unconfirmed=tuple(ref for ref in remaining if ref in needs_confirmation),
        is_in_progress=journal.desired_digest == plan.units[0].digest != journal.completed_digest,
        has_release_records=await is_installed(unit, session),
        other_owners={ref: owner for ref, owner in owners.items() if owner},
    )


async def _find_live(
    desired: Manifests, entries: Iterable[Ref], world: Dispatcher
) -> dict[Ref, LiveObject]:
    """Return the live objects that a unit may own, by their names.

    Hooks are searched among all objects of their kinds: the journal has them only during their
    rollout, and their names may be generated.
    """
    manifests = (*desired.manifests, *desired.before_deletion)
    hooks = (manifest.ref for manifest in manifests if manifest.hook_policies is not None)
    unit = plan_unit(desired.unit)
    reader = ClusterReader(world, unit.cluster)
    by_name = await reader.get_many((*entries, *(manifest.ref for manifest in manifests)))
    by_kind = await reader.list_all(Selection(ref.kind, ref.namespace) for ref in hooks)
    return {live.ref: live for live in (*by_name.values(), *by_kind)}


def _candidates(live_objects: Mapping[Ref, LiveObject], unit: PlannedUnit) -> list[PruneCandidate]:
    """Return the objects that the unit may delete.

    Hooks of a release follow their own delete policies only, as with Helm.
    """
    include_hooks = unit.policy.release is None
    candidates = (
        prune_candidate(object_body(live_objects[ref]), unit, hooks=include_hooks)
        for ref in sorted(live_objects)
    )
    return [candidate for candidate in candidates if candidate is not None]


def _deleted_refs(plan: Plan) -> dict[Ref, bool]:
    """Return the objects that the plan deletes, and whether each requires a confirmation."""
    items = (item for step in plan.steps for item in step_items(step))
    return {
        item.ref: item.requires_confirmation for item in items if item.action is ItemAction.DELETE
    }


async def finish_deletion(deletion: Deletion, world: Dispatcher) -> None:
    """Delete the record of a deleted unit, unless objects still wait for a confirmation."""
    if not deletion.unconfirmed:
        await delete_record(deletion.stored_journal.unit, world)
