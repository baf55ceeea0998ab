"""Execution of a plan, with its events, for all commands."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Protocol

import msgspec

from tidegate.clusters.inventories import read_inventories
from tidegate.clusters.session import Session, holder_identity
from tidegate.engine.context import RolloutSettings
from tidegate.engine.driver import Driver, drive
from tidegate.engine.messages import Refresh
from tidegate.model.k8s.objects import Ref
from tidegate.model.plans.plan import Plan
from tidegate.model.redaction import Redactor
from tidegate.model.rollouts.event import Event, RolloutOutcome
from tidegate.model.rollouts.evidence import Evidence
from tidegate.model.rollouts.rollout_progress import RolloutProgress
from tidegate.model.times import Ms
from tidegate.model.units.policy import PreflightMode
from tidegate.model.units.unit import UnitId
from tidegate.planning.plan import PlanResult
from tidegate.releases.history import HelmHistory, build_history
from tidegate.rollout.diagnosis import DiagnosisContext, diagnose
from tidegate.rollout.gate_causes import GateExplainer
from tidegate.rollout.logs import LogStreamer
from tidegate.rollout.observers import ObserverGroup
from tidegate.rollout.replan import (
    ClusterSecretWatcher,
    LookupRecheck,
    NewClusters,
    Replan,
    Replanner,
)
from tidegate.rollout.status_writer import UnitStatuses, build_statuses, unreported_messages
from tidegate.workspace.locations import FieldLocator


class RolloutOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a rollout."""

    skip_faulty_units: bool = False
    """Whether to skip units that fail preflight, with their dependents."""
    preflight_mode: PreflightMode = PreflightMode.AUTO
    """AUTO checks a simulated cluster with local rules only: it knows no more than they do."""
    holder: str = ""
    excluded: Mapping[UnitId, str] = msgspec.field(default_factory=dict)
    """By unit, why it cannot be rolled out; its dependents are excluded, too."""
    pace: float | None = None
    """Virtual seconds that pass in a real one; None does not wait."""
    timeout: Ms | None = None
    """How long the rollout may take before it is stopped cleanly."""
    cluster_patience: Ms | None = None
    """How long to wait for a cluster that does not answer; None waits without limit."""
    approved: frozenset[UnitId] = frozenset()
    """Units that do not wait for an approval."""
    statuses: UnitStatuses | None = None
    """Builds the status of unit resources."""
    history: HelmHistory | None = None
    """The Helm history of releases."""
    explain_gates: bool = False
    """Whether events explain why gates wait."""
    stream_logs: bool = False
    """Whether the logs of hooks and Jobs are streamed as events."""
    inventories: Mapping[UnitId, Sequence[Ref]] = msgspec.field(default_factory=dict)
    """Objects that other controllers report as those of units."""
    replan: Replan | None = None
    """Plans the current state again; None if it cannot have changed."""


class RolloutObserver(Protocol):
    """Receiver of rollout events, with secrets redacted. A newer plan may replace the first."""

    @property
    def progress(self) -> RolloutProgress: ...
    def start(
        self, plan: Plan, *, clock: Callable[[], Ms], stop: Callable[[str], None]
    ) -> None: ...
    def emit(self, event: Event) -> None: ...
    def replace_plan(self, plan: Plan) -> None: ...


class RolloutResult(msgspec.Struct, frozen=True):
    """The outcome of a rollout, with evidence about failures."""

    outcome: RolloutOutcome
    evidence: tuple[Evidence, ...] = ()
    unreported: tuple[str, ...] = ()
    """Why statuses could not be written or new plans not made."""


async def roll_out(
    plan: Plan, session: Session, options: RolloutOptions, observer: RolloutObserver
) -> RolloutResult:
    """Run a plan to its end, and send its events to an observer."""
    redactor, world, newest = Redactor.from_plan(plan), session.world, plan
    locator, catalog = FieldLocator(session.repository.root), session.evaluator.rules.catalog
    if options.history is not None:
        options.history.on_remediation = redactor.add_secrets

    def diagnosis_context() -> DiagnosisContext:
        return DiagnosisContext(
            plan=newest, catalogue=catalog, redactor=redactor, raw_world=session.raw_world
        )

    def emit(event: Event) -> None:
        located = locator.locate_event(event) if event.field else event
        observer.emit(redactor.redact_event(located))

    async def replace_plan(newer: PlanResult) -> None:
        nonlocal newest
        newest = newer.plan
        new_clusters.set_plan(newest)
        redactor.add_secrets(newest)
        observer.replace_plan(newest)
        if options.statuses is not None:
            options.statuses.update(await build_statuses(newer, session))

    new_clusters = NewClusters(session, plan)
    replanner = _build_replanner(options, session, replace_plan, new_clusters)
    observers = ObserverGroup(
        emit,
        [
            *(
                [GateExplainer(world, observer.progress, diagnosis_context, emit)]
                if options.explain_gates
                else ()
            ),
            *([LogStreamer(world, observer.progress, emit)] if options.stream_logs else ()),
            *(
                [ClusterSecretWatcher(world, new_clusters, replanner.check_clusters)]
                if replanner and new_clusters.appsets
                else ()
            ),
        ],
    )
    driver = build_driver(
        plan,
        session,
        msgspec.structs.replace(
            options,
            inventories=await read_inventories(
                (unit for unit in plan.units if unit.policy.prune), session
            ),
        ),
        observers.on_event,
        replanner.request if replanner else None,
    )
    observer.start(plan, clock=world.now, stop=driver.stop)
    until = None if options.timeout is None else Ms(world.now() + options.timeout)
    rollout = (
        drive(driver, until=until)
        if replanner is None
        else replanner.drive(driver, plan.digest, until)
    )
    result = RolloutOutcome(await observers.run_with(rollout, lambda: driver.is_cut_off))
    outcome = _final_outcome(result, driver, observer.progress)
    observer.progress.has_timed_out = outcome is RolloutOutcome.TIMED_OUT
    unreported = tuple(map(redactor.redact, _find_unreported(driver, replanner)))
    if driver.is_cut_off:  # the cluster does not answer
        return RolloutResult(outcome, (), unreported)
    evidence = await diagnose(world, observer.progress, diagnosis_context())
    return RolloutResult(outcome, evidence, unreported)


def _find_unreported(driver: Driver, replanner: Replanner | None) -> Iterator[str]:
    yield from unreported_messages(driver.unreported)
    yield from replanner.problems if replanner else ()


def _build_replanner(
    options: RolloutOptions,
    session: Session,
    replace_plan: Callable[[PlanResult], Awaitable[None]],
    new_clusters: NewClusters,
) -> Replanner | None:
    """Return the replanner, or None without `replan`.

    The Helm history follows the newest rendering.
    """
    replan = options.replan
    if replan is None:
        return None

    async def replan_with_history() -> PlanResult:
        newer = await replan()
        if options.history is not None:
            stores_charts = options.history.stores_charts
            options.history.update(await build_history(newer, session, stores_charts=stores_charts))
        return newer

    is_simulated, history = session.targets.simulation is not None, options.history
    lookups = None if history is None else LookupRecheck(session, lambda: history.lookups)
    return Replanner(
        replan_with_history,
        replace_plan,
        new_clusters,
        lookups,
        session.world if is_simulated else None,
    )


def build_driver(
    plan: Plan,
    session: Session,
    options: RolloutOptions,
    emit: Callable[[Event], None],
    request_refresh: Callable[[Refresh], None] | None = None,
) -> Driver:
    """Return a driver that is not started."""
    session.paced_world.set_pace(options.pace)
    is_local = (
        session.targets.simulation is not None and options.preflight_mode is PreflightMode.AUTO
    )
    settings = RolloutSettings(
        holder=options.holder or holder_identity(),
        skip_faulty_units=options.skip_faulty_units,
        preflight_mode=PreflightMode.LOCAL if is_local else options.preflight_mode,
        cluster_patience=options.cluster_patience,
        excluded=options.excluded,
        approved=options.approved,
        status_builder=options.statuses,
        history_backend=options.history,
        inventories=options.inventories,
        request_refresh=request_refresh,
    )
    return Driver(session.world, plan, session.evaluator, settings, emit)


def _final_outcome(
    result: RolloutOutcome, driver: Driver, progress: RolloutProgress
) -> RolloutOutcome:
    """Return the outcome; for a stopped rollout, the reason why it was stopped."""
    if _is_forbidden(progress):
        return RolloutOutcome.FORBIDDEN
    if result is not RolloutOutcome.STOPPED:
        return result
    if driver.is_timed_out:
        return RolloutOutcome.TIMED_OUT
    if driver.is_unreachable:
        return RolloutOutcome.UNREACHABLE
    return RolloutOutcome.SUPERSEDED if driver.is_superseded else result


def _is_forbidden(progress: RolloutProgress) -> bool:
    """Return whether missing permissions are the only problem."""
    reasons = {rejection.reason for rejection in progress.refused}
    return progress.outcome == RolloutOutcome.INVALID and reasons == {"Forbidden"}
