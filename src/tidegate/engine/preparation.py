"""Preparation of a rollout before its first write: read live objects, complete the plan, preflight.

A plan that fails preflight writes nothing. Units with work to do are leased afterwards, one by
one. A unit that another process changed in the meantime is prepared again on its own. A step
that expands is prepared in the same way when it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial

import msgspec

from tidegate.engine import messages
from tidegate.engine.cluster.access import review_access
from tidegate.engine.cluster.compare import ComparedItem
from tidegate.engine.cluster.preflight.checks import ObjectFailure
from tidegate.engine.cluster.prerequisites import find_unmet_prerequisites
from tidegate.engine.cluster.procedures import ApiCall, Pause, Procedure
from tidegate.engine.cluster.writes import IMMUTABLE, failure_from_outcome
from tidegate.engine.context import RolloutContext, raise_for_cluster
from tidegate.engine.evaluator import ObjectEvaluator, UnitLiveState
from tidegate.engine.histories import ReleaseHistories
from tidegate.engine.journal_cleanup import remove_hook_entries, remove_missing_objects
from tidegate.engine.messages import CompareResult, Failure
from tidegate.engine.ownership import (
    check_unit_names,
    find_adopted,
    find_collateral_failures,
    find_shared,
)
from tidegate.engine.records.heartbeat import RETRY_PERIOD
from tidegate.engine.records.record import UnitRecord
from tidegate.errors import ClusterError
from tidegate.model.k8s.objects import ClusterRef, LiveObject, Ref, object_body
from tidegate.model.k8s.verdict import Health
from tidegate.model.plans.plan import (
    Edge,
    ItemAction,
    Plan,
    PlanFragment,
    PlannedUnit,
    Step,
    step_items,
)
from tidegate.model.rollouts.journal import JournalEntry
from tidegate.model.times import Ms
from tidegate.model.units.release_history import ReleaseAction
from tidegate.model.units.unit import UnitId
from tidegate.world.errors import raise_for_error
from tidegate.world.messages import RawResponse
from tidegate.world.requests import RunWorker

LOOKS = 3
"""How often objects are compared that others change at the same time."""
TRANSIENT_CODES = frozenset(
    f"cluster.{word}"
    for word in ("disconnected", "failed", "proxy", "throttled", "timeout", "unreachable")
)
"""Error codes of problems that may be over in a moment."""


class Preparation(msgspec.Struct, frozen=True):
    """Result of the preparation of a plan."""

    requested: Plan
    """The plan that was requested."""
    plan: Plan
    """The plan completed with the live state of the clusters."""
    failures: list[ObjectFailure]
    """Failures found by preflight."""
    adopted: list[ObjectFailure] = []
    """Objects that are adopted from other units."""
    due_units: tuple[UnitId, ...] = ()
    """Units with work to do, except those that failed preflight."""
    units_in_progress: tuple[UnitId, ...] = ()
    """Units that already have slots, or of which an object still waits at its gate."""


def prepare_rollout(
    context: RolloutContext, requested: Plan, *, max_discovery_age: Ms = Ms(0)
) -> Procedure[Preparation]:
    """Prepare a plan, or a part of one that is added later.

    `max_discovery_age`: how old the served kinds may be.
    """
    clusters = (unit.cluster for unit in requested.units)
    raise_for_cluster(
        (yield from context.live_cache.discover_kinds(clusters, max_discovery_age)), context
    )
    error = yield from context.load_records(unit.id for unit in requested.units)
    raise_for_error(error, "reading the journal", context.location)
    context.unit_plans |= _plans_by_unit(requested)
    epochs_before = [context.leases[unit.id].compared_epoch for unit in requested.units]
    preparation = yield from _prepare(context, requested)
    if context.settings.preflight_only:
        return preparation
    yield from context.leases.ensure_heartbeats(preparation.due_units)
    if epochs_before != [context.leases[unit.id].compared_epoch for unit in requested.units]:
        # The lease of a unit that an earlier plan waited for was acquired in between.
        return (yield from prepare_rollout(context, requested))
    return preparation


def _prepare(context: RolloutContext, requested: Plan) -> Procedure[Preparation]:
    """Prepare a plan; again, if a refused object has been changed since it was compared."""
    for _ in range(LOOKS - 1):
        preparation, compared_items = yield from _look(context, requested)
        if not (yield from _is_outdated(context, compared_items, preparation.failures)):
            return preparation
    preparation, _ = yield from _look(context, requested)
    return preparation


def _is_outdated(
    context: RolloutContext, compared_items: list[ComparedItem], failures: list[ObjectFailure]
) -> Procedure[bool]:
    """Return whether an object that the server refuses as immutable is another one by now.

    Another rollout may have created it between the comparison and the dry run.
    """
    refused = {
        ClusterRef(step.cluster, ref)
        for step, ref, failure in failures
        if failure.reason == IMMUTABLE and not failure.final
    }
    context.live_cache.invalidate(refused)
    raise_for_cluster((yield from context.live_cache.sync(refused)), context)
    for *_, compared in compared_items:
        live = context.live_cache.objects.get(compared.object_ref)
        if compared.object_ref in refused and live is not None:
            before = compared.live
            if before is None or (before.uid, before.generation) != (live.uid, live.generation):
                return True
    return False


def _look(
    context: RolloutContext, requested: Plan
) -> Procedure[tuple[Preparation, list[ComparedItem]]]:
    """Compare a plan with the live objects and check what would be written."""
    check_unit_names(context, requested)
    raise_for_cluster((yield from context.histories.read(requested.units)), context)
    object_refs = [
        ClusterRef(step.cluster, item.ref) for step in requested.steps for item in step_items(step)
    ]
    prune_candidates = context.find_prune_candidates(requested)
    prune_refs = [object_ref for refs in prune_candidates.values() for object_ref in refs]
    context.live_cache.track(prune_refs)
    raise_for_cluster((yield from context.live_cache.sync([*object_refs, *prune_refs])), context)
    cleaned_units = remove_missing_objects(context, prune_candidates)
    plan, compared_items = complete_plan(context, requested, prune_candidates)
    failures = yield from find_unmet_prerequisites(
        context.unexpanded_steps(), compared_items, context.live_cache, context.comparer.units
    )
    review = yield from review_access(compared_items, context.live_cache, context.comparer.units)
    failures += review.failures
    failures += yield from context.preflight_checker.find_failures(
        review.allowed, is_last_check=False
    )
    failures += find_shared(context, compared_items)
    failures += yield from find_collateral_failures(context, compared_items)
    failures += _history_failures(context, plan)
    failed_units = {step.unit for step, *_ in failures}
    due_units = dict.fromkeys(
        (
            *_units_with_work(context, compared_items),
            *_units_with_pending_revision(context.histories, plan),
            *cleaned_units,
        )
    )
    if failures and not context.settings.skip_faulty_units:
        due_units = {}
    adopted = [] if failures else find_adopted(context, compared_items)
    startable = tuple(name for name in due_units if name not in failed_units)
    waiting_units = {
        compared_item[0].unit
        for compared_item in compared_items
        if _waits_at_gate(context, compared_item)
    }
    in_progress = tuple(
        name for name in startable if name in waiting_units or _has_slot(context, name)
    )
    preparation = Preparation(requested, plan, failures, adopted, startable, in_progress)
    return preparation, compared_items


def _has_slot(context: RolloutContext, unit: UnitId) -> bool:
    return context.leases[unit].record.has_slot(context.comparer.units[unit].digest)


def _waits_at_gate(context: RolloutContext, compared_item: ComparedItem) -> bool:
    """Return whether an object is in sync but its gate has not opened yet."""
    is_in_sync = compared_item[2].result is CompareResult.IN_SYNC
    return (
        is_in_sync
        and context.has_work(compared_item)
        and not context.will_be_modified(compared_item)
    )


def prepare_running_rollout(context: RolloutContext, requested: Plan) -> Procedure[Preparation]:
    """Prepare a plan while another one is running; transient cluster errors are waited out."""
    return (yield from _retry_transient(context, partial(prepare_rollout, context, requested)))


def prepare_unit_again(context: RolloutContext, unit: UnitId) -> Procedure[Preparation]:
    """Prepare a leased unit again after another process changed it."""
    while True:
        requested = context.unit_plans[unit]
        preparation = yield from _retry_transient(context, partial(_prepare, context, requested))
        if context.unit_plans[unit] is requested:
            break
    record = context.leases[unit].record
    if preparation.due_units and record.is_completed(requested.units[0].digest):
        remove_hook_entries(context, preparation.plan.steps)  # left over from a finished rollout
    return preparation


def _retry_transient(
    context: RolloutContext, procedure: Callable[[], Procedure[Preparation]]
) -> Procedure[Preparation]:
    while True:
        try:
            return (yield from procedure())
        except ClusterError as error:
            if error.code not in TRANSIENT_CODES:
                raise
        yield Pause(Ms(context.world.now() + RETRY_PERIOD))


def _plans_by_unit(plan: Plan) -> dict[UnitId, Plan]:
    """Return a separate plan for each unit, with the edges between its own steps."""
    steps: dict[UnitId, list[Step]] = {unit.id: [] for unit in plan.units}
    edges: dict[UnitId, list[Edge]] = {unit.id: [] for unit in plan.units}
    units = {step.id: step.unit for step in plan.steps}
    for step in plan.steps:
        steps[step.unit].append(step)
    for edge in plan.edges:
        if edge.after in units and units.get(edge.before) == units[edge.after]:
            edges[units[edge.after]].append(edge)
    return {
        unit.id: Plan(
            digest=plan.digest,
            units=(unit,),
            steps=tuple(steps[unit.id]),
            edges=tuple(edges[unit.id]),
        )
        for unit in plan.units
    }


def complete_plan(
    context: RolloutContext, requested: Plan, prune_candidates: dict[UnitId, list[ClusterRef]]
) -> tuple[Plan, list[ComparedItem]]:
    """Return the plan completed with live state, and its objects with their compare results."""
    now, live_objects = context.world.now(), context.live_cache.objects
    live_states = {
        unit.id: UnitLiveState(
            context.leases[unit.id].start(now),
            tuple(
                object_body(live_objects[object_ref])
                for object_ref in prune_candidates.get(unit.id, ())
                if object_ref in live_objects
            ),
        )
        for unit in requested.units
    }
    plan = context.evaluator.complete_plan(requested, live_states)
    _reopen_completed(context, plan)
    compared_items = _compare_plan(context, plan)
    records = {unit.id: context.leases[unit.id].record for unit in plan.units}
    taken_over = find_taken_over(
        plan, compared_items, records, live_objects, context.evaluator, now
    )
    units_with_work = [
        unit for unit in _units_with_work(context, compared_items) if unit not in taken_over
    ]
    plan = without_idle_hooks(plan, units_with_work, context.histories, context.evaluator)
    settled = {
        (compared_item[0].unit, compared_item[1].ref)
        for compared_item in compared_items
        if not context.has_work(compared_item)
    }
    plan = context.evaluator.remove_settled(plan, settled)
    plan = _with_remediations(context, plan)
    if plan is not requested:
        context.register(plan.units, plan.steps, digest=plan.digest)
    return plan, _compare_plan(context, plan)


def find_taken_over(
    plan: Plan,
    compared_items: Iterable[ComparedItem],
    records: Mapping[UnitId, UnitRecord],
    live_objects: Mapping[ClusterRef, LiveObject],
    evaluator: ObjectEvaluator,
    now: Ms,
) -> set[UnitId]:
    """Return the units that another controller has deployed as desired; their hooks have run.

    At most the ownership of their fields changes, and our record does not have this version of
    some object. It is not being rolled out by us. A hook that is there must have succeeded.
    """
    by_unit: dict[UnitId, list[ComparedItem]] = {}
    for compared_item in compared_items:
        by_unit.setdefault(compared_item[0].unit, []).append(compared_item)
    return {
        unit.id
        for unit in plan.units
        if unit.policy.release is None
        and not unit.policy.runs_hooks
        and unit.id in records
        and not records[unit.id].is_in_progress(unit.digest)
        and _is_deployed(by_unit.get(unit.id, ()), records[unit.id].entries)
        and all(
            _has_succeeded(unit, compared_item, live_objects, evaluator, now)
            for compared_item in by_unit[unit.id]
            if compared_item[1].hook is not None
        )
    }


def _is_deployed(
    compared_items: Collection[ComparedItem], record: Mapping[Ref, JournalEntry]
) -> bool:
    """Return whether a unit with hooks is as desired, and another controller has applied it."""
    objects = [
        (item, compared)
        for _, item, compared in compared_items
        if item.hook is None and item.action is ItemAction.APPLY
    ]
    has_hooks = any(item.hook is not None for _, item, _ in compared_items)
    is_ours = all(
        item.ref in record and record[item.ref].digest == item.digest for item, _ in objects
    )
    is_as_desired = all(_is_as_desired(compared) for _, compared in objects)
    return has_hooks and bool(objects) and not is_ours and is_as_desired


def _is_as_desired(compared: messages.ComparedObject) -> bool:
    """Return whether a write would change no field, but at most its owner."""
    is_moved = compared.result is CompareResult.DIFFERENT and not compared.replaces
    return compared.result is CompareResult.IN_SYNC or (is_moved and not compared.fields)


def _has_succeeded(
    unit: PlannedUnit,
    compared_item: ComparedItem,
    live_objects: Mapping[ClusterRef, LiveObject],
    evaluator: ObjectEvaluator,
    now: Ms,
) -> bool:
    """Return whether a hook has succeeded, or is not there any more."""
    live = live_objects.get(compared_item[2].object_ref)
    if live is None or compared_item[0].only_on_failure:
        return True
    verdict = evaluator.evaluate_health(unit, object_body(live), now)
    return not verdict.is_checked or verdict.health is Health.HEALTHY


def _with_remediations(context: RolloutContext, plan: Plan) -> Plan:
    """Add the on-failure steps of units that have a release history.

    The policy of a unit may change for that.
    """
    steps: dict[UnitId, list[Step]] = {}
    for step in plan.steps:
        steps.setdefault(step.unit, []).append(step)
    fragments = [context.plan_remediation(unit, steps.get(unit.id, ())) for unit in plan.units]
    remediations = [fragment for fragment in fragments if fragment is not None]
    if not remediations:
        return plan
    changed_units = {unit.id: unit for fragment in remediations for unit in fragment.units}
    return msgspec.structs.replace(
        plan,
        units=tuple(changed_units.get(unit.id, unit) for unit in plan.units),
        steps=(*plan.steps, *(step for fragment in remediations for step in fragment.steps)),
        edges=(*plan.edges, *(edge for fragment in remediations for edge in fragment.edges)),
    )


def without_idle_hooks(
    plan: Plan,
    units_with_work: Collection[UnitId],
    histories: ReleaseHistories,
    evaluator: ObjectEvaluator,
) -> Plan:
    """Return the plan without the hooks of units that are not rolled out.

    Restored objects of an unchanged release are not a rollout. Where only the tests of a release
    are due, only test hooks run.
    """
    due = {*units_with_work, *_units_with_pending_revision(histories, plan)}
    actions = {
        unit.id: pending.action
        for unit in plan.units
        if (pending := histories.pending_revision(unit.id)) is not None
    }
    unchanged = {unit for unit, action in actions.items() if action is ReleaseAction.UNCHANGED}
    tested = {unit for unit, action in actions.items() if action is ReleaseAction.TEST}
    idle = {unit.id for unit in plan.units if unit.id not in due} | unchanged
    plan = evaluator.remove_hooks(plan, idle) if idle else plan
    return evaluator.remove_hooks(plan, tested, keep_tests=True) if tested else plan


def _units_with_pending_revision(histories: ReleaseHistories, plan: Plan) -> list[UnitId]:
    """Return the units that write a revision, even if no object is written."""
    pending_revisions = ((unit.id, histories.pending_revision(unit.id)) for unit in plan.units)
    return [name for name, pending in pending_revisions if pending is not None and pending.is_due]


def _reopen_completed(context: RolloutContext, plan: Plan) -> None:
    """Reopen the journal of units that write a new revision of an unchanged manifest."""
    for unit in plan.units:
        pending, record = (
            context.histories.pending_revision(unit.id),
            context.leases[unit.id].record,
        )
        if pending is None or not pending.is_due or pending.is_resumed:
            continue
        if record.is_completed(unit.digest):
            remove_hook_entries(context, (step for step in plan.steps if step.unit == unit.id))
            record.mark_incomplete()


def _history_failures(context: RolloutContext, plan: Plan) -> list[ObjectFailure]:
    """Return the units whose release history cannot take the new revision."""
    first: dict[UnitId, Step] = {}
    for step in plan.steps:
        first.setdefault(step.unit, step)
    return [
        (step, item.ref, Failure("ReleaseHistory", pending.problem, final=True))
        for name, step in first.items()
        if (pending := context.histories.pending_revision(name)) is not None and pending.problem
        for item in step_items(step)[:1]
    ]


def _compare_plan(context: RolloutContext, plan: Plan) -> list[ComparedItem]:
    """Compare the objects of a plan. On-failure steps are compared only when they run."""
    steps = (step for step in plan.steps if not context.is_remediation(step))
    return [compared_item for step in steps for compared_item in context.compared_items(step)]


def _units_with_work(context: RolloutContext, compared_items: list[ComparedItem]) -> list[UnitId]:
    """Return the units with work to do."""
    return list(
        dict.fromkeys(
            compared_item[0].unit
            for compared_item in compared_items
            if context.has_work(compared_item)
        )
    )


def expand(context: RolloutContext, step: Step) -> Procedure[messages.StepExpanded]:
    """Ask a worker for the further steps of an expanding step, and prepare them."""
    (outcome,) = yield (ApiCall(step.cluster, RunWorker(step.expansion, step.id.encode())),)
    if not isinstance(outcome, RawResponse):
        return messages.StepExpanded(step.id, failure_from_outcome(outcome))
    context.expanded_steps.add(step.id)
    requested = Plan.from_fragment(msgspec.json.decode(outcome.body, type=PlanFragment))
    context.register(requested.units, requested.steps, digest=requested.digest)
    preparation = yield from prepare_running_rollout(context, requested)
    for object_failure in preparation.failures:
        return messages.StepExpanded(step.id, failure_with_object(object_failure))
    plan = preparation.plan
    fragment = PlanFragment(units=plan.units, steps=plan.steps, edges=plan.edges, slots=plan.slots)
    return messages.StepExpanded(step.id, fragment, preparation.due_units)


def failure_with_object(object_failure: ObjectFailure) -> messages.Failure:
    """Return the failure with the name of its object in the message."""
    _, ref, failure = object_failure
    message = f"{ref}: {failure.message}"
    return messages.Failure(failure.reason, message, failure.final, ref=ref)
