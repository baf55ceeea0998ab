"""What kstatus asks of the kinds that run pods. The first question with a bad answer decides.

A Job is asked by a rule of Flux's own, neither for its generation nor whether it is being deleted.
"""

from __future__ import annotations

import msgspec

from tidegate.health.kstatus import fields
from tidegate.health.kstatus.fields import Condition, current, failed, in_progress
from tidegate.model.k8s.json_fields import get_int, get_text, get_value
from tidegate.model.k8s.objects import JsonObject
from tidegate.model.k8s.verdict import Verdict

_NO_DEADLINE = 2**31 - 1
"""What the Deployment controller takes for `no progress deadline`."""
_UNSET = -1


def judge_deployment(body: JsonObject) -> Verdict:
    conditions = fields.conditions_of(body)
    for condition in conditions:
        if condition.name == "Progressing" and condition.reason == "ProgressDeadlineExceeded":
            return failed("ProgressDeadlineExceeded", "Progress deadline exceeded", by=condition)
    return _short_deployment(body) or _unavailable(body, conditions) or _available(body, conditions)


def judge_stateful_set(body: JsonObject) -> Verdict:
    if get_text(body, "spec", "updateStrategy", "type") == "OnDelete":
        return current("OnDelete", "StatefulSet is using the ondelete update strategy")
    wanted, there = _wanted(body), get_int(body, "status", "replicas")
    ready = get_int(body, "status", "readyReplicas")
    short = (
        _fewer("LessReplicas", "Replicas", there, wanted)
        or _fewer("LessReady", "Ready", ready, wanted)
        or _extra(there, wanted)
    )
    return short or _revised(body, wanted)


def judge_daemon_set(body: JsonObject) -> Verdict:
    unseen = _never_seen(body)
    if unseen is not None:
        return unseen
    wanted = get_int(body, "status", "desiredNumberScheduled", default=_UNSET)
    if wanted == _UNSET:
        return in_progress("NoDesiredNumber", "Missing .status.desiredNumberScheduled")
    return (
        _fewer("LessCurrent", "Current", get_int(body, "status", "currentNumberScheduled"), wanted)
        or _fewer(
            "LessUpdated", "Updated", get_int(body, "status", "updatedNumberScheduled"), wanted
        )
        or _fewer("LessAvailable", "Available", get_int(body, "status", "numberAvailable"), wanted)
        or _fewer("LessReady", "Ready", get_int(body, "status", "numberReady"), wanted)
        or current("AllScheduled", f"All replicas scheduled as expected. Replicas: {wanted}")
    )


def judge_replica_set(body: JsonObject) -> Verdict:
    failure = fields.condition_with(body, "ReplicaFailure", "True")
    if failure is not None:
        sentence = "Replica Failure condition. Check Pods"
        return in_progress("ReplicaFailure", sentence, by=failure)
    wanted, there = _wanted(body), get_int(body, "status", "replicas")
    labelled = get_int(body, "status", "fullyLabeledReplicas")
    return (
        _fewer("LessLabelled", "Labelled", labelled, wanted)
        or _fewer(
            "LessAvailable", "Available", get_int(body, "status", "availableReplicas"), wanted
        )
        or _fewer("LessReady", "Ready", get_int(body, "status", "readyReplicas"), wanted)
        or _extra(there, wanted)
        or current("ReplicaSetAvailable", f"ReplicaSet is available. Replicas: {there}")
    )


def _wanted(body: JsonObject) -> int:
    return get_int(body, "spec", "replicas", default=1)


def _fewer(reason: str, what: str, there: int, wanted: int) -> Verdict | None:
    return in_progress(reason, f"{what}: {there}/{wanted}") if wanted > there else None


def _extra(there: int, wanted: int) -> Verdict | None:
    if there <= wanted:
        return None
    return in_progress("ExtraPods", f"Pending termination: {there - wanted}")


def _short_deployment(body: JsonObject) -> Verdict | None:
    wanted, there = _wanted(body), get_int(body, "status", "replicas")
    updated = get_int(body, "status", "updatedReplicas")
    available = get_int(body, "status", "availableReplicas")
    return (
        _fewer("LessReplicas", "Replicas", there, wanted)
        or _fewer("LessUpdated", "Updated", updated, wanted)
        or _extra(there, wanted)
        or _fewer("LessAvailable", "Available", available, updated)
        or _fewer("LessReady", "Ready", get_int(body, "status", "readyReplicas"), wanted)
    )


def _unavailable(body: JsonObject, conditions: tuple[Condition, ...]) -> Verdict | None:
    """A Deployment without a deadline has no condition `Progressing`: none is asked for."""
    deadline = get_int(body, "spec", "progressDeadlineSeconds", default=_NO_DEADLINE)
    complete = any(
        condition.name == "Progressing"
        and condition.holds
        and condition.reason == "NewReplicaSetAvailable"
        for condition in conditions
    )
    if deadline != _NO_DEADLINE and not complete:
        return in_progress("ReplicaSetNotAvailable", "ReplicaSet not Available")
    if _availability(conditions) is None:
        return in_progress("DeploymentNotAvailable", "Deployment not Available")
    return None


def _availability(conditions: tuple[Condition, ...]) -> Condition | None:
    found = (one for one in conditions if one.name == "Available" and one.holds)
    return next(found, None)


def _available(body: JsonObject, conditions: tuple[Condition, ...]) -> Verdict:
    there = get_int(body, "status", "replicas")
    by = _availability(conditions) or fields.NO_CONDITION
    return current("DeploymentAvailable", f"Deployment is available. Replicas: {there}", by=by)


def _revised(body: JsonObject, wanted: int) -> Verdict:
    """A StatefulSet whose pods are ready: are they of the revision that is wanted?"""
    updated = get_int(body, "status", "updatedReplicas")
    strategy = ("spec", "updateStrategy", "rollingUpdate", "partition")
    partition = get_int(body, *strategy, default=_UNSET)
    if partition != _UNSET:
        short = _fewer("PartitionRollout", "updated", updated, wanted - partition)
        sentence = f"Partition rollout complete. updated: {updated}"
        return short or current("PartitionComplete", sentence)
    short = _fewer("LessCurrent", "current", get_int(body, "status", "currentReplicas"), wanted)
    if short is not None:
        return short
    if get_text(body, "status", "currentRevision") != get_text(body, "status", "updateRevision"):
        return in_progress("RevisionMismatch", "Waiting for updated revision to match current")
    there = get_int(body, "status", "replicas")
    return current("AllScheduled", f"All replicas scheduled as expected. Replicas: {there}")


def _never_seen(body: JsonObject) -> Verdict | None:
    """Its controller always writes these two; until then it has not looked."""
    kind = get_text(body, "kind")
    if fields.stated_number(body, "metadata", "generation") is None:
        return in_progress("NoGeneration", f"{kind} metadata.generation not found")
    if fields.stated_number(body, "status", "observedGeneration") is None:
        return in_progress("NoObservedGeneration", f"{kind} status.observedGeneration not found")
    return None


def judge_job(body: JsonObject) -> Verdict:
    """Current when it is complete or suspended, failed when it gave up, else in progress."""
    if get_value(body, "spec", "suspend") is True:
        return current("JobSuspended", "Job is suspended")
    for condition in fields.conditions_of(body):
        if condition.name in {"Complete", "Failed"} and condition.holds:
            return msgspec.structs.replace(_ended(body, condition), is_final=True)
    if not get_text(body, "status", "startTime"):
        return in_progress("JobNotStarted", f"Job not started. active: 0/{_parallelism(body)}")
    done, active, lost = (
        get_int(body, "status", field) for field in ("succeeded", "active", "failed")
    )
    sentence = f"Job in progress. success:{done}, active: {active}, failed: {lost}"
    return in_progress("JobInProgress", sentence)


def _ended(body: JsonObject, condition: Condition) -> Verdict:
    completions = get_int(body, "spec", "completions", default=_parallelism(body))
    if condition.name == "Complete":
        done = get_int(body, "status", "succeeded")
        sentence = f"Job Completed. succeeded: {done}/{completions}"
        return current("JobComplete", sentence, by=condition)
    lost = get_int(body, "status", "failed")
    return failed("JobFailed", f"Job Failed. failed: {lost}/{completions}", by=condition)


def _parallelism(body: JsonObject) -> int:
    return get_int(body, "spec", "parallelism", default=1)
