"""Kinds of the Gateway API and of the Argo projects, as Argo CD judges them.

The Gateway API has its conditions in lists inside lists: those of each listener, parent or
ancestor. A parent whose conditions speak of another generation is passed over.
"""

from __future__ import annotations

from typing import NamedTuple

from tidegate.health.argo.verdicts import (
    DEGRADED,
    HEALTHY,
    PROGRESSING,
    SUSPENDED,
    UNKNOWN,
    breaks,
    conditions_of,
    is_true,
    say,
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
BAD_PROGRESS = ("RolloutAborted", "ProgressDeadlineExceeded")
_NUMBER = lazy_regex(r"\s*[+-]?\d+(\.\d*)?\s*")


class _Trouble(NamedTuple):
    health: Health
    condition: JsonObject
    sentence: str


def judge_gateway_class(body: JsonObject) -> Verdict:
    for one in conditions_of(body):
        if one.get("type") != "Accepted" or not _speaks_of(body, one):
            continue
        health, default = {
            "True": (HEALTHY, "GatewayClass is accepted"),
            "False": (DEGRADED, "GatewayClass is not accepted"),
        }.get(get_text(one, "status"), (PROGRESSING, "Waiting for GatewayClass status"))
        sentence = _told(one, default)
        return say(
            body, health, get_text(one, "reason", default="Accepted"), sentence, condition=one
        )
    return say(body, PROGRESSING, "NoStatus", "Waiting for GatewayClass status")


def judge_gateway(body: JsonObject) -> Verdict:
    trouble = _trouble_in(conditions_of(body), "Gateway")
    if trouble is not None:
        return _say_trouble(body, trouble)
    listeners = get_mappings(body, "status", "listeners")
    for listener in listeners:
        trouble = _trouble_in(get_mappings(listener, "conditions"), "Listener")
        if trouble is not None:
            return _say_trouble(body, trouble, "Listener: ")
    if get_value(body, "status", "conditions") is None and not listeners:
        return say(body, PROGRESSING, "NoStatus", "Waiting for Gateway status")
    programmed = next((one for one in conditions_of(body) if one.get("type") == "Programmed"), {})
    return say(body, HEALTHY, "Programmed", "Gateway is healthy", condition=programmed)


def judge_route(body: JsonObject) -> Verdict:
    kind = get_text(body, "kind")
    current = [one for one in get_mappings(body, "status", "parents") if _is_current(body, one)]
    for parent in current:
        trouble = _trouble_in(get_mappings(parent, "conditions"), "Route")
        if trouble is not None:
            name = get_text(parent, "parentRef", "name")
            return _say_trouble(body, trouble, f"Parent {name}: ")
    spoken = [one for one in current if get_mappings(one, "conditions")]
    if not spoken:
        return say(body, PROGRESSING, "NoStatus", f"Waiting for {kind} status")
    first = get_mappings(spoken[0], "conditions")[0]
    return say(body, HEALTHY, "Accepted", f"{kind} is healthy", condition=first)


def judge_backend_policy(body: JsonObject) -> Verdict:
    verdict = say(body, PROGRESSING, "NoStatus", "Waiting for BackendTLSPolicy status")
    said = [
        (get_text(get_mapping(ancestor, "ancestorRef"), "name"), one)
        for ancestor in get_mappings(body, "status", "ancestors")
        for one in get_mappings(ancestor, "conditions")
    ]
    for name, one in said:
        if not _speaks_of(body, one):
            sentence = f"Waiting for Ancestor {name} to update BackendTLSPolicy status"
            return say(body, PROGRESSING, "GenerationNotObserved", sentence, condition=one)
    for name, one in said:
        if one.get("type") in ("Accepted", "ResolvedRefs") and not is_true(one):
            sentence = f"Ancestor {name}: {get_text(one, 'message')}"
            reason = get_text(one, "reason", default=f"Not{get_text(one, 'type')}")
            return say(body, DEGRADED, reason, sentence, condition=one)
        if one.get("type") == "Accepted":
            verdict = say(body, HEALTHY, "Accepted", "BackendTLSPolicy is healthy", condition=one)
    return verdict


def _trouble_in(conditions: list[JsonObject], noun: str) -> _Trouble | None:
    """What is wrong, worst first; or that it is not programmed yet."""
    for name in ("ResolvedRefs", "Accepted"):
        for one in conditions:
            if one.get("type") == name and one.get("status") == "False":
                return _Trouble(DEGRADED, one, _told(one, f"Failed condition: {name}"))
    for one in conditions:
        if one.get("type") == "Programmed" and not is_true(one):
            return _Trouble(PROGRESSING, one, _told(one, f"{noun} is still being programmed"))
    return None


def _say_trouble(body: JsonObject, trouble: _Trouble, prefix: str = "") -> Verdict:
    one = trouble.condition
    reason = get_text(one, "reason", default=f"Not{get_text(one, 'type')}")
    return say(body, trouble.health, reason, prefix + trouble.sentence, condition=one)


def _told(condition: JsonObject, default: str) -> str:
    """The message, which may be empty but must be there."""
    told = get_value(condition, "message")
    return told if isinstance(told, str) else default


def _is_current(body: JsonObject, parent: JsonObject) -> bool:
    conditions = get_mappings(parent, "conditions")
    if not get_int(body, "metadata", "generation"):
        return True
    return bool(conditions) and all(_speaks_of(body, one) for one in conditions)


def _speaks_of(body: JsonObject, condition: JsonObject) -> bool:
    """Whether a condition is about the object as it is now, as far as both tell."""
    wanted: Json = get_value(body, "metadata", "generation")
    seen: Json = get_value(condition, "observedGeneration")
    return wanted is None or seen is None or wanted == seen


def judge_workflow(body: JsonObject) -> Verdict:
    phase = get_text(body, "status", "phase")
    told = get_text(body, "status", "message")
    match phase:
        case "" | "Pending" | "Running":
            sentence = told or "the workflow has not ended yet"
            return say(body, PROGRESSING, phase or "Pending", sentence)
        case "Succeeded":
            sentence = told or "the workflow has succeeded"
            return say(body, HEALTHY, phase, sentence, final=True)
        case "Failed" | "Error":
            sentence = told or "the workflow did not succeed"
            return say(body, DEGRADED, phase, sentence, final=True)
        case _:
            return say(body, UNKNOWN, "PhaseUnknown", told or "its phase is not known")


def judge_rollout(body: JsonObject) -> Verdict:
    if not (_is_observed(body) and _is_workload_observed(body)):
        sentence = "Waiting for rollout spec update to be observed"
        return say(body, PROGRESSING, "GenerationNotObserved", sentence)
    if get_value(body, "status", "phase") is not None:
        return _judge_phase(body, get_text(body, "status", "phase"))
    if not isinstance(get_value(body, "status", "conditions"), list):
        return breaks(body, "a Rollout without a phase and without conditions")
    return _judge_fields(body)


def _judge_phase(body: JsonObject, phase: str) -> Verdict:
    """Since version 1.0 of Argo Rollouts the phase tells all."""
    told = get_text(body, "status", "message")
    if phase == "Paused":
        return say(body, SUSPENDED, phase, told or "the rollout is paused")
    if phase not in set(Health):
        return say(body, UNKNOWN, "PhaseUnknown", "Lua returned an invalid health status")
    return say(body, Health(phase), phase, told or _available(body))


def _available(body: JsonObject) -> str:
    available = get_int(body, "status", "availableReplicas")
    return f"{available} of {get_int(body, 'spec', 'replicas', default=1)} replicas are available"


def _judge_fields(body: JsonObject) -> Verdict:
    """Older versions have no phase."""
    for one in conditions_of(body):
        is_stuck = one.get("type") == "Progressing" and one.get("reason") in BAD_PROGRESS
        if one.get("type") == "InvalidSpec" or is_stuck:
            reason = get_text(one, "reason", default="InvalidSpec")
            return say(body, DEGRADED, reason, get_text(one, "message") or reason, condition=one)
    if get_list(body, "status", "pauseConditions") or get_value(body, "spec", "paused") is True:
        return say(body, SUSPENDED, "Paused", "Rollout is paused")
    if get_value(body, "status", "currentPodHash") is None:
        sentence = "Waiting for rollout to finish: status has not been reconciled."
        return say(body, PROGRESSING, "NoStatus", sentence)
    return _judge_replicas(body)


def _judge_replicas(body: JsonObject) -> Verdict:
    status, waiting = get_mapping(body, "status"), "Waiting for roll out to finish"
    updated = get_int(status, "updatedReplicas")
    if updated < get_int(body, "spec", "replicas", default=1):
        sentence = f"{waiting}: More replicas need to be updated"
        return say(body, PROGRESSING, "ReplicasNotUpdated", sentence)
    if get_int(status, "availableReplicas") < updated:
        sentence = f"{waiting}: updated replicas are still becoming available"
        return say(body, PROGRESSING, "ReplicasNotAvailable", sentence)
    if get_value(body, "spec", "strategy") is None:
        return breaks(body, "a Rollout without a strategy")
    if get_value(body, "spec", "strategy", "blueGreen") is not None:
        return _judge_blue_green(body)
    if get_value(body, "spec", "strategy", "canary") is not None:
        return _judge_canary(body)
    return say(body, HEALTHY, "Available", _available(body))


def _judge_blue_green(body: JsonObject) -> Verdict:
    current, stable = get_value(body, "status", "currentPodHash"), _stable(body)
    if get_value(body, "status", "blueGreen", "activeSelector") != current:
        return say(body, PROGRESSING, "CutoverPending", "active service cutover pending")
    if stable not in ("", current):
        return say(body, PROGRESSING, "AnalysisRunning", "waiting for analysis to complete")
    return say(body, HEALTHY, "Available", _available(body))


def _judge_canary(body: JsonObject) -> Verdict:
    status = get_mapping(body, "status")
    if get_int(status, "replicas") > get_int(status, "updatedReplicas"):
        sentence = "Waiting for roll out to finish: old replicas are pending termination"
        return say(body, PROGRESSING, "OldReplicasRemain", sentence)
    stable = _stable(body)
    if stable == "" or stable != get_value(status, "currentPodHash"):
        sentence = "Waiting for rollout to finish steps"
        return say(body, PROGRESSING, "StepsRemain", sentence)
    return say(body, HEALTHY, "Available", _available(body))


def _stable(body: JsonObject) -> Json:
    """The hash of the stable ReplicaSet, in either of its two places."""
    own = get_value(body, "status", "stableRS")
    if own is not None:
        return own
    canary = get_value(body, "status", "canary")
    return "" if canary is None else get_value(canary, "stableRS")


def _is_observed(body: JsonObject) -> bool:
    """Versions before 0.10 wrote a hash instead of a generation: those count as observed."""
    if get_value(body, "status") is None:
        return False
    seen = _amount(get_value(body, "status", "observedGeneration"))
    return seen is None or seen >= get_int(body, "metadata", "generation")


def _is_workload_observed(body: JsonObject) -> bool:
    notes = get_value(body, "metadata", "annotations")
    if get_value(body, "spec", "workloadRef") is None or notes is None:
        return True
    wanted = _amount(get_value(notes, WORKLOAD_GENERATION))
    return wanted == _amount(get_value(body, "status", "workloadObservedGeneration"))


def _amount(value: Json) -> float | None:
    """A number, or a text that is one."""
    if isinstance(value, str):
        return float(value) if _NUMBER.fullmatch(value) else None
    return value if isinstance(value, int | float) else None
