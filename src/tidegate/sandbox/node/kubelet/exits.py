"""Exits of containers: work done, failure from the scenario, or an unavailable Service."""

from __future__ import annotations

from typing import NamedTuple

from tidegate.model.times import SECOND, Ms
from tidegate.sandbox.node.kubelet import kubectl_wait, service_calls, states
from tidegate.sandbox.node.kubelet.container_context import ContainerContext

BACKOFF_DIVISOR = 20
"""The delay between two checks grows to this fraction (1/20) of the time waited."""
CALL_WINDOW = Ms(10 * SECOND)
"""Time after start within which a long-running container calls its Services."""


class ContainerExit(NamedTuple):
    """The exit of a container, in the future or in the past."""

    time: Ms
    """The time of the exit."""
    code: int
    """The exit code."""
    message: str = ""
    """The termination message."""
    lines: tuple[str, ...] = ()
    """The last log lines."""
    kill_message: str = ""
    """Why a probe killed the container; empty if none did."""
    assumptions: tuple[str, ...] = ()
    """Names of the assumptions that the exit relies on."""


class ExitForecast(NamedTuple):
    """A forecast of the exit of a container: the exit, or when to check again."""

    exit: ContainerExit | None
    """The exit; None if it is not known yet."""
    requeue_at: Ms | None = None
    """When to check again; None if the exit is known."""
    assumption_text: str = ""
    """The text that explains `assumptions`."""
    assumptions: tuple[str, ...] = ()
    """Names of the assumptions that the forecast relies on."""


def predict_exit(
    context: ContainerContext, status: states.ContainerStatus, started_at: Ms, now: Ms
) -> ExitForecast:
    """Predict the exit of a container that started at this time, as far as it is known now."""
    failure = _failure_exit(context, status, started_at)
    if context.is_long_running and not context.container_profile.dials:
        return _server_exit(context, failure, started_at, now)
    wait_result = (
        started_at
        if context.is_long_running
        else kubectl_wait.evaluate_waits(context, started_at, now)
    )
    if isinstance(wait_result, kubectl_wait.PendingWait):
        return _exit_after_wait(context, wait_result, started_at, now)._replace(exit=failure)
    if isinstance(wait_result, kubectl_wait.FailedWait):
        message = (
            f"{wait_result.missing}, and `kubectl` gives up"
            f" {states.format_assumptions(states.KUBECTL)}"
        )
        wait_failure = ContainerExit(
            wait_result.time, 1, message, (wait_result.line,), assumptions=(states.KUBECTL,)
        )
        return ExitForecast(_earlier_exit(failure, wait_failure))
    started_at = wait_result
    calls = _calls(context)
    if not calls:
        return ExitForecast(_earlier_exit(failure, _success_exit(context, started_at)))
    if service_calls.is_polling(context.reader, context.pod, context.container, context.profile):
        forecast = _exit_after_polling(context, calls, started_at, now)
    else:
        forecast = _exit_after_call(context, calls, started_at, now)
    return forecast._replace(exit=_earlier_exit(failure, forecast.exit))


def _run_duration(context: ContainerContext) -> Ms:
    profile = context.container_profile
    return Ms(
        (profile.init if context.role is states.ContainerRole.INIT else profile.run) + profile.slow
    )


def _success_exit(context: ContainerContext, started_at: Ms) -> ContainerExit | None:
    return (
        None
        if context.is_long_running
        else ContainerExit(Ms(started_at + _run_duration(context)), 0)
    )


def _earlier_exit(
    first: ContainerExit | None, second: ContainerExit | None
) -> ContainerExit | None:
    """Return the earlier of two exits; at the same time the first, which is the failure."""
    if first is None or second is None:
        return first or second
    return first if first.time <= second.time else second


def _failure_exit(
    context: ContainerContext, status: states.ContainerStatus, started_at: Ms
) -> ContainerExit | None:
    failure = context.container_profile.failure
    if failure is None:
        return None
    if failure.times is not None and status.restarts + context.earlier_failures >= failure.times:
        return None
    delay = failure.after
    if delay is None:
        delay = Ms(SECOND) if context.is_long_running else _run_duration(context)
    return ContainerExit(Ms(started_at + delay), failure.code, "set by the scenario")


def _server_exit(
    context: ContainerContext, failure: ContainerExit | None, started_at: Ms, now: Ms
) -> ExitForecast:
    """Return the exit of a server: none because of Services.

    A Service without endpoints is reported when the server starts.
    """
    unready = (
        _first_unready(context, _calls(context))
        if states.truncate_to_second(now) == started_at
        else None
    )
    if unready is None:
        return ExitForecast(failure)
    message = _explain(unready, "so the container continues without it", states.SERVERS_WAIT)
    return ExitForecast(
        failure, assumption_text=message, assumptions=(states.HOSTS, states.SERVERS_WAIT)
    )


def _calls(context: ContainerContext) -> tuple[service_calls.ServiceCall, ...]:
    return service_calls.called_services(
        context.reader, context.pod, context.container, context.profile
    )


def _first_unready(
    context: ContainerContext, calls: tuple[service_calls.ServiceCall, ...]
) -> service_calls.ServiceCall | None:
    """Return the first call to a Service without ready endpoints, or None."""
    return next(
        (call for call in calls if service_calls.ready_since(context.reader, call.service) is None),
        None,
    )


def _exit_after_call(
    context: ContainerContext, calls: tuple[service_calls.ServiceCall, ...], started_at: Ms, now: Ms
) -> ExitForecast:
    failed_at = Ms(started_at + context.container_profile.dial)
    if now < failed_at:
        return ExitForecast(None, failed_at)
    if context.is_long_running and now > failed_at + CALL_WINDOW:
        return ExitForecast(None)
    unready = _first_unready(context, calls)
    if unready is None:
        return ExitForecast(_success_exit(context, started_at))
    message = _explain(unready, "so the call fails", states.DIAL_FAILS)
    line = f"dial tcp: lookup {unready.host}: no endpoints"
    return ExitForecast(
        ContainerExit(now, 1, message, (line,), assumptions=(states.HOSTS, states.DIAL_FAILS))
    )


def _exit_after_polling(
    context: ContainerContext, calls: tuple[service_calls.ServiceCall, ...], started_at: Ms, now: Ms
) -> ExitForecast:
    unready = _first_unready(context, calls)
    if unready is not None:
        waited = now - started_at
        is_first = context.container_profile.poll <= waited < 2 * context.container_profile.poll
        assumption_text = (
            _explain(unready, "so the container waits", states.DIAL_POLLS) if is_first else ""
        )
        assumptions = (states.HOSTS, states.DIAL_POLLS)
        return ExitForecast(
            None, Ms(now + _poll_delay(context, Ms(waited))), assumption_text, assumptions
        )
    since = max(
        service_calls.ready_since(context.reader, call.service) or started_at for call in calls
    )
    return ExitForecast(_success_exit(context, max(started_at, since)))


def _exit_after_wait(
    context: ContainerContext, wait: kubectl_wait.PendingWait, started_at: Ms, now: Ms
) -> ExitForecast:
    """Return a forecast that checks again soon, and at the deadline of the wait."""
    waited = Ms(now - started_at)
    next_check = Ms(now + _poll_delay(context, waited))
    requeue_at = next_check if wait.deadline is None else min(next_check, wait.deadline)
    is_first = context.container_profile.poll <= waited < 2 * context.container_profile.poll
    message = f"{wait.missing}, and `kubectl` waits {states.format_assumptions(states.KUBECTL)}"
    return ExitForecast(None, requeue_at, message if is_first else "", (states.KUBECTL,))


def _poll_delay(context: ContainerContext, waited: Ms) -> Ms:
    """Return the delay before the next check; long waits are checked less often."""
    return max(
        context.container_profile.poll, states.truncate_to_second(Ms(waited // BACKOFF_DIVISOR))
    )


def _explain(unready: service_calls.ServiceCall, consequence: str, assumption: str) -> str:
    service = f"{unready.service.namespace}/{unready.service.name}"
    problem = f"Service {service}, named by {unready.reason}, has no ready endpoints"
    return f"{problem}, {consequence} {states.format_assumptions(assumption)}"
