"""The health of the Gateway API, Argo Workflows and Argo Rollouts in Argo CD.

The Gateway API nests its conditions: each listener, parent and ancestor has a list. A parent with
conditions for another generation is skipped.
"""

from __future__ import annotations

from typing import NamedTuple

from tidegate.health.argo.verdicts import (
    DEGRADED,
    HEALTHY,
    PROGRESSING,
    SUSPENDED,
    UNKNOWN,
    is_true,
    list_conditions,
    make_error_verdict,
    make_verdict,
)
from tidegate.model.k8s.json_fields import (
    get_int,
    get_list,
    get_mapping,
    get_mappings,
    get_text,
    get_value,
)
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.k8s.verdict import Health, Verdict
from tidegate.model.text.lazy_regex import lazy_regex

WORKLOAD_GENERATION = "rollout.argoproj.io/workload-generation"
FAILED_PROGRESS_REASONS = ("RolloutAborted", "ProgressDeadlineExceeded")
_NUMBER = lazy_regex(r"\s*[+-]?\d+(\.\d*)?\s*")


class _ConditionProblem(NamedTuple):
    """A condition that keeps an object from being healthy, and the resulting state."""

    health: Health
    """The resulting state."""
    condition: JsonObject
    """The condition."""
    message: str
    """Message for people."""


def judge_gateway_class(body: JsonObject) -> Verdict:
    """Return the health of a GatewayClass.

    Like `resource_customizations/gateway.networking.k8s.io/GatewayClass/health.lua` of Argo CD
    3.5.6.
    """
    for condition in list_conditions(body):
        if condition.get("type") != "Accepted" or not _is_current_condition(body, condition):
            continue
        health, default = {
            "True": (HEALTHY, "GatewayClass is accepted"),
            "False": (DEGRADED, "GatewayClass is not accepted"),
        }.get(get_text(condition, "status"), (PROGRESSING, "Waiting for GatewayClass status"))
        message = _message_or(condition, default)
        return make_verdict(
            body,
            health,
            get_text(condition, "reason", default="Accepted"),
            message,
            condition=condition,
        )
    return make_verdict(body, PROGRESSING, "NoStatus", "Waiting for GatewayClass status")


def judge_gateway(body: JsonObject) -> Verdict:
    """Return the health of a Gateway: its own conditions, then those of its listeners.

    Like `resource_customizations/gateway.networking.k8s.io/Gateway/health.lua` of Argo CD 3.5.6.
    """
    problem = _find_problem(list_conditions(body), "Gateway")
    if problem is not None:
        return _problem_verdict(body, problem)
    listeners = get_mappings(body, "status", "listeners")
    for listener in listeners:
        problem = _find_problem(get_mappings(listener, "conditions"), "Listener")
        if problem is not None:
            return _problem_verdict(body, problem, "Listener: ")
    if get_value(body, "status", "conditions") is None and not listeners:
        return make_verdict(body, PROGRESSING, "NoStatus", "Waiting for Gateway status")
    programmed = next(
        (condition for condition in list_conditions(body) if condition.get("type") == "Programmed"),
        {},
    )
    return make_verdict(body, HEALTHY, "Programmed", "Gateway is healthy", condition=programmed)


def judge_route(body: JsonObject) -> Verdict:
    """Return the health of an HTTPRoute or GRPCRoute.

    Like `resource_customizations/gateway.networking.k8s.io/HTTPRoute/health.lua` and
    `resource_customizations/gateway.networking.k8s.io/GRPCRoute/health.lua` of Argo CD 3.5.6.
    """
    kind = get_text(body, "kind")
    current = [
        route_parent
        for route_parent in get_mappings(body, "status", "parents")
        if _is_current_parent(body, route_parent)
    ]
    for parent in current:
        problem = _find_problem(get_mappings(parent, "conditions"), "Route")
        if problem is not None:
            name = get_text(parent, "parentRef", "name")
            return _problem_verdict(body, problem, f"Parent {name}: ")
    with_conditions = [
        route_parent for route_parent in current if get_mappings(route_parent, "conditions")
    ]
    if not with_conditions:
        return make_verdict(body, PROGRESSING, "NoStatus", f"Waiting for {kind} status")
    first = get_mappings(with_conditions[0], "conditions")[0]
    return make_verdict(body, HEALTHY, "Accepted", f"{kind} is healthy", condition=first)


def judge_backend_policy(body: JsonObject) -> Verdict:
    """Return the health of a BackendTLSPolicy.

    Like `resource_customizations/gateway.networking.k8s.io/BackendTLSPolicy/health.lua` of Argo CD
    3.5.6.
    """
    verdict = make_verdict(body, PROGRESSING, "NoStatus", "Waiting for BackendTLSPolicy status")
    conditions = [
        (get_text(get_mapping(ancestor, "ancestorRef"), "name"), condition)
        for ancestor in get_mappings(body, "status", "ancestors")
        for condition in get_mappings(ancestor, "conditions")
    ]
    for name, condition in conditions:
        if not _is_current_condition(body, condition):
            message = f"Waiting for Ancestor {name} to update BackendTLSPolicy status"
            return make_verdict(
                body, PROGRESSING, "GenerationNotObserved", message, condition=condition
            )
    for name, condition in conditions:
        if condition.get("type") in ("Accepted", "ResolvedRefs") and not is_true(condition):
            message = f"Ancestor {name}: {get_text(condition, 'message')}"
            reason = get_text(condition, "reason", default=f"Not{get_text(condition, 'type')}")
            return make_verdict(body, DEGRADED, reason, message, condition=condition)
        if condition.get("type") == "Accepted":
            verdict = make_verdict(
                body, HEALTHY, "Accepted", "BackendTLSPolicy is healthy", condition=condition
            )
    return verdict


def _find_problem(conditions: list[JsonObject], noun: str) -> _ConditionProblem | None:
    """Return the worst problem, or that the object is not programmed yet.

    Returns None if healthy.
    """
    for name in ("ResolvedRefs", "Accepted"):
        for condition in conditions:
            if condition.get("type") == name and condition.get("status") == "False":
                return _ConditionProblem(
                    DEGRADED, condition, _message_or(condition, f"Failed condition: {name}")
                )
    for condition in conditions:
        if condition.get("type") == "Programmed" and not is_true(condition):
            return _ConditionProblem(
                PROGRESSING, condition, _message_or(condition, f"{noun} is still being programmed")
            )
    return None


def _problem_verdict(body: JsonObject, problem: _ConditionProblem, prefix: str = "") -> Verdict:
    condition = problem.condition
    reason = get_text(condition, "reason", default=f"Not{get_text(condition, 'type')}")
    return make_verdict(body, problem.health, reason, prefix + problem.message, condition=condition)


def _message_or(condition: JsonObject, default: str) -> str:
    """Return the message of a condition, which may be empty. Returns `default` if it has none."""
    message = get_value(condition, "message")
    return message if isinstance(message, str) else default


def _is_current_parent(body: JsonObject, parent: JsonObject) -> bool:
    conditions = get_mappings(parent, "conditions")
    if not get_int(body, "metadata", "generation"):
        return True
    return bool(conditions) and all(
        _is_current_condition(body, condition) for condition in conditions
    )


def _is_current_condition(body: JsonObject, condition: JsonObject) -> bool:
    """Return whether a condition is for the current generation. A missing generation matches."""
    generation: Json = get_value(body, "metadata", "generation")
    observed: Json = get_value(condition, "observedGeneration")
    return generation is None or observed is None or generation == observed


def judge_workflow(body: JsonObject) -> Verdict:
    """Return the health of an Argo Workflow.

    Like `getArgoWorkflowHealth` in `pkg/health/health_argo.go` of gitops-engine (Argo CD 3.5.6).
    """
    phase = get_text(body, "status", "phase")
    status_message = get_text(body, "status", "message")
    match phase:
        case "" | "Pending" | "Running":
            message = status_message or "the workflow is running"
            return make_verdict(body, PROGRESSING, phase or "Pending", message)
        case "Succeeded":
            message = status_message or "the workflow succeeded"
            return make_verdict(body, HEALTHY, phase, message, final=True)
        case "Failed" | "Error":
            message = status_message or "the workflow failed"
            return make_verdict(body, DEGRADED, phase, message, final=True)
        case _:
            return make_verdict(body, UNKNOWN, "PhaseUnknown", status_message or "unknown phase")


def judge_rollout(body: JsonObject) -> Verdict:
    """Return the health of an Argo Rollout.

    Like `resource_customizations/argoproj.io/Rollout/health.lua` of Argo CD 3.5.6.
    """
    if not (_is_observed(body) and _is_workload_observed(body)):
        message = "Waiting for rollout spec update to be observed"
        return make_verdict(body, PROGRESSING, "GenerationNotObserved", message)
    if get_value(body, "status", "phase") is not None:
        return _judge_phase(body, get_text(body, "status", "phase"))
    if not isinstance(get_value(body, "status", "conditions"), list):
        return make_error_verdict(body, "a Rollout without a phase and without conditions")
    return _judge_fields(body)


def _judge_phase(body: JsonObject, phase: str) -> Verdict:
    """Judge by `status.phase`, which Argo Rollouts writes since version 1.0."""
    status_message = get_text(body, "status", "message")
    if phase == "Paused":
        return make_verdict(body, SUSPENDED, phase, status_message or "the rollout is paused")
    if phase not in set(Health):
        return make_verdict(body, UNKNOWN, "PhaseUnknown", "Lua returned an invalid health status")
    return make_verdict(body, Health(phase), phase, status_message or _availability_message(body))


def _availability_message(body: JsonObject) -> str:
    available = get_int(body, "status", "availableReplicas")
    return f"{available} of {get_int(body, 'spec', 'replicas', default=1)} replicas are available"


def _judge_fields(body: JsonObject) -> Verdict:
    """Judge by conditions and replica counts, for versions before 1.0, which write no phase."""
    for condition in list_conditions(body):
        is_stuck = (
            condition.get("type") == "Progressing"
            and condition.get("reason") in FAILED_PROGRESS_REASONS
        )
        if condition.get("type") == "InvalidSpec" or is_stuck:
            reason = get_text(condition, "reason", default="InvalidSpec")
            return make_verdict(
                body,
                DEGRADED,
                reason,
                get_text(condition, "message") or reason,
                condition=condition,
            )
    if get_list(body, "status", "pauseConditions") or get_value(body, "spec", "paused") is True:
        return make_verdict(body, SUSPENDED, "Paused", "Rollout is paused")
    if get_value(body, "status", "currentPodHash") is None:
        message = "Waiting for rollout to finish: status has not been reconciled."
        return make_verdict(body, PROGRESSING, "NoStatus", message)
    return _judge_replicas(body)


def _judge_replicas(body: JsonObject) -> Verdict:
    status, waiting = get_mapping(body, "status"), "Waiting for roll out to finish"
    updated = get_int(status, "updatedReplicas")
    if updated < get_int(body, "spec", "replicas", default=1):
        message = f"{waiting}: More replicas need to be updated"
        return make_verdict(body, PROGRESSING, "ReplicasNotUpdated", message)
    if get_int(status, "availableReplicas") < updated:
        message = f"{waiting}: updated replicas are still becoming available"
        return make_verdict(body, PROGRESSING, "ReplicasNotAvailable", message)
    if get_value(body, "spec", "strategy") is None:
        return make_error_verdict(body, "a Rollout without a strategy")
    if get_value(body, "spec", "strategy", "blueGreen") is not None:
        return _judge_blue_green(body)
    if get_value(body, "spec", "strategy", "canary") is not None:
        return _judge_canary(body)
    return make_verdict(body, HEALTHY, "Available", _availability_message(body))


def _judge_blue_green(body: JsonObject) -> Verdict:
    current, stable = get_value(body, "status", "currentPodHash"), _stable_hash(body)
    if get_value(body, "status", "blueGreen", "activeSelector") != current:
        return make_verdict(body, PROGRESSING, "CutoverPending", "active service cutover pending")
    if stable not in ("", current):
        return make_verdict(
            body, PROGRESSING, "AnalysisRunning", "waiting for analysis to complete"
        )
    return make_verdict(body, HEALTHY, "Available", _availability_message(body))


def _judge_canary(body: JsonObject) -> Verdict:
    status = get_mapping(body, "status")
    if get_int(status, "replicas") > get_int(status, "updatedReplicas"):
        message = "Waiting for roll out to finish: old replicas are pending termination"
        return make_verdict(body, PROGRESSING, "OldReplicasRemain", message)
    stable = _stable_hash(body)
    if stable == "" or stable != get_value(status, "currentPodHash"):
        message = "Waiting for rollout to finish steps"
        return make_verdict(body, PROGRESSING, "StepsRemain", message)
    return make_verdict(body, HEALTHY, "Available", _availability_message(body))


def _stable_hash(body: JsonObject) -> Json:
    """Return the hash of the stable ReplicaSet, which older versions write below `canary`."""
    stable_rs = get_value(body, "status", "stableRS")
    if stable_rs is not None:
        return stable_rs
    canary = get_value(body, "status", "canary")
    return "" if canary is None else get_value(canary, "stableRS")


def _is_observed(body: JsonObject) -> bool:
    """Return whether the generation is observed.

    Versions before 0.10 write a hash, which counts.
    """
    if get_value(body, "status") is None:
        return False
    observed = _parse_number(get_value(body, "status", "observedGeneration"))
    return observed is None or observed >= get_int(body, "metadata", "generation")


def _is_workload_observed(body: JsonObject) -> bool:
    annotations = get_value(body, "metadata", "annotations")
    if get_value(body, "spec", "workloadRef") is None or annotations is None:
        return True
    generation = _parse_number(get_value(annotations, WORKLOAD_GENERATION))
    return generation == _parse_number(get_value(body, "status", "workloadObservedGeneration"))


def _parse_number(value: Json) -> float | None:
    """Return a number, or the number that a text spells. Returns None for other values."""
    if isinstance(value, str):
        return float(value) if _NUMBER.fullmatch(value) else None
    return value if isinstance(value, int | float) else None
