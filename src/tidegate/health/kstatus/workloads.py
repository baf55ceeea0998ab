"""The rules of kstatus for workloads. The first check that fails decides.

Jobs have a rule of Flux, which checks neither the generation nor a deletion.
"""

from __future__ import annotations

import msgspec

from tidegate.health.kstatus import fields
from tidegate.health.kstatus.fields import Condition, current, failed, in_progress
from tidegate.model.k8s.json_fields import get_int, get_text, get_value
from tidegate.model.k8s.objects import JsonObject
from tidegate.model.k8s.pods import desired_replicas
from tidegate.model.k8s.verdict import Verdict

_NO_DEADLINE = 2**31 - 1
"""The value that means no progress deadline to the Deployment controller."""
_UNSET = -1


def judge_deployment(body: JsonObject) -> Verdict:
    """Return the health of a Deployment.

    Like `deploymentConditions` in `pkg/kstatus/status/core.go` of fluxcd/cli-utils 1.2.3.
    """
    conditions = fields.read_conditions(body)
    for condition in conditions:
        if condition.type == "Progressing" and condition.reason == "ProgressDeadlineExceeded":
            return failed(
                "ProgressDeadlineExceeded", "Progress deadline exceeded", condition=condition
            )
    return (
        _judge_replicas(body)
        or _judge_availability(body, conditions)
        or _available_verdict(body, conditions)
    )


def judge_stateful_set(body: JsonObject) -> Verdict:
    """Return the health of a StatefulSet.

    Like `stsConditions` in `pkg/kstatus/status/core.go` of fluxcd/cli-utils 1.2.3.
    """
    if get_text(body, "spec", "updateStrategy", "type") == "OnDelete":
        return current("OnDelete", "StatefulSet is using the ondelete update strategy")
    desired, replicas = desired_replicas(body), get_int(body, "status", "replicas")
    ready = get_int(body, "status", "readyReplicas")
    shortage = (
        _fewer("LessReplicas", "Replicas", replicas, desired)
        or _fewer("LessReady", "Ready", ready, desired)
        or _extra(replicas, desired)
    )
    return shortage or _judge_revision(body, desired)


def judge_daemon_set(body: JsonObject) -> Verdict:
    """Return the health of a DaemonSet.

    Like `daemonsetConditions` in `pkg/kstatus/status/core.go` of fluxcd/cli-utils 1.2.3.
    """
    unobserved = _judge_first_observation(body)
    if unobserved is not None:
        return unobserved
    desired = get_int(body, "status", "desiredNumberScheduled", default=_UNSET)
    if desired == _UNSET:
        return in_progress("NoDesiredNumber", "Missing .status.desiredNumberScheduled")
    return (
        _fewer("LessCurrent", "Current", get_int(body, "status", "currentNumberScheduled"), desired)
        or _fewer(
            "LessUpdated", "Updated", get_int(body, "status", "updatedNumberScheduled"), desired
        )
        or _fewer("LessAvailable", "Available", get_int(body, "status", "numberAvailable"), desired)
        or _fewer("LessReady", "Ready", get_int(body, "status", "numberReady"), desired)
        or current("AllScheduled", f"All replicas scheduled as expected. Replicas: {desired}")
    )


def judge_replica_set(body: JsonObject) -> Verdict:
    """Return the health of a ReplicaSet.

    Like `replicasetConditions` in `pkg/kstatus/status/core.go` of fluxcd/cli-utils 1.2.3.
    """
    failure = fields.find_condition(body, "ReplicaFailure", "True")
    if failure is not None:
        message = "Replica Failure condition. Check Pods"
        return in_progress("ReplicaFailure", message, condition=failure)
    desired, replicas = desired_replicas(body), get_int(body, "status", "replicas")
    labelled = get_int(body, "status", "fullyLabeledReplicas")
    return (
        _fewer("LessLabelled", "Labelled", labelled, desired)
        or _fewer(
            "LessAvailable", "Available", get_int(body, "status", "availableReplicas"), desired
        )
        or _fewer("LessReady", "Ready", get_int(body, "status", "readyReplicas"), desired)
        or _extra(replicas, desired)
        or current("ReplicaSetAvailable", f"ReplicaSet is available. Replicas: {replicas}")
    )


def _fewer(reason: str, label: str, actual: int, desired: int) -> Verdict | None:
    return in_progress(reason, f"{label}: {actual}/{desired}") if desired > actual else None


def _extra(actual: int, desired: int) -> Verdict | None:
    if actual <= desired:
        return None
    return in_progress("ExtraPods", f"Pending termination: {actual - desired}")


def _judge_replicas(body: JsonObject) -> Verdict | None:
    desired, replicas = desired_replicas(body), get_int(body, "status", "replicas")
    updated = get_int(body, "status", "updatedReplicas")
    available = get_int(body, "status", "availableReplicas")
    return (
        _fewer("LessReplicas", "Replicas", replicas, desired)
        or _fewer("LessUpdated", "Updated", updated, desired)
        or _extra(replicas, desired)
        or _fewer("LessAvailable", "Available", available, updated)
        or _fewer("LessReady", "Ready", get_int(body, "status", "readyReplicas"), desired)
    )


def _judge_availability(body: JsonObject, conditions: tuple[Condition, ...]) -> Verdict | None:
    """Judge the conditions. A Deployment without a deadline has no condition `Progressing`."""
    deadline = get_int(body, "spec", "progressDeadlineSeconds", default=_NO_DEADLINE)
    is_complete = any(
        condition.type == "Progressing"
        and condition.is_true
        and condition.reason == "NewReplicaSetAvailable"
        for condition in conditions
    )
    if deadline != _NO_DEADLINE and not is_complete:
        return in_progress("ReplicaSetNotAvailable", "ReplicaSet not Available")
    if _available_condition(conditions) is None:
        return in_progress("DeploymentNotAvailable", "Deployment not Available")
    return None


def _available_condition(conditions: tuple[Condition, ...]) -> Condition | None:
    matches = (
        condition for condition in conditions if condition.type == "Available" and condition.is_true
    )
    return next(matches, None)


def _available_verdict(body: JsonObject, conditions: tuple[Condition, ...]) -> Verdict:
    replicas = get_int(body, "status", "replicas")
    condition = _available_condition(conditions) or fields.NO_CONDITION
    return current(
        "DeploymentAvailable", f"Deployment is available. Replicas: {replicas}", condition=condition
    )


def _judge_revision(body: JsonObject, desired: int) -> Verdict:
    """Judge a StatefulSet with ready pods by the revision of its pods."""
    updated = get_int(body, "status", "updatedReplicas")
    strategy = ("spec", "updateStrategy", "rollingUpdate", "partition")
    partition = get_int(body, *strategy, default=_UNSET)
    if partition != _UNSET:
        shortage = _fewer("PartitionRollout", "updated", updated, desired - partition)
        message = f"Partition rollout complete. updated: {updated}"
        return shortage or current("PartitionComplete", message)
    shortage = _fewer("LessCurrent", "current", get_int(body, "status", "currentReplicas"), desired)
    if shortage is not None:
        return shortage
    if get_text(body, "status", "currentRevision") != get_text(body, "status", "updateRevision"):
        return in_progress("RevisionMismatch", "Waiting for updated revision to match current")
    replicas = get_int(body, "status", "replicas")
    return current("AllScheduled", f"All replicas scheduled as expected. Replicas: {replicas}")


def _judge_first_observation(body: JsonObject) -> Verdict | None:
    """Return InProgress until the controller has written the generation for the first time."""
    kind = get_text(body, "kind")
    if fields.get_typed_int(body, "metadata", "generation") is None:
        return in_progress("NoGeneration", f"{kind} metadata.generation not found")
    if fields.get_typed_int(body, "status", "observedGeneration") is None:
        return in_progress("NoObservedGeneration", f"{kind} status.observedGeneration not found")
    return None


def judge_job(body: JsonObject) -> Verdict:
    """Return the health of a Job: Current if complete or suspended, Failed if it has given up.

    Like `ComputeJobStatus` in `statusreaders/job.go` of fluxcd/pkg/runtime 0.110.3.
    """
    if get_value(body, "spec", "suspend") is True:
        return current("JobSuspended", "Job is suspended")
    for condition in fields.read_conditions(body):
        if condition.type in {"Complete", "Failed"} and condition.is_true:
            return msgspec.structs.replace(_finished_verdict(body, condition), is_final=True)
    if not get_text(body, "status", "startTime"):
        return in_progress("JobNotStarted", f"Job not started. active: 0/{_parallelism(body)}")
    succeeded, active, failed_pods = (
        get_int(body, "status", field) for field in ("succeeded", "active", "failed")
    )
    message = f"Job in progress. success:{succeeded}, active: {active}, failed: {failed_pods}"
    return in_progress("JobInProgress", message)


def _finished_verdict(body: JsonObject, condition: Condition) -> Verdict:
    completions = get_int(body, "spec", "completions", default=_parallelism(body))
    if condition.type == "Complete":
        succeeded = get_int(body, "status", "succeeded")
        message = f"Job Completed. succeeded: {succeeded}/{completions}"
        return current("JobComplete", message, condition=condition)
    failed_pods = get_int(body, "status", "failed")
    return failed(
        "JobFailed", f"Job Failed. failed: {failed_pods}/{completions}", condition=condition
    )


def _parallelism(body: JsonObject) -> int:
    return get_int(body, "spec", "parallelism", default=1)
