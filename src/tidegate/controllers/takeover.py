"""Running controllers of Argo CD and Flux that manage the same units.

    reject        a controller is running, and its units are not paused
    take over     each unit is paused first, and stays paused
    hand back     after a successful rollout, each unit that is paused by us is resumed

The same applies to deletion: a running controller would create the objects again.

The state is stored on the unit resources, so that an interrupted takeover can continue.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from tidegate.clusters.reader import get_objects
from tidegate.clusters.session import Session
from tidegate.dialect.controllers.known import (
    CONTROLLERS,
    ControllerInfo,
    is_paused_by_us,
    is_reconciling,
    is_running,
    pause_patch,
    resume_patch,
    with_pause,
)
from tidegate.errors import ClusterError, Location
from tidegate.model.display import count_noun, join_quoted
from tidegate.model.k8s.kinds import POD
from tidegate.model.k8s.objects import ClusterRef, JsonObject, LiveObject, object_body
from tidegate.model.plans.plan import Plan, PlanFragment, PlanItem, Step, digest_step
from tidegate.model.units.unit import UnitId
from tidegate.plan.build.items import digest_body
from tidegate.planning.plan import PlanResult
from tidegate.rollout.status_writer import UnitResource, find_unit_resources
from tidegate.world.errors import raise_for_error
from tidegate.world.messages import (
    Conflict,
    Forbidden,
    NotFound,
)
from tidegate.world.one_shot import send_requests
from tidegate.world.requests import PatchType, Selection, Verb, Write

FIELD_MANAGER = "tidegate"
POD_LIMIT = 10
"""Pods of a controller that are read."""
MAX_ATTEMPTS = 3
TAKE_OVER_HINT = "pause it for these units with `--take-over`"
NO_CONTROLLER_NOTE = "`--take-over`: no controller is running for these units, nothing to pause"


class TakeoverResult(msgspec.Struct, frozen=True):
    """The result of pausing other controllers before a rollout."""

    plan_result: PlanResult
    """The plan to roll out; unit resources that it creates are created paused."""
    resources: Mapping[UnitId, UnitResource] = msgspec.field(default_factory=dict)
    """By unit, its unit resource."""
    paused: tuple[UnitId, ...] = ()
    """Units whose controllers are paused."""
    notes: tuple[str, ...] = ()
    """Messages for the user."""

    def pause_in_plan(self, plan_result: PlanResult) -> PlanResult:
        """Return a newer plan that creates the same unit resources paused."""
        return _with_paused_resources(plan_result, self.paused, self.resources)

    @property
    def paused_message(self) -> str:
        units = [*self.paused]
        return f"{_controller_titles(units)} is still paused for {count_noun(len(units), 'unit')}"


async def take_over(
    plan_result: PlanResult, session: Session, *, takes_over: bool = False, hands_back: bool = False
) -> TakeoverResult:
    """Make sure that no other controller manages these units. Raises ClusterError if one does.

    With `takes_over` a running controller is paused instead. Paused units stay paused.
    """
    resources, running, notes = await _find_controllers(plan_result, session)
    managed = {
        unit_id: resource
        for unit_id, resource in resources.items()
        if (unit_id.cluster, unit_id.kind) in running
    }
    if not managed and not hands_back:
        return TakeoverResult(
            plan_result, resources, notes=(*notes, NO_CONTROLLER_NOTE) if takes_over else notes
        )
    relevant = resources if hands_back else managed
    live_objects = await _get_live_resources(relevant, session)
    paused = [
        unit_id for unit_id, live in live_objects.items() if is_paused_by_us(object_body(live))
    ]
    unpaused = [unit_id for unit_id in managed if unit_id in live_objects and unit_id not in paused]
    if (unpaused or not paused) and managed and not takes_over and not (hands_back and paused):
        raise _controller_running_error(
            unpaused or [*managed],
            running,
            f"{TAKE_OVER_HINT}, and resume it afterwards with `--hand-back`",
        )
    notes += await _pause(
        {unit_id: (relevant[unit_id], live_objects[unit_id]) for unit_id in unpaused}, session
    )
    paused_units = tuple(unit_id for unit_id in relevant if unit_id in managed or unit_id in paused)
    return TakeoverResult(
        _with_paused_resources(plan_result, paused_units, resources), resources, paused_units, notes
    )


async def keep_paused(plan_result: PlanResult, session: Session) -> PlanResult:
    """Return the plan in which the units stay paused whose controllers we paused."""
    resources, running, _ = await _find_controllers(plan_result, session)
    managed = {
        unit_id: resource
        for unit_id, resource in resources.items()
        if (unit_id.cluster, unit_id.kind) in running
    }
    live_objects = await _get_live_resources(managed, session)
    paused = tuple(
        unit_id for unit_id, live in live_objects.items() if is_paused_by_us(object_body(live))
    )
    return _with_paused_resources(plan_result, paused, resources)


async def take_over_for_delete(
    plan_result: PlanResult, session: Session, *, takes_over: bool
) -> TakeoverResult:
    """Make sure that no other controller manages these units before they are deleted.

    Units without a live unit resource have no controller.
    """
    resources, running, notes = await _find_controllers(plan_result, session)
    managed = {
        unit_id: resource
        for unit_id, resource in resources.items()
        if (unit_id.cluster, unit_id.kind) in running
    }
    live_objects = await _get_live_resources(managed, session)
    unpaused = [
        unit_id for unit_id, live in live_objects.items() if not is_paused_by_us(object_body(live))
    ]
    if unpaused and not takes_over:
        raise _controller_running_error(unpaused, running, TAKE_OVER_HINT)
    if takes_over and not live_objects:
        notes = (*notes, NO_CONTROLLER_NOTE)
    notes += await _pause(
        {unit_id: (managed[unit_id], live_objects[unit_id]) for unit_id in unpaused}, session
    )
    return TakeoverResult(plan_result, resources, tuple(live_objects), notes)


async def report_still_paused(takeover: TakeoverResult, session: Session) -> tuple[str, ...]:
    """Return a message about unit resources that are still live and paused after a deletion."""
    live_objects = await _get_live_resources(
        {unit_id: takeover.resources[unit_id] for unit_id in takeover.paused}, session
    )
    paused = tuple(
        unit_id for unit_id, live in live_objects.items() if is_paused_by_us(object_body(live))
    )
    return (replace(takeover, paused=paused).paused_message,) if paused else ()


async def _find_controllers(
    plan_result: PlanResult, session: Session
) -> tuple[dict[UnitId, UnitResource], frozenset[tuple[str, str]], tuple[str, ...]]:
    """Return the unit resources, the running controllers, and notes on what is not visible."""
    groups = {kind: controller.group for kind, controller in CONTROLLERS.items()}
    resources = await find_unit_resources(plan_result, session, groups)
    return resources, *await find_running_controllers(
        ((unit_id.cluster, unit_id.kind) for unit_id in resources), session
    )


async def _pause(
    unpaused: dict[UnitId, tuple[UnitResource, LiveObject]], session: Session
) -> tuple[str, ...]:
    """Pause the controllers of these units. Return messages for the user."""
    _reject_busy(
        [unit_id for unit_id, (_, live) in unpaused.items() if is_reconciling(object_body(live))]
    )
    for resource, live in unpaused.values():
        await _set_paused(resource, live, session, is_paused=True)
    units = [*unpaused]
    note = f"paused {_controller_titles(units)} for {count_noun(len(units), 'unit')}"
    return (note,) if units else ()


async def resume_controllers(takeover: TakeoverResult, session: Session) -> tuple[str, ...]:
    """Resume all units that are paused by us, in reverse order. Return messages for the user."""
    resources = {unit_id: takeover.resources[unit_id] for unit_id in takeover.paused}
    live_objects = await _get_live_resources(resources, session)
    paused = [
        unit_id
        for unit_id in reversed(resources)
        if unit_id in live_objects and is_paused_by_us(object_body(live_objects[unit_id]))
    ]
    for unit_id in paused:
        await _set_paused(resources[unit_id], live_objects[unit_id], session, is_paused=False)
    if not paused:
        return ("`--hand-back`: none of these units is paused",)
    return (f"resumed {_controller_titles(paused)} for {count_noun(len(paused), 'unit')}",)


async def find_running_controllers(
    cluster_kinds: Iterable[tuple[str, str]], session: Session
) -> tuple[frozenset[tuple[str, str]], tuple[str, ...]]:
    """Return clusters and kinds whose controller has pods, and notes about forbidden reads."""
    running: set[tuple[str, str]] = set()
    notes: list[str] = []
    for cluster, kind in dict.fromkeys(cluster_kinds):
        controller = CONTROLLERS[kind]
        selections = (Selection(POD, label_selector=label) for label in controller.selectors)
        listing = await session.reader(cluster).list_each(selections, limit=POD_LIMIT)
        action = f"listing the pods of {controller.title}"
        listing.raise_errors(action, Location("pods"), ignored=Forbidden)
        if any(is_running(object_body(pod)) for pod in listing.items):
            running.add((cluster, kind))
        if listing.errors:
            notes.append(
                f"cannot determine whether {controller.title} is running: listing pods is forbidden"
            )
    return frozenset(running), tuple(dict.fromkeys(notes))


async def _get_live_resources(
    resources: Mapping[UnitId, UnitResource], session: Session
) -> dict[UnitId, LiveObject]:
    """Return the live ones of the unit resources."""
    cluster_refs = {unit_id: resource.cluster_ref for unit_id, resource in resources.items()}
    live_objects = await get_objects(session.world, cluster_refs.values())
    return {
        unit_id: live_objects[cluster_ref]
        for unit_id, cluster_ref in cluster_refs.items()
        if cluster_ref in live_objects
    }


async def _set_paused(
    resource: UnitResource, live: LiveObject, session: Session, *, is_paused: bool
) -> None:
    """Pause or resume the controller of a unit; on a conflict, read the resource again."""
    cluster_ref = resource.cluster_ref
    for attempt in range(MAX_ATTEMPTS):
        (outcome,) = await send_requests(
            session.world,
            _pause_request(resource, live, is_paused=is_paused),
            cluster=cluster_ref.cluster,
        )
        if isinstance(outcome, Conflict) and attempt < MAX_ATTEMPTS - 1:
            current = await session.reader(cluster_ref.cluster).get(cluster_ref.ref)
            if current is None:
                return
            live = current
            continue
        action = "pausing its controller" if is_paused else "resuming its controller"
        raise_for_error(outcome, action, Location(str(cluster_ref.ref)), ignored=NotFound)
        return


def _pause_request(resource: UnitResource, live: LiveObject, *, is_paused: bool) -> Write:
    body = object_body(live)
    written: JsonObject = msgspec.json.decode(resource.body) if resource.body else {}
    return Write(
        verb=Verb.PATCH,
        patch_type=PatchType.MERGE,
        ref=resource.cluster_ref.ref,
        body=msgspec.json.encode(pause_patch(body) if is_paused else resume_patch(body, written)),
        manager=FIELD_MANAGER,
        uid=live.uid,
        resource_version=live.resource_version,
    )


def _with_paused_resources(
    plan_result: PlanResult, units: Iterable[UnitId], resources: Mapping[UnitId, UnitResource]
) -> PlanResult:
    """Return the plan that creates the unit resources of these units paused."""
    refs = {resources[unit_id].cluster_ref for unit_id in units}
    plan = plan_result.plan
    steps = tuple(_pause_in_step(step, refs) for step in plan.steps)
    if all(new is old for new, old in zip(steps, plan.steps, strict=True)):
        return plan_result
    fragment = PlanFragment(units=plan.units, steps=steps, edges=plan.edges, slots=plan.slots)
    return replace(plan_result, plan=Plan.from_fragment(fragment))


def _pause_in_step(step: Step, refs: set[ClusterRef]) -> Step:
    def paused(item: PlanItem) -> PlanItem:
        if ClusterRef(step.cluster, item.ref) not in refs or not item.body:
            return item
        body = msgspec.json.encode(with_pause(msgspec.json.decode(item.body)))
        digest = digest_body(body, item.hook, step.hook_event)
        return msgspec.structs.replace(item, body=body, digest=digest)

    batches = tuple(tuple(map(paused, batch)) for batch in step.batches)
    if batches == step.batches:
        return step
    digest = digest_step(batches, step.expansion)
    return msgspec.structs.replace(step, batches=batches, digest=digest)


def _reject_busy(busy: list[UnitId]) -> None:
    if busy:
        problem = f"{_controller_titles(busy)} is syncing {join_quoted(busy)}"
        hint = "wait until the sync has finished, then run this command again"
        raise ClusterError(
            "cluster.controller-busy", problem, location=Location(str(busy[0])), hint=hint
        )


def _controller_running_error(
    units: list[UnitId], running: Iterable[tuple[str, str]], remedy: str
) -> ClusterError:
    problem = f"{_controller_titles(units)} is running and manages {join_quoted(units)}"
    workloads = sorted({CONTROLLERS[kind].workload for _, kind in running})
    hint = f"{remedy}; or stop it with `kubectl scale {workloads[0]} --replicas=0` in its namespace"
    return ClusterError(
        "cluster.controller-active", problem, location=Location(str(units[0])), hint=hint
    )


def _controller_titles(units: Iterable[UnitId]) -> str:
    controllers: dict[ControllerInfo, None] = dict.fromkeys(
        CONTROLLERS[unit_id.kind] for unit_id in units
    )
    return " and ".join(controller.title for controller in controllers)
