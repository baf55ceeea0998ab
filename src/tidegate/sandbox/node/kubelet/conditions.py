"""Phase and conditions of a pod, computed from its containers as the kubelet does."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.model.k8s.json_fields import get_mappings, get_text
from tidegate.model.k8s.objects import JsonObject
from tidegate.model.times import Ms
from tidegate.sandbox.node.kubelet import states
from tidegate.sandbox.node.kubelet.container_context import ContainerContext
from tidegate.sandbox.server.lifecycle import format_rfc3339
from tidegate.sandbox.server.store import StoredObject

ContainerStatuses = Sequence[tuple[ContainerContext, states.ContainerStatus]]
"""The containers of a pod, init containers first, each with its status."""
READY_TO_START = "PodReadyToStartContainers"
SCHEDULED = "PodScheduled"
KUBELET_CONDITIONS = (READY_TO_START, "Initialized", "Ready", "ContainersReady")
TRUE: JsonObject = {"status": "True"}
FALSE: JsonObject = {"status": "False"}


def compute_phase(containers: ContainerStatuses) -> str:
    """Return the phase: Pending until every container has started; final when none will restart.

    Like `getPhase` in `pkg/kubelet/kubelet_pods.go` of Kubernetes 1.36.4.
    """
    for context, status in containers:
        terminated = _last_terminated(status)
        if context.role is states.ContainerRole.INIT and terminated and terminated.code:
            if not context.should_restart(terminated.code):
                return "Failed"
            return "Pending"
    if any(_is_pending(context, status) for context, status in containers):
        return "Pending"
    main_containers = [
        (context, status)
        for context, status in containers
        if context.role is states.ContainerRole.MAIN
    ]
    last_exits = [
        _last_terminated(status) for _, status in main_containers if not _is_running(status)
    ]
    if len(last_exits) < len(main_containers) or any(
        terminated and context.should_restart(terminated.code)
        for (context, _), terminated in zip(main_containers, last_exits, strict=True)
    ):
        return "Running"
    return (
        "Failed"
        if any(terminated and terminated.code for terminated in last_exits)
        else "Succeeded"
    )


def _is_pending(context: ContainerContext, status: states.ContainerStatus) -> bool:
    match context.role:
        case states.ContainerRole.INIT:
            return not isinstance(status.state, states.TerminatedState)
        case states.ContainerRole.SIDECAR:
            return (
                status.last is None
                and not isinstance(status.state, states.TerminatedState)
                and not status.started
            )
        case states.ContainerRole.MAIN:
            return isinstance(status.state, states.WaitingState) and status.last is None


def _is_running(status: states.ContainerStatus) -> bool:
    """Return whether a container runs, or is about to run another image."""
    is_restarting = (
        isinstance(status.state, states.WaitingState) and status.state.reason == states.CREATING
    )
    return isinstance(status.state, states.RunningState) or is_restarting


def _last_terminated(status: states.ContainerStatus) -> states.TerminatedState | None:
    if isinstance(status.state, states.TerminatedState):
        return status.state
    return status.last if isinstance(status.state, states.WaitingState) else None


def compute_conditions(
    pod: StoredObject,
    containers: ContainerStatuses,
    phase: str,
    known: dict[str, JsonObject],
    *,
    since: Ms | None,
    now: Ms,
) -> list[JsonObject]:
    """Return all conditions: those of the kubelet computed, those of others unchanged.

    `since`: when the volumes of the pod were mounted; None if not yet.

    Like `GenerateContainersReadyCondition`, `GeneratePodReadyCondition`,
    `GeneratePodInitializedCondition` and `GeneratePodReadyToStartContainersCondition` in
    `pkg/kubelet/status/generate.go` of Kubernetes 1.36.4.
    """
    is_ready_to_start = since is not None and phase not in ("Succeeded", "Failed")
    readiness = _containers_ready(containers, phase)
    ready_since = now if since is None else since
    desired: tuple[tuple[str, JsonObject, Ms], ...] = (
        (
            READY_TO_START,
            TRUE if is_ready_to_start else FALSE,
            ready_since if is_ready_to_start else now,
        ),
        ("Initialized", _initialized(containers, phase), now),
        ("Ready", _ready_with_gates(pod, known) if readiness is TRUE else readiness, now),
        ("ContainersReady", readiness, now),
    )
    others = [condition for name, condition in known.items() if name not in KUBELET_CONDITIONS]
    if SCHEDULED not in known:
        # A pod that was created for its node needs no scheduling.
        others.append(_with_transition_time(SCHEDULED, None, TRUE, ready_since))
    return [
        *(
            _with_transition_time(name, known.get(name), fields, changed_at)
            for name, fields, changed_at in desired
        ),
        *others,
    ]


def _with_transition_time(
    name: str, known: JsonObject | None, fields: JsonObject, changed_at: Ms
) -> JsonObject:
    if known is not None and known.get("status") == fields["status"]:
        return {"type": name, **fields, "lastTransitionTime": known.get("lastTransitionTime")}
    return {"type": name, **fields, "lastTransitionTime": format_rfc3339(changed_at)}


def _initialized(containers: ContainerStatuses, phase: str) -> JsonObject:
    if phase == "Succeeded":
        return {**TRUE, "reason": "PodCompleted"}
    has_started = any(
        context.role is states.ContainerRole.MAIN
        and (status.last or not isinstance(status.state, states.WaitingState))
        for context, status in containers
    )
    incomplete = [
        status.name
        for context, status in containers
        if not has_started and _is_uninitialized(context, status)
    ]
    if not incomplete:
        return TRUE
    message = f"containers with incomplete status: [{' '.join(incomplete)}]"
    return {**FALSE, "reason": "ContainersNotInitialized", "message": message}


def _is_uninitialized(context: ContainerContext, status: states.ContainerStatus) -> bool:
    if context.role is states.ContainerRole.SIDECAR:
        return not status.started
    return context.role is states.ContainerRole.INIT and not status.ready


def _containers_ready(containers: ContainerStatuses, phase: str) -> JsonObject:
    if phase in ("Succeeded", "Failed"):
        return {**FALSE, "reason": "PodCompleted" if phase == "Succeeded" else "PodFailed"}
    unready = [
        status.name
        for context, status in containers
        if context.role is not states.ContainerRole.INIT and not status.ready
    ]
    if not unready:
        return TRUE
    message = f"containers with unready status: [{' '.join(unready)}]"
    return {**FALSE, "reason": "ContainersNotReady", "message": message}


def _ready_with_gates(pod: StoredObject, known: dict[str, JsonObject]) -> JsonObject:
    """Return the readiness of a pod with ready containers, according to its readiness gates.

    Like `GeneratePodReadyCondition` in `pkg/kubelet/status/generate.go` of Kubernetes 1.36.4.
    """
    problems = []
    for gate in get_mappings(pod.body, "spec", "readinessGates"):
        name = get_text(gate, "conditionType")
        condition = known.get(name)
        if condition is None:
            message = f'corresponding condition of pod readiness gate "{name}" does not exist.'
            problems.append(message)
        elif condition.get("status") != "True":
            message = f'the status of pod readiness gate "{name}" is not "True"'
            problems.append(f"{message}, but {condition.get('status')}")
    if not problems:
        return TRUE
    return {**FALSE, "reason": "ReadinessGatesNotReady", "message": ", ".join(problems)}
