"""Verification that a rollout kept its order, by its run record and by the cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from tidegate.clusters.journal import read_journal
from tidegate.clusters.reader import get_objects
from tidegate.clusters.session import Session
from tidegate.dialect.units import is_dialect_kind
from tidegate.health.recorded_time import (
    find_creator,
    find_last_write,
    find_ready_time,
    read_timestamp,
)
from tidegate.inspection.diff import plan_units
from tidegate.inspection.status import read_status
from tidegate.model.finding import Finding
from tidegate.model.k8s.objects import ClusterRef, LiveObject, object_body
from tidegate.model.plans.plan import Plan
from tidegate.model.plans.verification import ObservedObject, OrderPair, PairState
from tidegate.model.rollouts.run import RunHead, RunObject, RunRecord, RunStep
from tidegate.model.times import Ms
from tidegate.model.units.unit import UnitId
from tidegate.model.views.verification import OrderVerification, UnitVerification
from tidegate.plan.order.observed import WRITE_ACTIONS, ObservedOrder, OrderInputs
from tidegate.plan.order.recorded import StepTimes, read_step_times
from tidegate.plan.order.verification import has_writes, prove_order
from tidegate.workspace.selection import unit_rows
from tidegate.workspace.workspace import Workspace, require_clusters

WORST_FIRST = (PairState.VIOLATED, PairState.UNPROVEN, PairState.RESPECTED, PairState.IDLE)


class _VerificationInputs(msgspec.Struct, frozen=True):
    """Inputs of a verification besides the cluster."""

    head: RunHead
    recorded: StepTimes | None = None
    """Step times of the run record; None without a record."""
    started: Mapping[UnitId, Ms] = msgspec.field(default_factory=dict)
    """Start of the verified rollout, by unit."""
    synced: Mapping[UnitId, bool] = msgspec.field(default_factory=dict)
    """Whether a unit is in sync with Git, for the units that were compared."""


async def verify_workspace(
    session: Session, workspace: Workspace, run: RunRecord | None, since: Ms | None
) -> tuple[OrderVerification, tuple[Finding, ...]]:
    """Verify the order of the workspace or of a run record; units are compared with Git.

    Without a record, all writes `since` a timestamp count, or since the last rollout of each
    unit in its journal.
    """
    synced: dict[UnitId, bool] = {}
    plan_result = await plan_units(workspace.deployable_trees, session)
    for status in await read_status(plan_result, session):
        if status.unit is not None:
            synced[status.unit] = synced.get(status.unit, True) and status.is_synced
    if run is not None:
        return await _verify(session, _inputs_from_run(run, synced)), workspace.findings
    waves = {row.unit.id: row.wave for row in unit_rows(workspace.unit_trees)}
    head = RunHead.from_plan(plan_result.plan, waves)
    started = await _start_times(plan_result.plan, session, since)
    return await _verify(
        session, _VerificationInputs(head, None, started, synced)
    ), workspace.findings


async def verify_run(session: Session, run: RunRecord) -> OrderVerification:
    """Verify the order in a run record, also with the cluster."""
    require_clusters((step.cluster for step in run.head.steps), session)
    return await _verify(session, _inputs_from_run(run, {}))


def verify_record(run: RunRecord) -> OrderVerification:
    """Verify the order by the run record alone."""
    return _build_proof(_inputs_from_run(run, {}), None, ())


def _inputs_from_run(run: RunRecord, synced: Mapping[UnitId, bool]) -> _VerificationInputs:
    run_start = min((event.at for event in run.events), default=run.head.at)
    started = dict.fromkeys((run_unit.id for run_unit in run.head.units), run_start)
    return _VerificationInputs(run.head, read_step_times(run.head, run.events), started, synced)


async def _start_times(plan: Plan, session: Session, since: Ms | None) -> dict[UnitId, Ms]:
    if since is not None:
        return dict.fromkeys((unit.id for unit in plan.units), since)
    journals = {unit.id: await read_journal(unit, session.world) for unit in plan.units}
    return {
        unit: stored.journal.started_at
        for unit, stored in journals.items()
        if stored.journal.started_at
    }


async def _verify(session: Session, inputs: _VerificationInputs) -> OrderVerification:
    observed = await _observe_objects(inputs.head, session)
    order_inputs = OrderInputs(
        observed_objects=observed,
        started_at=inputs.started.get,
        passed_at=None if inputs.recorded is None else inputs.recorded.passed_at,
        is_unit_resource=lambda run_object: is_dialect_kind(run_object.ref.kind),
    )
    missing = tuple(
        ClusterRef(step.cluster, run_object.ref)
        for step in inputs.head.steps
        if inputs.recorded is None or step.id in inputs.recorded.passed_at
        for run_object in step.objects
        if _should_exist(run_object) and ClusterRef(step.cluster, run_object.ref) not in observed
    )
    return _build_proof(inputs, ObservedOrder(inputs.head, order_inputs), missing)


def _should_exist(run_object: RunObject) -> bool:
    """Return whether an object should exist; false for unit resources, which may not be served."""
    return (
        run_object.action in WRITE_ACTIONS
        and not run_object.is_hook
        and not is_dialect_kind(run_object.ref.kind)
    )


async def _observe_objects(head: RunHead, session: Session) -> dict[ClusterRef, ObservedObject]:
    managers = {unit.id: unit.manager for unit in head.units}
    object_managers: dict[ClusterRef, str] = {}
    for step in head.steps:
        for run_object in step.objects:
            cluster_ref = ClusterRef(step.cluster, run_object.ref)
            object_managers.setdefault(cluster_ref, managers.get(step.unit, ""))
    observed: dict[ClusterRef, ObservedObject] = {}
    for cluster_ref, live in (await get_objects(session.world, object_managers)).items():
        observed |= _observed_object(live, cluster_ref, object_managers[cluster_ref])
    return observed


def _observed_object(
    live: LiveObject, cluster_ref: ClusterRef, manager: str
) -> dict[ClusterRef, ObservedObject]:
    body = object_body(live)
    created, ready = read_timestamp(body, "metadata", "creationTimestamp"), find_ready_time(body)
    if created is None:
        return {}
    at, is_final = (ready.at, ready.is_final) if ready else (None, False)
    written = find_last_write(body, manager) if manager else None
    return {cluster_ref: ObservedObject(created, find_creator(body), written, at, is_final)}


def _build_proof(
    inputs: _VerificationInputs,
    observed_order: ObservedOrder | None,
    missing: tuple[ClusterRef, ...],
) -> OrderVerification:
    pairs = prove_order(inputs.head, inputs.recorded, observed_order)
    units = tuple(_unit_proofs(inputs, observed_order, pairs))
    return OrderVerification(
        inputs.head, pairs, units, missing, is_recorded=inputs.recorded is not None
    )


def _unit_proofs(
    inputs: _VerificationInputs, observed_order: ObservedOrder | None, pairs: Iterable[OrderPair]
) -> Iterable[UnitVerification]:
    """Yield a proof for each unit that writes something, in plan order."""
    steps: dict[UnitId, list[RunStep]] = {}
    for step in filter(has_writes, inputs.head.steps):
        steps.setdefault(step.unit, []).append(step)
    owner = {step.id: step.unit for step in inputs.head.steps}
    states: dict[UnitId, set[PairState]] = {}
    for pair in pairs:
        states.setdefault(owner[pair.after], set()).add(pair.state)
    units = {unit.id: unit for unit in inputs.head.units}
    for name, unit_steps in steps.items():
        start, ready = (
            _recorded_times(inputs.recorded, unit_steps)
            if inputs.recorded
            else _observed_times(observed_order, unit_steps)
        )
        unit_states = states.get(name, set())
        order = next((state for state in WORST_FIRST if state in unit_states), None)
        yield UnitVerification(
            name,
            units[name].wave,
            inputs.synced.get(name),
            start,
            ready,
            order,
        )


def _recorded_times(recorded: StepTimes, steps: list[RunStep]) -> tuple[Ms | None, Ms | None]:
    starts = [recorded.started_at[step.id] for step in steps if step.id in recorded.started_at]
    passed = [recorded.passed_at.get(step.id) for step in steps]
    ends = [at for at in passed if at is not None]
    return min(starts, default=None), max(ends) if len(ends) == len(passed) else None


def _observed_times(
    observed_order: ObservedOrder | None, steps: list[RunStep]
) -> tuple[Ms | None, Ms | None]:
    if observed_order is None:
        return None, None
    first_writes = [evidence.at for evidence in map(observed_order.first_write, steps) if evidence]
    ready_times = [
        evidence.at
        for evidence in (observed_order.last_ready(step.id) for step in steps)
        if evidence
    ]
    return min(first_writes, default=None), max(ready_times, default=None)
