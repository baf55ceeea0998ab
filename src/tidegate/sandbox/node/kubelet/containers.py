"""State of a container over time: created, running, terminated, restarted.

Each reconciliation advances a container to the current time.
"""

from __future__ import annotations

from typing import NamedTuple

from tidegate.model.times import MINUTE, SECOND, Ms, format_duration
from tidegate.sandbox.node.kubelet import states
from tidegate.sandbox.node.kubelet.config_references import missing_variable
from tidegate.sandbox.node.kubelet.container_context import ContainerContext, ProbeTimes
from tidegate.sandbox.node.kubelet.exits import ContainerExit, predict_exit
from tidegate.sandbox.node.kubelet.scheduling import SIGTERM_EXIT_CODE
from tidegate.sandbox.node.profile import ContainerProfile

INITIAL_BACKOFF, MAX_BACKOFF = Ms(10 * SECOND), Ms(300 * SECOND)
BACKOFF_RESET = Ms(10 * MINUTE)
"""A container that ran this long starts its back-off again.

Like `hasExpired` in `util/flowcontrol/backoff.go` of k8s.io/client-go 0.36.4.
"""
CONFIG_ERROR = "CreateContainerConfigError"
IMAGE_WAIT_REASONS = (states.CREATING, "ErrImagePull", "ImagePullBackOff")
"""Reasons for which a container that ran before waits for another image."""
SIGKILL_EXIT_CODE = 137
CONFIG_RETRY = Ms(10 * SECOND)
"""Interval at which the kubelet checks for missing Secrets and ConfigMaps."""


class PodEvent(NamedTuple):
    """An Event to record for a pod."""

    reason: str
    """Reason of the Event."""
    message: str
    """Message of the Event."""
    is_assumed: bool = False
    """Whether the Event states an assumption of the simulation."""


class ContainerStep(NamedTuple):
    """The new status of a container, its next check, Events and log lines."""

    status: states.ContainerStatus
    """The new status."""
    requeue_at: Ms | None = None
    """When to check the container again; None for never."""
    events: tuple[PodEvent, ...] = ()
    """Events to record."""
    lines: tuple[str, ...] = ()
    """Log lines to append."""
    assumptions: tuple[str, ...] = ()
    """Names of the assumptions that the step relies on."""


def advance_container(
    context: ContainerContext, status: states.ContainerStatus, since: Ms | None, now: Ms
) -> ContainerStep:
    """Advance a container to the current time; `since` is when it may start, None if not yet."""
    if status.image != context.image and context.role is not states.ContainerRole.INIT:
        return _replace_image(context, status, since, now)
    match status.state:
        case states.WaitingState():
            last = status.last
            return (
                _start(context, status, since, now)
                if last is None
                else _retry(context, status, last, now)
            )
        case states.RunningState():
            return _run(context, status, status.state.started_at, now)
        case states.TerminatedState():
            return _after_exit(context, status, status.state, now)


def _start(
    context: ContainerContext, status: states.ContainerStatus, since: Ms | None, now: Ms
) -> ContainerStep:
    if since is None:
        return ContainerStep(status)
    profile = context.container_profile
    pulled_at = Ms(since + profile.pull)
    if profile.unpullable:
        attempt = _pull(status, profile, since, now)
        if isinstance(attempt, ContainerStep):
            return attempt
        pulled_at = attempt
    starts_at = Ms(pulled_at + profile.start)
    if now < starts_at:
        return ContainerStep(status, starts_at)
    return (
        _restart(context, status, status.last, now)
        if status.last
        else _create(context, status, now)
    )


def _replace_image(
    context: ContainerContext, status: states.ContainerStatus, since: Ms | None, now: Ms
) -> ContainerStep:
    """Restart a container whose image was changed in place, without back-off.

    Like `computePodActions` in `pkg/kubelet/kuberuntime/kuberuntime_manager.go` of Kubernetes
    1.36.4.
    """
    new_status = status._replace(image=context.image)
    match status.state:
        case states.RunningState():
            terminated = states.TerminatedState(
                SIGTERM_EXIT_CODE,
                "Error",
                "",
                status.state.started_at,
                states.truncate_to_second(now),
            )
            stopped = new_status._replace(
                state=states.WaitingState(states.CREATING),
                last=terminated,
                started=False,
                ready=False,
            )
            step = _start(context, stopped, terminated.finished_at, now)
            event = PodEvent(
                "Killing", f"Container {status.name} definition changed, will be restarted"
            )
            assumptions = (states.ENDED_BY_SIGNAL, *step.assumptions)
            return step._replace(events=(event, *step.events), assumptions=assumptions)
        case states.WaitingState() if status.last is not None:
            return _start(
                context,
                new_status._replace(state=states.WaitingState(states.CREATING)),
                status.last.finished_at,
                now,
            )
        case states.WaitingState():
            return _start(context, new_status, since, now)
        case states.TerminatedState() if context.should_restart(status.state.code):
            return _after_exit(context, new_status, status.state, now)
        case states.TerminatedState():
            return ContainerStep(status)


def _create(context: ContainerContext, status: states.ContainerStatus, now: Ms) -> ContainerStep:
    """Start a container, or report a missing Secret or ConfigMap."""
    problem = missing_variable(context.reader, context.pod, context.container)
    if problem:
        blocked = status._replace(state=states.WaitingState(CONFIG_ERROR, problem))
        return ContainerStep(
            blocked, Ms(now + CONFIG_RETRY), (PodEvent("Failed", f"Error: {problem}"),)
        )
    started_at = states.truncate_to_second(now)
    step = _run(context, status._replace(state=states.RunningState(started_at)), started_at, now)
    return step._replace(
        lines=(*context.container_profile.lines, *step.lines),
        assumptions=(*states.start_assumptions(context.container), *step.assumptions),
    )


def _pull(
    status: states.ContainerStatus, profile: ContainerProfile, since: Ms, now: Ms
) -> ContainerStep | Ms:
    """Return the state of an image pull that fails, or the time at which it succeeded.

    Like `EnsureImageExists` in `pkg/kubelet/images/image_manager.go` of Kubernetes 1.36.4.
    """
    attempt, backoff = Ms(since + profile.pull), INITIAL_BACKOFF
    first = attempt
    while True:
        if profile.pullable_after is not None and attempt >= since + profile.pullable_after:
            return attempt
        next_attempt = Ms(attempt + backoff)
        if next_attempt > now:
            break
        attempt, backoff = next_attempt, min(Ms(backoff * 2), MAX_BACKOFF)
    image = status.image
    if now < first:
        return ContainerStep(status, first)
    error = f'failed to pull and unpack image "{image}": not found'
    requeue_at = next_attempt if profile.pullable_after is not None else None
    if now < first + SECOND:
        failed = status._replace(state=states.WaitingState("ErrImagePull", error))
        event = PodEvent("Failed", f'Failed to pull image "{image}": {error}')
        return ContainerStep(failed, Ms(first + SECOND), (event,))
    message = f'Back-off pulling image "{image}": ErrImagePull: {error}'
    return ContainerStep(
        status._replace(state=states.WaitingState("ImagePullBackOff", message)), requeue_at
    )


def _run(
    context: ContainerContext, status: states.ContainerStatus, started_at: Ms, now: Ms
) -> ContainerStep:
    """Advance a running container: apply its probes, and terminate it when it exits."""
    probe_times = context.probe_times(started_at)
    forecast = predict_exit(context, status, started_at, now)
    exit_ = _with_probe_kill(forecast.exit, probe_times, status.name)
    if exit_ is not None and exit_.time <= now:
        return _terminate(context, status, exit_, now)
    if context.role is states.ContainerRole.INIT:
        probe_requeue, status = None, status._replace(started=False, ready=False)
    else:
        status, probe_requeue = _apply_probes(context, status, probe_times, now)
    requeue_times = (exit_.time if exit_ else None, forecast.requeue_at, probe_requeue)
    requeue_at = min(
        (candidate for candidate in requeue_times if candidate is not None), default=None
    )
    events = (
        (PodEvent("Assumed", forecast.assumption_text, is_assumed=True),)
        if forecast.assumption_text
        else ()
    )
    return ContainerStep(status, requeue_at, events, assumptions=forecast.assumptions)


def _with_probe_kill(
    exit_: ContainerExit | None, probe_times: ProbeTimes, name: str
) -> ContainerExit | None:
    if probe_times.killed is None or (exit_ is not None and exit_.time < probe_times.killed):
        return exit_
    kill_message = f"Container {name} failed {probe_times.killed_by} probe, will be restarted"
    assumptions = (states.PROBES_FOLLOW, states.KILLED_BY_PROBE)
    message = (
        f"killed by its {probe_times.killed_by} probe {states.format_assumptions(*assumptions)}"
    )
    return ContainerExit(
        probe_times.killed,
        SIGKILL_EXIT_CODE,
        message,
        kill_message=kill_message,
        assumptions=assumptions,
    )


def _apply_probes(
    context: ContainerContext, status: states.ContainerStatus, probe_times: ProbeTimes, now: Ms
) -> tuple[states.ContainerStatus, Ms | None]:
    """Return the status with `started` and `ready` set, and when they change next."""
    profile = context.container_profile
    ready_from = None if profile.never_ready else probe_times.ready
    started = probe_times.started is not None and probe_times.started <= now
    ready = started and ready_from is not None and ready_from <= now
    next_changes = [
        change_time
        for change_time in (probe_times.started, ready_from)
        if change_time is not None and change_time > now
    ]
    if ready and profile.flaps and ready_from is not None:
        flips = (now - ready_from) // profile.flaps
        ready = flips % 2 == 0
        next_changes.append(Ms(ready_from + (flips + 1) * profile.flaps))
    return status._replace(started=started, ready=ready), min(next_changes, default=None)


def _terminate(
    context: ContainerContext, status: states.ContainerStatus, exit_: ContainerExit, now: Ms
) -> ContainerStep:
    started_at = status.state.started_at if isinstance(status.state, states.RunningState) else now
    reason = "Error" if exit_.code else "Completed"
    terminated = states.TerminatedState(
        exit_.code, reason, exit_.message, started_at, states.truncate_to_second(now)
    )
    is_done = context.role is states.ContainerRole.INIT and exit_.code == 0
    kill_events = (
        PodEvent("Unhealthy", exit_.kill_message),
        PodEvent("Killing", exit_.kill_message),
    )
    ended_status = status._replace(state=terminated, started=False, ready=is_done)
    step = _after_exit(context, ended_status, terminated, now)
    if step.status.restarts > ended_status.restarts:
        # The next run starts in another reconciliation: the status of this run is written first.
        step = ContainerStep(ended_status, now)
    assumption_events = (
        (PodEvent("Assumed", exit_.message, is_assumed=True),) if exit_.assumptions else ()
    )
    events = (*(kill_events if exit_.kill_message else ()), *assumption_events, *step.events)
    return step._replace(events=events, lines=exit_.lines, assumptions=exit_.assumptions)


def _after_exit(
    context: ContainerContext,
    status: states.ContainerStatus,
    terminated: states.TerminatedState,
    now: Ms,
) -> ContainerStep:
    """Leave a terminated container as it is, or wait for its restart."""
    if not context.should_restart(terminated.code):
        return ContainerStep(status)
    backoff = restart_backoff(status.restarts, terminated)
    restarts_at = Ms(terminated.finished_at + (backoff or context.container_profile.start))
    if not backoff:
        return (
            _restart(context, status, terminated, now)
            if restarts_at <= now
            else ContainerStep(status, restarts_at)
        )
    pod = f"{context.pod.ref.name}_{context.pod.ref.namespace}({context.pod.uid})"
    message = (
        f"back-off {format_duration(backoff)} restarting failed container={status.name} pod={pod}"
    )
    waiting = states.WaitingState("CrashLoopBackOff", message)
    event = PodEvent("BackOff", f"Back-off restarting failed container {status.name} in pod {pod}")
    return ContainerStep(status._replace(state=waiting, last=terminated), restarts_at, (event,))


def _retry(
    context: ContainerContext, status: states.ContainerStatus, last: states.TerminatedState, now: Ms
) -> ContainerStep:
    if isinstance(status.state, states.WaitingState) and status.state.reason in IMAGE_WAIT_REASONS:
        return _start(context, status, last.finished_at, now)
    restarts_at = Ms(last.finished_at + restart_backoff(status.restarts, last))
    return (
        _restart(context, status, last, now)
        if restarts_at <= now
        else ContainerStep(status, restarts_at)
    )


def _restart(
    context: ContainerContext,
    status: states.ContainerStatus,
    terminated: states.TerminatedState,
    now: Ms,
) -> ContainerStep:
    step = _create(context, status._replace(last=terminated, restarts=status.restarts + 1), now)
    if (
        isinstance(step.status.state, states.WaitingState)
        and step.status.state.reason == CONFIG_ERROR
    ):
        return step._replace(status=step.status._replace(restarts=status.restarts))
    return step


def restart_backoff(restarts: int, terminated: states.TerminatedState) -> Ms:
    """Return the back-off: none before the first restart, then 10 s, doubled up to five minutes.

    Like `doBackOff` in `pkg/kubelet/kuberuntime/kuberuntime_manager.go` of Kubernetes 1.36.4.
    """
    if not restarts or terminated.finished_at - terminated.started_at >= BACKOFF_RESET:
        return Ms(0)
    return Ms(min(INITIAL_BACKOFF * 2 ** min(restarts - 1, 10), MAX_BACKOFF))
