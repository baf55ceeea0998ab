"""The kubelet: reconciles one pod. No state is kept between reconciliations.

All times are in the pod's status: when it was bound, when each container started and ended. The
next step follows from them, from the profile, and from the objects that the pod needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from tidegate.model.k8s.json_fields import get_int, get_mapping, get_mappings, get_text, get_value
from tidegate.model.k8s.kinds import POD
from tidegate.model.k8s.objects import Json, JsonObject, Ref
from tidegate.model.times import SECOND, Ms, format_duration
from tidegate.sandbox.controllers.conditions import read_timestamp
from tidegate.sandbox.controllers.interface import (
    AppendLog,
    Controller,
    ObjectReader,
    Reconciliation,
    RequeueAt,
)
from tidegate.sandbox.controllers.writes import EventRecorder, controller_ref, patch
from tidegate.sandbox.node.kubelet import states
from tidegate.sandbox.node.kubelet.conditions import (
    READY_TO_START,
    SCHEDULED,
    compute_conditions,
    compute_phase,
)
from tidegate.sandbox.node.kubelet.config_references import missing_volume
from tidegate.sandbox.node.kubelet.container_context import ContainerContext
from tidegate.sandbox.node.kubelet.containers import ContainerStep, PodEvent, advance_container
from tidegate.sandbox.node.kubelet.scheduling import SIGTERM_EXIT_CODE, schedule_pod, terminate_pod
from tidegate.sandbox.node.kubelet.states import ENDED_BY_SIGNAL, assumption_metadata
from tidegate.sandbox.node.profile import ContainerIdentity, ContainerProfiles, OwnerName, Profile
from tidegate.sandbox.server.lifecycle import format_rfc3339
from tidegate.sandbox.server.store import StoredObject, StoreEvent
from tidegate.world.messages import WatchEventType, is_error
from tidegate.world.requests import Write

KUBELET = "kubelet"
RECORDER = EventRecorder(KUBELET)
FINAL_PHASES = ("Succeeded", "Failed")
HOST_ADDRESS = "10.0.0.1"
MAX_MOUNT_BACKOFF = Ms(122 * SECOND)
DEADLINE_MESSAGE = "Pod was active on the node longer than the specified deadline"
"""Message of a pod that exceeds `activeDeadlineSeconds`.

Like `message` in `pkg/kubelet/active_deadline.go` of Kubernetes 1.36.4.
"""
UNREADY_CHECK_INTERVAL = Ms(5 * SECOND)
"""Interval at which a pod is checked that cannot be ready yet."""
UnreadyReason: TypeAlias = Callable[[ObjectReader, StoredObject], str]
"""A function that returns why a running pod cannot be ready yet; empty if it can."""


def kubelet_controller(
    profile: Profile,
    *,
    unready_reason: UnreadyReason = lambda _view, _pod: "",
    record_pulls: bool = False,
) -> Controller:
    """Return a scheduler and a kubelet as one controller, with the durations of a profile.

    `unready_reason` returns why a running pod cannot be ready yet, such as a sealed Vault. With
    `record_pulls`, Events report how long images were pulled, for observers of the cluster.
    """
    container_profiles = ContainerProfiles(profile)

    def reconcile(reader: ObjectReader, ref: Ref, now: Ms) -> Reconciliation:
        pod = reader.get(ref)
        if pod is None:
            return
        contexts = _container_contexts(reader, pod, profile, container_profiles)
        if pod.is_deleting:
            yield from terminate_pod(
                pod,
                Ms(max((context.container_profile.stop for context in contexts), default=0)),
                now,
            )
        elif get_text(pod.body, "status", "phase") in FINAL_PHASES:
            return
        elif not get_text(pod.body, "spec", "nodeName"):
            unschedulable = next(
                (context.container_profile.unschedulable for context in contexts), ""
            )
            yield from schedule_pod(reader, pod, unschedulable, now)
        else:
            reason = unready_reason(reader, pod)
            if reason:
                contexts = [
                    replace(
                        context,
                        container_profile=msgspec.structs.replace(
                            context.container_profile, never_ready=True
                        ),
                    )
                    for context in contexts
                ]
                yield RequeueAt(Ms(now + UNREADY_CHECK_INTERVAL))
            yield from _sync_pod(reader, pod, contexts, now, record_pulls=record_pulls)

    return Controller(KUBELET, reconcile, _map_event, kinds=(POD,))


def _container_contexts(
    reader: ObjectReader, pod: StoredObject, profile: Profile, container_profiles: ContainerProfiles
) -> list[ContainerContext]:
    owners = tuple(_owner_names(reader, pod))
    restart_policy = get_text(pod.body, "spec", "restartPolicy", default="Always")
    owner = controller_ref(pod)
    job = reader.get(owner) if owner is not None and owner.kind.name == "Job" else None
    earlier_failures = get_int(job.body, "status", "failed") if job else 0
    return [
        ContainerContext(
            reader=reader,
            pod=pod,
            profile=profile,
            container=container,
            container_profile=container_profiles.get(
                ContainerIdentity(
                    owners,
                    pod.ref.namespace,
                    get_text(container, "name"),
                    get_text(container, "image"),
                )
            ),
            role=states.container_role(container, is_init=is_init),
            restart_policy=restart_policy,
            earlier_failures=earlier_failures,
        )
        for key, is_init in (("initContainers", True), ("containers", False))
        for container in get_mappings(pod.body, "spec", key)
    ]


def _owner_names(reader: ObjectReader, pod: StoredObject) -> Iterator[OwnerName]:
    """Yield the pod and its controllers, up to the top-level object."""
    stored: StoredObject | None = pod
    while stored is not None:
        yield OwnerName(stored.ref.kind.name, stored.ref.name)
        owner = controller_ref(stored)
        if owner is None:
            return
        stored = reader.get(owner)
        if stored is None:
            yield OwnerName(owner.kind.name, owner.name)


class _PodSync(msgspec.Struct):
    """The state and the results of one reconciliation of a pod."""

    pod: StoredObject
    """The pod."""
    contexts: list[ContainerContext]
    """The containers, init containers first."""
    now: Ms
    """The current time."""
    conditions: dict[str, JsonObject]
    """The conditions by type."""
    bound_at: Ms
    """When the pod was bound to its node."""
    old_statuses: list[states.ContainerStatus] = msgspec.field(default_factory=list)
    """The statuses of the containers before the reconciliation."""
    steps: list[ContainerStep] = msgspec.field(default_factory=list)
    """The new states of the containers."""
    requeue_times: list[Ms] = msgspec.field(default_factory=list)
    """Times at which to reconcile again."""
    events: list[PodEvent] = msgspec.field(default_factory=list)
    """Events to record."""


def _sync_pod(
    reader: ObjectReader,
    pod: StoredObject,
    contexts: list[ContainerContext],
    now: Ms,
    *,
    record_pulls: bool,
) -> Reconciliation:
    """Advance a pod that is bound to a node."""
    conditions = {
        get_text(condition, "type"): condition
        for condition in get_mappings(pod.body, "status", "conditions")
    }
    sync = _PodSync(pod, contexts, now, conditions, _bound_at(pod, conditions))
    since = _mounted_since(reader, sync)
    _advance_containers(sync, since)
    deadline = _deadline(sync)
    is_past_deadline = deadline is not None and deadline <= now
    if is_past_deadline:
        sync.steps = [_stop_after_deadline(step, now) for step in sync.steps]
    elif deadline is not None:
        sync.requeue_times.append(deadline)
    changes: JsonObject = {}
    if is_past_deadline or _needs_status_write(sync, since):
        status = _pod_status(sync, since, is_past_deadline=is_past_deadline)
        known = get_mapping(pod.body, "status")
        changes = {key: value for key, value in status.items() if known.get(key) != value}
    metadata = assumption_metadata(pod, (name for step in sync.steps for name in step.assumptions))
    if changes or metadata:
        outcome = yield _status_patch(pod, changes, metadata)
        if outcome is None or is_error(outcome):
            yield RequeueAt(Ms(now + SECOND))
            return
        yield from _append_logs(sync)
        if record_pulls:
            yield from _record_pulls(sync)
    yield from _record_events(sync, has_changed=bool(changes))
    requeue_times = [
        *sync.requeue_times,
        *(step.requeue_at for step in sync.steps if step.requeue_at is not None),
    ]
    if requeue_times and changes.get("phase") not in FINAL_PHASES:
        yield RequeueAt(min(requeue_times))


def _mounted_since(reader: ObjectReader, sync: _PodSync) -> Ms | None:
    """Return when the volumes were mounted and the containers could start; None if not yet."""
    condition = sync.conditions.get(READY_TO_START)
    if condition is not None and condition.get("status") == "True":
        return read_timestamp(condition.get("lastTransitionTime"))
    volume, problem = missing_volume(reader, sync.pod)
    if not problem:
        return sync.bound_at if condition is None else states.truncate_to_second(sync.now)
    message = f'MountVolume.SetUp failed for volume "{volume}" : {problem}'
    sync.events.append(PodEvent("FailedMount", message))
    waited = sync.now - sync.bound_at
    sync.requeue_times.append(Ms(sync.now + min(max(waited, SECOND), MAX_MOUNT_BACKOFF)))
    return None


def _bound_at(pod: StoredObject, conditions: dict[str, JsonObject]) -> Ms:
    scheduled = conditions.get(SCHEDULED)
    scheduled_at = read_timestamp(scheduled.get("lastTransitionTime")) if scheduled else None
    return scheduled_at or read_timestamp(pod.metadata.get("creationTimestamp")) or Ms(0)


def _advance_containers(sync: _PodSync, since: Ms | None) -> None:
    """Advance init containers one after the other, then all others at once.

    Like `computePodActions` in `pkg/kubelet/kuberuntime/kuberuntime_manager.go` of Kubernetes
    1.36.4.
    """
    has_inits = any(context.role is not states.ContainerRole.MAIN for context in sync.contexts)
    recorded = {
        get_text(container_status, "name"): container_status
        for key in ("initContainerStatuses", "containerStatuses")
        for container_status in get_mappings(sync.pod.body, "status", key)
    }
    for context in sync.contexts:
        name = get_text(context.container, "name")
        status = states.read_container_status(
            context.container,
            recorded.get(name),
            states.INITIALIZING if has_inits else states.CREATING,
        )
        step = advance_container(context, status, since, sync.now)
        sync.old_statuses.append(status)
        sync.steps.append(step)
        if context.role is not states.ContainerRole.MAIN and since is not None:
            done_at = _init_done_at(context, step.status, sync.now)
            since = max(since, done_at) if done_at is not None else None
    _stop_sidecars(sync)


def _stop_sidecars(sync: _PodSync) -> None:
    """Stop the sidecars when all main containers have terminated."""
    context_steps = list(zip(sync.contexts, sync.steps, strict=True))
    main_steps = [
        step for context, step in context_steps if context.role is states.ContainerRole.MAIN
    ]
    if all(
        isinstance(step.status.state, states.TerminatedState) and step.requeue_at is None
        for step in main_steps
    ):
        sync.steps = [
            (
                step._replace(status=_stopped_status(step.status, 0, sync.now))
                if context.role is states.ContainerRole.SIDECAR
                else step
            )
            for context, step in context_steps
        ]


def _init_done_at(context: ContainerContext, status: states.ContainerStatus, now: Ms) -> Ms | None:
    """Return when an init container let the next one start; None if not yet."""
    match status.state:
        case states.TerminatedState() if (
            context.role is states.ContainerRole.INIT and status.state.code == 0
        ):
            return status.state.finished_at
        case states.RunningState() if context.role is states.ContainerRole.SIDECAR:
            started = context.probe_times(status.state.started_at).started
            return started if started is not None and started <= now else None
    return None


def _stopped_status(status: states.ContainerStatus, code: int, now: Ms) -> states.ContainerStatus:
    """Return the status of a container that was stopped while running."""
    if not isinstance(status.state, states.RunningState):
        return status
    reason = "Error" if code else "Completed"
    terminated = states.TerminatedState(
        code, reason, "", status.state.started_at, states.truncate_to_second(now)
    )
    return status._replace(state=terminated, started=False, ready=False)


def _stop_after_deadline(step: ContainerStep, now: Ms) -> ContainerStep:
    status = _stopped_status(step.status, SIGTERM_EXIT_CODE, now)
    assumptions = () if status is step.status else (ENDED_BY_SIGNAL,)
    return step._replace(status=status, assumptions=(*step.assumptions, *assumptions))


def _deadline(sync: _PodSync) -> Ms | None:
    seconds = get_int(sync.pod.body, "spec", "activeDeadlineSeconds")
    return Ms(sync.bound_at + seconds * SECOND) if seconds else None


def _pod_status(sync: _PodSync, since: Ms | None, *, is_past_deadline: bool) -> JsonObject:
    containers = [
        (context, step.status) for context, step in zip(sync.contexts, sync.steps, strict=True)
    ]
    phase = "Failed" if is_past_deadline else compute_phase(containers)
    status: JsonObject = {"phase": phase, "startTime": format_rfc3339(sync.bound_at)}
    if sync.pod.generation:
        status["observedGeneration"] = sync.pod.generation
    if is_past_deadline:
        status |= {"reason": "DeadlineExceeded", "message": DEADLINE_MESSAGE}
    old_conditions = sync.conditions
    conditions = compute_conditions(
        sync.pod, containers, phase, old_conditions, since=since, now=sync.now
    )
    status["conditions"] = [*conditions]
    inits = [
        states.write_container_status(container_status)
        for context, container_status in containers
        if context.role is not states.ContainerRole.MAIN
    ]
    if inits:
        status["initContainerStatuses"] = [*inits]
    status["containerStatuses"] = [
        states.write_container_status(container_status)
        for context, container_status in containers
        if context.role is states.ContainerRole.MAIN
    ]
    return status | _addresses(sync.pod, is_waiting=since is None)


def _addresses(pod: StoredObject, *, is_waiting: bool) -> JsonObject:
    addresses: JsonObject = {"hostIP": HOST_ADDRESS, "hostIPs": [{"ip": HOST_ADDRESS}]}
    if is_waiting:
        return addresses
    pod_ip = HOST_ADDRESS
    if get_value(pod.body, "spec", "hostNetwork") is not True:
        number = int(pod.uid[:6] or "0", 16)
        pod_ip = f"10.{128 + (number >> 16) % 128}.{number >> 8 & 255}.{number & 255}"
    return addresses | {"podIP": pod_ip, "podIPs": [{"ip": pod_ip}]}


def _needs_status_write(sync: _PodSync, since: Ms | None) -> bool:
    """Return whether the status changed; a pod whose containers only wait needs no write."""
    if sync.old_statuses != [step.status for step in sync.steps]:
        return True
    condition = sync.conditions.get(READY_TO_START)
    if condition is None:
        return since is None
    is_ready_to_start = condition.get("status") == "True"
    return is_ready_to_start == (since is None) or bool(
        get_mappings(sync.pod.body, "spec", "readinessGates")
    )


def _status_patch(pod: StoredObject, changes: JsonObject, metadata: JsonObject) -> Write:
    """Return the patch of a status and of its assumptions."""
    fields: JsonObject = {"metadata": metadata} if metadata else {}
    return patch(pod, {**fields, "status": changes}, subresource="status", manager=KUBELET)


def _append_logs(sync: _PodSync) -> Reconciliation:
    for step in sync.steps:
        if step.lines:
            yield AppendLog(sync.pod.uid, step.status.name, step.status.restarts, step.lines)


def _record_pulls(sync: _PodSync) -> Reconciliation:
    """Record the image pulls of containers that run for the first time."""
    for context, old_status, step in zip(sync.contexts, sync.old_statuses, sync.steps, strict=True):
        has_waited = isinstance(old_status.state, states.WaitingState) and old_status.last is None
        if has_waited and isinstance(step.status.state, states.RunningState):
            profile, started_at = context.container_profile, step.status.state.started_at
            duration = format_duration(profile.pull)
            message = (
                f'Successfully pulled image "{old_status.image}" in {duration} ({duration}'
                " including waiting)."
            )
            key = "containers" if context.role is states.ContainerRole.MAIN else "initContainers"
            field_path = f"spec.{key}{{{old_status.name}}}"
            yield RECORDER.record(
                sync.pod, "Pulled", message, Ms(started_at - profile.start), field_path=field_path
            )


def _record_events(sync: _PodSync, *, has_changed: bool) -> Reconciliation:
    """Record the Events of the written status; assumptions are recorded in any case."""
    for event in (*sync.events, *(event for step in sync.steps for event in step.events)):
        if has_changed or event.is_assumed:
            record = RECORDER.record if event.is_assumed else RECORDER.record_warning
            yield record(sync.pod, event.reason, event.message, sync.now)


def _map_event(_reader: ObjectReader, event: StoreEvent) -> Iterator[Ref]:
    """Yield new pods, and pods that changed by other hands than the kubelet's."""
    stored, before = event.stored, event.before
    if stored.ref.kind != POD or event.change is WatchEventType.DELETED:
        return
    is_external_change = before is None or stored.is_deleting or _spec(before) is not _spec(stored)
    if is_external_change or get_mappings(stored.body, "spec", "readinessGates"):
        yield stored.ref


def _spec(stored: StoredObject) -> Json:
    return stored.body.get("spec")
