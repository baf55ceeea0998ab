"""The health of workloads in Argo CD.

The checks are those of gitops-engine (`pkg/health`, Argo CD 3.5.6) or of a Lua script that Argo CD
ships.

A StatefulSet and a DaemonSet are never Degraded. A Deployment is Degraded when its progress
deadline has passed; it can still recover.

Two oddities of Argo CD are kept. A condition of a Job counts by its type, whatever its status is: a
Job that was suspended and runs again is Healthy. A suspended CronJob is Healthy as well.
"""

from __future__ import annotations

from tidegate.health.argo.verdicts import (
    DEGRADED,
    HEALTHY,
    PROGRESSING,
    SUSPENDED,
    find_condition,
    is_true,
    is_unobserved,
    list_conditions,
    make_verdict,
)
from tidegate.model.k8s.json_fields import (
    EMPTY_MAPPING,
    get_int,
    get_list,
    get_mapping,
    get_text,
    get_value,
)
from tidegate.model.k8s.objects import JsonObject
from tidegate.model.k8s.verdict import Verdict

PROGRESS_DEADLINE_EXCEEDED = "ProgressDeadlineExceeded"
WAITING = "Waiting for rollout to finish"


def judge_deployment(body: JsonObject) -> Verdict:
    """Return the health of a Deployment.

    Like `getAppsv1DeploymentHealth` in `pkg/health/health_deployment.go` of gitops-engine (Argo CD
    3.5.6).
    """
    if get_value(body, "spec", "paused") is True:
        return make_verdict(body, SUSPENDED, "Paused", "Deployment is paused")
    if is_unobserved(body):
        return _unobserved_verdict(body, "deployment")
    progress = find_condition(body, "Progressing")
    if progress.get("reason") == PROGRESS_DEADLINE_EXCEEDED:
        name = get_text(body, "metadata", "name")
        message = f'Deployment "{name}" exceeded its progress deadline'
        return make_verdict(body, DEGRADED, PROGRESS_DEADLINE_EXCEEDED, message)
    return _judge_replicas(body)


def _judge_replicas(body: JsonObject) -> Verdict:
    status = get_mapping(body, "status")
    total, updated = get_int(status, "replicas"), get_int(status, "updatedReplicas")
    available = get_int(status, "availableReplicas")
    desired = get_int(body, "spec", "replicas", default=updated)
    if updated < desired:
        message = f"{WAITING}: {updated} out of {desired} new replicas have been updated..."
        return make_verdict(body, PROGRESSING, "ReplicasNotUpdated", message)
    if total > updated:
        message = f"{WAITING}: {total - updated} old replicas are pending termination..."
        return make_verdict(body, PROGRESSING, "OldReplicasRemain", message)
    if available < updated:
        message = f"{WAITING}: {available} of {updated} updated replicas are available..."
        return make_verdict(body, PROGRESSING, "ReplicasNotAvailable", message)
    return make_verdict(
        body, HEALTHY, "Available", f"{available} of {desired} replicas are available"
    )


def judge_replica_set(body: JsonObject) -> Verdict:
    """Return the health of a ReplicaSet.

    Like `getAppsv1ReplicaSetHealth` in `pkg/health/health_replicaset.go` of gitops-engine (Argo CD
    3.5.6).
    """
    if is_unobserved(body):
        return _unobserved_verdict(body, "replica set")
    failure = find_condition(body, "ReplicaFailure")
    if is_true(failure):
        return make_verdict(body, DEGRADED, "ReplicaFailure", get_text(failure, "message"))
    available = get_int(body, "status", "availableReplicas")
    desired = get_int(body, "spec", "replicas", default=available)
    if available < desired:
        message = f"{WAITING}: {available} out of {desired} new replicas are available..."
        return make_verdict(body, PROGRESSING, "ReplicasNotAvailable", message)
    return make_verdict(
        body, HEALTHY, "Available", f"{available} of {desired} replicas are available"
    )


def judge_stateful_set(body: JsonObject) -> Verdict:
    """Return the health of a StatefulSet.

    Like `getAppsv1StatefulSetHealth` in `pkg/health/health_statefulset.go` of gitops-engine (Argo
    CD 3.5.6).
    """
    if not get_int(body, "status", "observedGeneration") or is_unobserved(body):
        message = "Waiting for statefulset spec update to be observed..."
        return make_verdict(body, PROGRESSING, "GenerationNotObserved", message)
    ready = get_int(body, "status", "readyReplicas")
    desired = get_int(body, "spec", "replicas", default=ready)
    if ready < desired:
        message = f"Waiting for {desired - ready} pods to be ready..."
        return make_verdict(body, PROGRESSING, "PodsNotReady", message)
    return _judge_revision(body, ready)


def _judge_revision(body: JsonObject, ready: int) -> Verdict:
    strategy = get_mapping(body, "spec", "updateStrategy")
    is_rolling = strategy.get("type") == "RollingUpdate"
    if is_rolling and get_value(strategy, "rollingUpdate") is not None:
        return _judge_partition(body, strategy)
    if strategy.get("type") == "OnDelete":
        return make_verdict(body, HEALTHY, "Ready", f"statefulset has {ready} ready pods")
    status = get_mapping(body, "status")
    current, update = get_text(status, "currentRevision"), get_text(status, "updateRevision")
    if update != current:
        pods = f"{get_int(status, 'updatedReplicas')} pods at revision {update}..."
        message = f"waiting for statefulset rolling update to complete {pods}"
        return make_verdict(body, PROGRESSING, "ReplicasNotUpdated", message)
    pods = f"{get_int(status, 'currentReplicas')} pods at revision {current}..."
    return make_verdict(body, HEALTHY, "Ready", f"statefulset rolling update complete {pods}")


def _judge_partition(body: JsonObject, strategy: JsonObject) -> Verdict:
    """Judge a partitioned update. Pods below the partition keep their revision and do not count."""
    updated = get_int(body, "status", "updatedReplicas")
    partition = get_value(strategy, "rollingUpdate", "partition")
    replicas = get_value(body, "spec", "replicas")
    if isinstance(partition, int) and isinstance(replicas, int) and updated < replicas - partition:
        pods = f"{updated} out of {replicas - partition} new pods have been updated..."
        message = f"Waiting for partitioned roll out to finish: {pods}"
        return make_verdict(body, PROGRESSING, "ReplicasNotUpdated", message)
    message = f"partitioned roll out complete: {updated} new pods have been updated..."
    return make_verdict(body, HEALTHY, "Ready", message)


def judge_daemon_set(body: JsonObject) -> Verdict:
    """Return the health of a DaemonSet.

    Like `getAppsv1DaemonSetHealth` in `pkg/health/health_daemonset.go` of gitops-engine (Argo CD
    3.5.6).
    """
    if is_unobserved(body):
        return _unobserved_verdict(body, "daemon set")
    status, name = get_mapping(body, "status"), get_text(body, "metadata", "name")
    updated = get_int(status, "updatedNumberScheduled")
    desired = get_int(status, "desiredNumberScheduled")
    available = get_int(status, "numberAvailable")
    if get_text(body, "spec", "updateStrategy", "type") == "OnDelete":
        message = f"daemon set {updated} out of {desired} new pods have been updated"
        return make_verdict(body, HEALTHY, "Available", message)
    waiting = f'Waiting for daemon set "{name}" rollout to finish'
    if updated < desired:
        message = f"{waiting}: {updated} out of {desired} new pods have been updated..."
        return make_verdict(body, PROGRESSING, "PodsNotUpdated", message)
    if available < desired:
        message = f"{waiting}: {available} of {desired} updated pods are available..."
        return make_verdict(body, PROGRESSING, "PodsNotAvailable", message)
    nodes = "1 node" if available == 1 else f"{available} nodes"
    return make_verdict(body, HEALTHY, "Available", f"available on {nodes}")


def _unobserved_verdict(body: JsonObject, noun: str) -> Verdict:
    message = f"{WAITING}: observed {noun} generation less than desired generation"
    return make_verdict(body, PROGRESSING, "GenerationNotObserved", message)


def judge_job(body: JsonObject) -> Verdict:
    """Return the health of a Job.

    Like `getBatchv1JobHealth` in `pkg/health/health_job.go` of gitops-engine (Argo CD 3.5.6).
    """
    by_type = {get_text(condition, "type"): condition for condition in list_conditions(body)}
    failed, complete = by_type.get("Failed", EMPTY_MAPPING), by_type.get("Complete", EMPTY_MAPPING)
    if failed:
        message = get_text(failed, "message") or _pod_counts(body)
        reason = get_text(failed, "reason", default="Failed")
        return make_verdict(
            body, DEGRADED, reason, message, condition=failed, final=is_true(failed)
        )
    if any(
        condition.get("type") == "Suspended" and is_true(condition)
        for condition in list_conditions(body)
    ):
        return make_verdict(body, SUSPENDED, "JobSuspended", "the Job is suspended")
    ended_or_suspended = [
        condition
        for condition in list_conditions(body)
        if condition.get("type") in ("Complete", "Suspended")
    ]
    if not ended_or_suspended:
        return make_verdict(body, PROGRESSING, "Running", _pod_counts(body))
    reason = get_text(complete, "reason", default="Complete") if complete else "JobResumed"
    message = get_text(ended_or_suspended[-1], "message") or _pod_counts(body)
    return make_verdict(
        body, HEALTHY, reason, message, condition=ended_or_suspended[-1], final=is_true(complete)
    )


def _pod_counts(body: JsonObject) -> str:
    """Return the counts of pods: `0 of 3 pods have succeeded, 1 is active, 2 have failed`."""
    desired = get_int(body, "spec", "completions", default=1)
    parts = [f"{get_int(body, 'status', 'succeeded')} of {desired} pods have succeeded"]
    active, failed = get_int(body, "status", "active"), get_int(body, "status", "failed")
    if active:
        parts.append(f"{active} {'is' if active == 1 else 'are'} active")
    if failed:
        parts.append(f"{failed} {'has' if failed == 1 else 'have'} failed")
    return ", ".join(parts)


def judge_cron_job(body: JsonObject) -> Verdict:
    """Return the health of a CronJob.

    Like `resource_customizations/batch/CronJob/health.lua` of Argo CD 3.5.6.
    """
    if get_value(body, "spec", "suspend") is True:
        return make_verdict(body, HEALTHY, "CronJobSuspended", "CronJob is Suspended")
    if get_value(body, "status") is None:
        return make_verdict(body, PROGRESSING, "NoStatus", "Waiting for CronJob")
    if get_value(body, "status", "lastScheduleTime") is None:
        return make_verdict(body, HEALTHY, "NotScheduledYet", "CronJob has not been scheduled yet")
    return _judge_last_run(body)


def _judge_last_run(body: JsonObject) -> Verdict:
    last_success = get_value(body, "status", "lastSuccessfulTime")
    if last_success is None:
        message = "The CronJob never completed successfully. It may not be healthy"
        return make_verdict(body, HEALTHY, "NeverSucceeded", message)
    if get_list(body, "status", "active"):
        message = "The job is running. Its last execution may not have been successful"
        return make_verdict(body, HEALTHY, "Running", message)
    # Both timestamps have the same format, so they sort as texts.
    if str(last_success) < get_text(body, "status", "lastScheduleTime"):
        message = "CronJob has not completed its last execution successfully"
        return make_verdict(body, DEGRADED, "LastRunFailed", message)
    message = "CronJob has completed its last execution successfully"
    return make_verdict(body, HEALTHY, "LastRunSucceeded", message)
