"""Simulation of rollouts: the real engine on simulated clusters, with one or several semantics.

After a rollout, the last waves that an engine does not wait for are observed for a while.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count, product

import msgspec
from msgspec.structs import replace

from tidegate.clusters.sandboxes import scenario_commits
from tidegate.clusters.session import ClusterTargets, Session
from tidegate.dialect.units import is_dialect_kind
from tidegate.errors import TidegateError
from tidegate.health.judge import ARGO
from tidegate.inspection.unit_states import read_unit_states
from tidegate.model.finding import Finding, Severity
from tidegate.model.k8s.kinds import JOB
from tidegate.model.k8s.objects import ClusterRef, Kind, Ref
from tidegate.model.k8s.verdict import Health, Verdict
from tidegate.model.plans.drift import Drift
from tidegate.model.plans.missing_dependency import MissingDependency
from tidegate.model.plans.plan import Plan, PlannedUnit, managed_items, step_items
from tidegate.model.redaction import Redactor
from tidegate.model.rollouts.causes import WHY, explain_evidence
from tidegate.model.rollouts.event import Event, EventType, RolloutOutcome
from tidegate.model.rollouts.evidence import Evidence
from tidegate.model.rollouts.rollout_progress import RolloutProgress
from tidegate.model.simulation.double_sync import Resync
from tidegate.model.simulation.duration_estimate import DurationEstimate
from tidegate.model.simulation.revision_sync import RevisionSync
from tidegate.model.simulation.verdict import LeftOut, SimulationVerdict
from tidegate.model.times import MINUTE, Ms
from tidegate.model.units.release_history import ReleaseHistory
from tidegate.model.units.semantics import ARGOCD, Semantics
from tidegate.model.units.unit import Unit, UnitId
from tidegate.model.views.unit_states import UnitState
from tidegate.planning.plan import PlanResult
from tidegate.planning.preparation import prepare_plan
from tidegate.planning.refusals import preflight_findings
from tidegate.releases.history import build_history, has_releases, read_histories
from tidegate.rollout.diagnosis import DiagnosisContext, collect_evidence
from tidegate.rollout.replan import regenerates_during_rollout
from tidegate.rollout.run import RolloutOptions, RolloutResult, roll_out
from tidegate.schema.custom_kinds import builtin_groups
from tidegate.simulation.argocd_refresh import DoubleSync
from tidegate.simulation.assumptions import open_with_assumptions
from tidegate.simulation.scenario_changes import (
    ScenarioChanges,
    find_unstartable_units,
    open_commits,
)
from tidegate.simulation.unknown_checks import without_unknown_checks
from tidegate.workers.rendering import RenderSettings
from tidegate.workspace.completeness import incomplete_finding
from tidegate.workspace.request import LoadRequest
from tidegate.workspace.selection import find_approved_units
from tidegate.workspace.workspace import Workspace

WORKLOAD_KINDS = frozenset(
    {JOB, *(Kind("apps", "v1", name) for name in ("Deployment", "StatefulSet", "DaemonSet"))}
)
OBSERVATION_DELAYS = (Ms(MINUTE), Ms(10 * MINUTE))
"""Delays after which the health is read again: most objects become healthy soon."""
START_INTERVAL = Ms(10)
"""Simulated rollouts start at multiples of this time."""
SETTLED = frozenset({Health.HEALTHY, Health.SUSPENDED})


async def find_unhealthy_afterwards(
    plan: Plan, session: Session, progress: RolloutProgress
) -> tuple[tuple[Ref, str], ...]:
    """Return Jobs and workloads in last waves that do not become healthy, with the cause.

    Only units whose engine does not wait for the last wave are observed.
    """
    units = {unit.id: unit for unit in plan.units if not unit.policy.semantics.gates_last}
    pending = {
        ClusterRef(step.cluster, item.ref): units[step.unit]
        for step in plan.steps
        if step.is_last and step.unit in units
        for item in step_items(step)
        if item.ref.kind in WORKLOAD_KINDS and item.hook is None
    }
    verdicts: dict[ClusterRef, Verdict] = {}
    for delay in OBSERVATION_DELAYS if pending else ():
        await session.world.client().wait(Ms(session.world.now() + delay))
        verdicts = {
            cluster_ref: await _current_verdict(cluster_ref, unit, session)
            for cluster_ref, unit in pending.items()
        }
        pending = {
            cluster_ref: unit
            for cluster_ref, unit in pending.items()
            if verdicts[cluster_ref].health not in SETTLED
        }
        if not pending:
            break
    unhealthy = {
        cluster_ref: verdict.message
        for cluster_ref, verdict in verdicts.items()
        if verdict.health is Health.DEGRADED
        or (verdict.health is Health.PROGRESSING and cluster_ref.ref.kind != JOB)
    }
    context = DiagnosisContext(
        plan=plan,
        catalogue=session.evaluator.rules.catalog,
        redactor=Redactor.from_plan(plan),
        raw_world=session.raw_world,
    )
    evidence = await collect_evidence(session.world, unhealthy, context)
    causes = (
        explain_evidence(progress, item_evidence, brief=True).get(WHY, [])[:1]
        for item_evidence in evidence
    )
    explained = zip(unhealthy.items(), causes, strict=True)
    return tuple(
        (cluster_ref.ref, ": ".join((message, *cause)))
        for (cluster_ref, message), cause in explained
    )


async def _wait_for_start(session: Session) -> Ms:
    """Let the simulated clock reach the next multiple of the start interval, and return it.

    A request more or less while a workspace is loaded then has no influence on the times of a
    rollout.
    """
    start = Ms(-(-session.world.now() // START_INTERVAL) * START_INTERVAL)
    await session.world.client().wait(start)
    return start


async def _current_verdict(cluster_ref: ClusterRef, unit: PlannedUnit, session: Session) -> Verdict:
    """Return the current verdict of an object; a deleted object counts as healthy."""
    live = await session.reader(cluster_ref.cluster).get(cluster_ref.ref)
    if live is None:
        return Verdict(Health.HEALTHY)
    body = msgspec.json.decode(live.body)
    return session.evaluator.evaluate_health(unit, body, session.world.now())


HOLDER_IDENTITY = "simulation"
NATIVE = "native"
"""Name for units that each follow the semantics of their dialect, where these differ."""


class SimulationResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of one simulated run."""

    name: str
    plan: Plan
    result: RolloutOutcome
    events: tuple[Event, ...]
    later_events: tuple[Event, ...] = ()
    """Events of the syncs after the rollout: of commits, of drift, and repeated ones."""
    notes: tuple[TidegateError, ...] = ()
    findings: tuple[Finding, ...] = ()
    missing_dependencies: tuple[MissingDependency, ...] = ()
    """Dependencies that no unit provides."""
    evidence: tuple[Evidence, ...] = ()
    """Evidence about failed objects."""
    not_awaited: tuple[Ref, ...] = ()
    """Applied objects that become ready later and that no gate waited for."""
    not_simulated: tuple[Ref, ...] = ()
    """Objects with a health check of the dialect, but without known operator behavior."""
    unhealthy_afterwards: tuple[tuple[Ref, str], ...] = ()
    """Objects of last waves, which no gate waits for, that did not become healthy, and why."""
    drifts: tuple[Drift, ...] = ()
    """Edits of the scenario to live objects, and whether they were reverted."""
    revision_syncs: tuple[RevisionSync, ...] = ()
    """What units did with commits of the scenario."""
    resyncs: tuple[Resync, ...] = ()
    """Units that Argo CD synced twice."""
    incomplete_findings: tuple[Finding, ...] = ()
    """Findings about incomplete inputs."""
    releases: tuple[ReleaseHistory, ...] = ()
    """Histories of the Helm releases."""
    unit_states: tuple[UnitState, ...] = ()
    """State of each unit at the end, as its engine shows it."""
    left_out: tuple[LeftOut, ...] = ()
    """Units that were not rolled out, by reason."""
    estimate: DurationEstimate = DurationEstimate.LIKELY
    """Which end of the range of each duration was used."""

    @property
    def verdict(self) -> SimulationVerdict:
        """What the simulation shows; never `passed` about units that were not looked at."""
        if self.result is not RolloutOutcome.PASSED:
            is_invalid = self.result is RolloutOutcome.INVALID
            return SimulationVerdict.INVALID if is_invalid else SimulationVerdict.FAILED
        if self.unhealthy_afterwards:
            return SimulationVerdict.DEGRADED
        has_objects = any(managed_items(step) for step in self.plan.steps)
        has_gaps = any(item.severity is Severity.ERROR for item in self.incomplete_findings)
        is_complete = has_objects and not self.left_out and not has_gaps
        return SimulationVerdict.PASSED if is_complete else SimulationVerdict.INCOMPLETE


class SimulationOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a simulation."""

    until: Ms
    """Limit of the simulated time."""
    empty_cluster: bool = False
    """Whether missing dependencies are not assumed."""
    approved: Sequence[str] = ()
    """Units that do not wait for approval."""
    estimates: Sequence[DurationEstimate] = (DurationEstimate.LIKELY,)
    """Ends of the duration ranges; each is simulated once."""


class _EventCollector(msgspec.Struct):
    """Observer that collects all events of a rollout."""

    progress: RolloutProgress
    on_event: Callable[[Event], None] | None = None
    events: list[Event] = msgspec.field(default_factory=list)
    plan: Plan | None = None
    """The newest plan of the rollout."""

    def start(self, plan: Plan, *, clock: Callable[[], Ms], stop: Callable[[str], None]) -> None:  # noqa: ARG002 - no interrupts
        self.progress.start = self.progress.now = clock()
        self.replace_plan(plan)

    def replace_plan(self, plan: Plan) -> None:
        self.plan = plan
        self.progress.add_plan(plan)

    def emit(self, event: Event) -> None:
        self.events.append(event)
        self.progress.add_event(event)
        if self.on_event is not None:
            self.on_event(event)


async def simulate(
    request: LoadRequest,
    engines: Sequence[Semantics | None],
    target: ClusterTargets,
    render_settings: RenderSettings,
    options: SimulationOptions,
) -> list[SimulationResult]:
    """Simulate each semantics on new, identical clusters; None means each unit's native semantics.

    Alternative root units are simulated one after another.
    """
    empty_cluster = options.empty_cluster
    render_settings = replace(render_settings, skips_unavailable=not empty_cluster)
    runs: list[SimulationResult] = []
    entries: list[tuple[str, Workspace | None]] = [("", None)]
    for entry, loaded in entries:  # the list grows if there are alternative roots
        alternative, run_target, missing_first = (
            replace(request, entry=entry or request.entry),
            target,
            None,
        )
        for semantics, estimate in product(engines, options.estimates):
            run_target = _with_estimate(run_target, estimate)
            opened = open_with_assumptions(
                alternative,
                run_target,
                render_settings,
                empty_cluster=empty_cluster,
                loaded=loaded,
            )
            async with opened as (session, workspace, missing_now):
                if workspace.are_alternatives and not entry:
                    entries += [
                        (tree.unit_trees[0].root_name, None if tree.depends_on_cluster else tree)
                        for tree in workspace.split_alternatives()
                    ]
                    break
                # Objects assumed for the first run exist in the next, and are not missing there.
                run_target, missing_first = (
                    session.targets,
                    missing_now if missing_first is None else missing_first,
                )
                run = await _simulate(workspace, alternative, semantics, session, options)
                name = f"{run.name} ({entry})" if entry else run.name
                missing_all = tuple(dict.fromkeys((*missing_first, *run.missing_dependencies)))
                runs.append(
                    replace(run, name=name, missing_dependencies=missing_all, estimate=estimate)
                )
    return runs


def _with_estimate(target: ClusterTargets, estimate: DurationEstimate) -> ClusterTargets:
    if target.simulation is None:
        return target
    return replace(target, simulation=replace(target.simulation, duration_estimate=estimate))


async def _simulate(
    workspace: Workspace,
    request: LoadRequest,
    semantics: Semantics | None,
    session: Session,
    options: SimulationOptions,
) -> SimulationResult:
    workspace, check_findings = (
        (workspace, ()) if options.empty_cluster else without_unknown_checks(workspace)
    )
    until, approved = options.until, find_approved_units(options.approved, workspace.members)
    plan_result = await prepare_plan(workspace.deployable_trees, session, semantics=semantics)
    start = await _wait_for_start(session)
    config = session.targets.simulation
    left_out_units = {**find_unstartable_units(workspace, plan_result), **plan_result.rejected}
    releases = await build_history(plan_result, session, stores_charts=False)
    rollout_options = RolloutOptions(
        holder=HOLDER_IDENTITY,
        timeout=until,
        skip_faulty_units=True,
        approved=approved,
        excluded=left_out_units,
        history=releases,
    )
    sync_numbers, later_events = count(1), list[Event]()

    async def sync(partial_plan: Plan) -> Sequence[Event]:
        now, events = session.world.now(), list[Event]()
        sync_options = RolloutOptions(
            holder=f"{HOLDER_IDENTITY}-{next(sync_numbers)}",
            timeout=Ms(max(0, start + until - now)),
            history=scenario_changes.releases,
        )
        observer = _EventCollector(RolloutProgress(now), later_events.append, events)
        await roll_out(partial_plan, session, sync_options, observer)
        return events

    double_sync = DoubleSync(sync, lambda: scenario_changes.plan_result.plan, session.world.now)
    collector = _EventCollector(RolloutProgress(start), double_sync.on_event)
    with open_commits(
        session.repository.root, scenario_commits(config) if config else ()
    ) as commits:
        end = Ms(start + until)
        scenario_changes = ScenarioChanges(
            session,
            request,
            semantics,
            workspace,
            plan_result,
            commits,
            sync,
            end,
            releases,
            double_sync,
        )
        if (
            commits is not None
            or regenerates_during_rollout(plan_result.plan)
            or has_releases(plan_result.plan)
        ):
            rollout_options = replace(rollout_options, replan=scenario_changes.replan)
        rollout_result = await double_sync.watch_rollout(
            roll_out(plan_result.plan, session, rollout_options, collector)
        )
        revision_syncs = await scenario_changes.sync_commits(collector.events)
    workspace, plan_result = scenario_changes.workspace, scenario_changes.plan_result
    drifts, edit_findings = await scenario_changes.heal_drifts(collector.events)
    result = await _build_result(session, workspace, plan_result, rollout_result, collector)
    return replace(
        result,
        unit_states=await read_unit_states(
            plan_result,
            session,
            (*collector.events, *later_events),
            {name for left_out in result.left_out for name in left_out.units},
        ),
        later_events=tuple(later_events),
        findings=(*result.findings, *check_findings, *edit_findings),
        drifts=drifts,
        revision_syncs=revision_syncs,
        resyncs=double_sync.resyncs,
        missing_dependencies=scenario_changes.missing_dependencies,
    )


async def _build_result(
    session: Session,
    workspace: Workspace,
    plan_result: PlanResult,
    rollout_result: RolloutResult,
    collector: _EventCollector,
) -> SimulationResult:
    """Return the result of a rollout, without what happened after it."""
    plan = plan_result.plan
    rollout_findings = preflight_findings(collector.progress, rollout_result.evidence)
    written = {event.ref for event in collector.events if event.type is EventType.OBJECT_WRITTEN}
    return SimulationResult(
        name=_semantics_name(plan),
        plan=collector.plan or plan,
        result=rollout_result.outcome,
        events=tuple(collector.events),
        notes=plan_result.notes,
        findings=(*workspace.findings, *plan_result.findings, *rollout_findings),
        incomplete_findings=incomplete_finding(workspace.members, workspace.findings),
        left_out=tuple(_find_left_out(workspace, plan_result)),
        releases=await read_histories(plan, session),
        evidence=rollout_result.evidence,
        not_awaited=tuple(ref for ref in _without_health_check(plan, session) if ref in written),
        not_simulated=tuple(ref for ref in _without_simulation(plan, session) if ref in written),
        unhealthy_afterwards=await find_unhealthy_afterwards(plan, session, collector.progress)
        if rollout_result.outcome is RolloutOutcome.PASSED
        else (),
    )


def _find_left_out(workspace: Workspace, plan_result: PlanResult) -> Iterator[LeftOut]:
    """Yield the units of which nothing was rolled out, by reason."""
    units = {member.unit.id: member.unit for member in workspace.members}
    planned = {unit.id for unit in plan_result.plan.units}
    excluded = [units[name] for name in units if name in plan_result.all_units - planned]
    by_reason: dict[str, list[UnitId]] = {}
    for name in units:
        if name in workspace.unavailable:
            by_reason.setdefault("not rendered", []).append(name)
        elif name in plan_result.faults:
            by_reason.setdefault("with errors", []).append(name)
    for unit in excluded:
        by_reason.setdefault(_exclusion_reason(unit), []).append(unit.id)
    for reason, names in by_reason.items():
        yield LeftOut(reason, tuple(names))


def _exclusion_reason(unit: Unit) -> str:
    if unit.is_suspended:
        return "suspended"
    if unit.rolling_sync_step is not None and not unit.rolling_sync_step.number:
        return "that no step matches"
    is_manual = unit.policy.semantics.name == ARGOCD.name and not unit.policy.auto_sync
    return "without automated sync" if is_manual else "that wait for one of these"


def _semantics_name(plan: Plan) -> str:
    """Return the name of the semantics that the plan uses, or `NATIVE` for several."""
    names = {unit.policy.semantics.engine for unit in plan.units}
    return names.pop() if len(names) == 1 else NATIVE


def _without_health_check(plan: Plan, session: Session) -> Iterator[Ref]:
    """Yield operator objects before the last step of a unit that has no health check for them."""
    evaluator, now = session.evaluator, session.world.now()
    units = {unit.id: unit for unit in plan.units if not unit.policy.semantics.uses_generic_health}
    for step in plan.steps:
        unit = units.get(step.unit)
        for item in managed_items(step) if unit is not None and not step.is_last else ():
            row = evaluator.rules.catalog.find_row(item.ref.kind)
            if unit is None or row is None or not row.ready_when or not item.body:
                continue
            body = msgspec.json.decode(item.body)
            if (
                evaluator.health_script(unit, body, now) is None
                and not evaluator.evaluate_health(unit, body, now).is_checked
            ):
                yield item.ref


def _without_simulation(plan: Plan, session: Session) -> Iterator[Ref]:
    """Yield objects that Argo CD ships a health script for and the catalog cannot simulate."""
    evaluator, now = session.evaluator, session.world.now()
    units = {unit.id: unit for unit in plan.units if unit.policy.rules == ARGO}
    for step in plan.steps:
        unit = units.get(step.unit)
        for item in managed_items(step) if unit is not None else ():
            kind = item.ref.kind
            if unit is None or not item.body or "." not in kind.group or is_dialect_kind(kind):
                continue
            is_builtin = kind.group in builtin_groups()
            if not is_builtin and evaluator.rules.catalog.find_row(kind) is None:
                body = msgspec.json.decode(item.body)
                if evaluator.evaluate_health(unit, body, now).is_checked:
                    yield item.ref
