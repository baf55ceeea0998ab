"""Deployment, ReplicaSet, StatefulSet, DaemonSet, Job and CronJob, as Argo CD judges them.

A StatefulSet and a DaemonSet are never Degraded. A Deployment is, when its progress deadline has
passed; it can still recover.

Two habits of Argo CD are kept. A condition of a Job counts by its type, whatever its status is: a
Job that was suspended and runs again is Healthy. A CronJob that is suspended is Healthy too.
"""

from __future__ import annotations

from tidegate.health.argo.verdicts import (
    DEGRADED,
    HEALTHY,
    PROGRESSING,
    SUSPENDED,
    condition_of,
    conditions_of,
    is_true,
    is_unobserved,
    say,
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

TOO_LATE = "ProgressDeadlineExceeded"
WAITING = "Waiting for rollout to finish"


def judge_deployment(body: JsonObject) -> Verdict:
    if get_value(body, "spec", "paused") is True:
        return say(body, SUSPENDED, "Paused", "Deployment is paused")
    if is_unobserved(body):
        return _unobserved(body, "deployment")
    progress = condition_of(body, "Progressing")
    if progress.get("reason") == TOO_LATE:
        name = get_text(body, "metadata", "name")
        sentence = f'Deployment "{name}" exceeded its progress deadline'
        return say(body, DEGRADED, TOO_LATE, sentence)
    return _judge_replicas(body)


def _judge_replicas(body: JsonObject) -> Verdict:
    status = get_mapping(body, "status")
    total, updated = get_int(status, "replicas"), get_int(status, "updatedReplicas")
    available = get_int(status, "availableReplicas")
    wanted = get_int(body, "spec", "replicas", default=updated)
    if updated < wanted:
        sentence = f"{WAITING}: {updated} out of {wanted} new replicas have been updated..."
        return say(body, PROGRESSING, "ReplicasNotUpdated", sentence)
    if total > updated:
        sentence = f"{WAITING}: {total - updated} old replicas are pending termination..."
        return say(body, PROGRESSING, "OldReplicasRemain", sentence)
    if available < updated:
        sentence = f"{WAITING}: {available} of {updated} updated replicas are available..."
        return say(body, PROGRESSING, "ReplicasNotAvailable", sentence)
    return say(body, HEALTHY, "Available", f"{available} of {wanted} replicas are available")


def judge_replica_set(body: JsonObject) -> Verdict:
    if is_unobserved(body):
        return _unobserved(body, "replica set")
    failure = condition_of(body, "ReplicaFailure")
    if is_true(failure):
        return say(body, DEGRADED, "ReplicaFailure", get_text(failure, "message"))
    available = get_int(body, "status", "availableReplicas")
    wanted = get_int(body, "spec", "replicas", default=available)
    if available < wanted:
        sentence = f"{WAITING}: {available} out of {wanted} new replicas are available..."
        return say(body, PROGRESSING, "ReplicasNotAvailable", sentence)
    return say(body, HEALTHY, "Available", f"{available} of {wanted} replicas are available")


def judge_stateful_set(body: JsonObject) -> Verdict:
    if not get_int(body, "status", "observedGeneration") or is_unobserved(body):
        sentence = "Waiting for statefulset spec update to be observed..."
        return say(body, PROGRESSING, "GenerationNotObserved", sentence)
    ready = get_int(body, "status", "readyReplicas")
    wanted = get_int(body, "spec", "replicas", default=ready)
    if ready < wanted:
        sentence = f"Waiting for {wanted - ready} pods to be ready..."
        return say(body, PROGRESSING, "PodsNotReady", sentence)
    return _judge_revision(body, ready)


def _judge_revision(body: JsonObject, ready: int) -> Verdict:
    strategy = get_mapping(body, "spec", "updateStrategy")
    is_rolling = strategy.get("type") == "RollingUpdate"
    if is_rolling and get_value(strategy, "rollingUpdate") is not None:
        return _judge_partition(body, strategy)
    if strategy.get("type") == "OnDelete":
        return say(body, HEALTHY, "Ready", f"statefulset has {ready} ready pods")
    status = get_mapping(body, "status")
    current, update = get_text(status, "currentRevision"), get_text(status, "updateRevision")
    if update != current:
        pods = f"{get_int(status, 'updatedReplicas')} pods at revision {update}..."
        sentence = f"waiting for statefulset rolling update to complete {pods}"
        return say(body, PROGRESSING, "ReplicasNotUpdated", sentence)
    pods = f"{get_int(status, 'currentReplicas')} pods at revision {current}..."
    return say(body, HEALTHY, "Ready", f"statefulset rolling update complete {pods}")


def _judge_partition(body: JsonObject, strategy: JsonObject) -> Verdict:
    """What stands before the partition keeps its revision, and nobody waits for it."""
    updated = get_int(body, "status", "updatedReplicas")
    partition = get_value(strategy, "rollingUpdate", "partition")
    replicas = get_value(body, "spec", "replicas")
    if isinstance(partition, int) and isinstance(replicas, int) and updated < replicas - partition:
        pods = f"{updated} out of {replicas - partition} new pods have been updated..."
        sentence = f"Waiting for partitioned roll out to finish: {pods}"
        return say(body, PROGRESSING, "ReplicasNotUpdated", sentence)
    sentence = f"partitioned roll out complete: {updated} new pods have been updated..."
    return say(body, HEALTHY, "Ready", sentence)


def judge_daemon_set(body: JsonObject) -> Verdict:
    if is_unobserved(body):
        return _unobserved(body, "daemon set")
    status, name = get_mapping(body, "status"), get_text(body, "metadata", "name")
    updated = get_int(status, "updatedNumberScheduled")
    wanted = get_int(status, "desiredNumberScheduled")
    available = get_int(status, "numberAvailable")
    if get_text(body, "spec", "updateStrategy", "type") == "OnDelete":
        sentence = f"daemon set {updated} out of {wanted} new pods have been updated"
        return say(body, HEALTHY, "Available", sentence)
    waiting = f'Waiting for daemon set "{name}" rollout to finish'
    if updated < wanted:
        sentence = f"{waiting}: {updated} out of {wanted} new pods have been updated..."
        return say(body, PROGRESSING, "PodsNotUpdated", sentence)
    if available < wanted:
        sentence = f"{waiting}: {available} of {wanted} updated pods are available..."
        return say(body, PROGRESSING, "PodsNotAvailable", sentence)
    nodes = "1 node" if available == 1 else f"{available} nodes"
    return say(body, HEALTHY, "Available", f"available on {nodes}")


def _unobserved(body: JsonObject, noun: str) -> Verdict:
    sentence = f"{WAITING}: observed {noun} generation less than desired generation"
    return say(body, PROGRESSING, "GenerationNotObserved", sentence)


def judge_job(body: JsonObject) -> Verdict:
    last = {get_text(one, "type"): one for one in conditions_of(body)}
    failed, complete = last.get("Failed", EMPTY_MAPPING), last.get("Complete", EMPTY_MAPPING)
    if failed:
        sentence = get_text(failed, "message") or _counts(body)
        reason = get_text(failed, "reason", default="Failed")
        return say(body, DEGRADED, reason, sentence, condition=failed, final=is_true(failed))
    if any(one.get("type") == "Suspended" and is_true(one) for one in conditions_of(body)):
        return say(body, SUSPENDED, "JobSuspended", "the Job is suspended")
    told = [one for one in conditions_of(body) if one.get("type") in ("Complete", "Suspended")]
    if not told:
        return say(body, PROGRESSING, "Running", _counts(body))
    reason = get_text(complete, "reason", default="Complete") if complete else "JobResumed"
    sentence = get_text(told[-1], "message") or _counts(body)
    return say(body, HEALTHY, reason, sentence, condition=told[-1], final=is_true(complete))


def _counts(body: JsonObject) -> str:
    """`0 of 3 pods have succeeded, 1 is active, 2 have failed`."""
    wanted = get_int(body, "spec", "completions", default=1)
    parts = [f"{get_int(body, 'status', 'succeeded')} of {wanted} pods have succeeded"]
    active, failed = get_int(body, "status", "active"), get_int(body, "status", "failed")
    if active:
        parts.append(f"{active} {'is' if active == 1 else 'are'} active")
    if failed:
        parts.append(f"{failed} {'has' if failed == 1 else 'have'} failed")
    return ", ".join(parts)


def judge_cron_job(body: JsonObject) -> Verdict:
    if get_value(body, "spec", "suspend") is True:
        return say(body, HEALTHY, "CronJobSuspended", "CronJob is Suspended")
    if get_value(body, "status") is None:
        return say(body, PROGRESSING, "NoStatus", "Waiting for CronJob")
    if get_value(body, "status", "lastScheduleTime") is None:
        return say(body, HEALTHY, "NotScheduledYet", "CronJob has not been scheduled yet")
    return _judge_last_run(body)


def _judge_last_run(body: JsonObject) -> Verdict:
    ended = get_value(body, "status", "lastSuccessfulTime")
    if ended is None:
        sentence = "The CronJob never completed successfully. It may not be healthy"
        return say(body, HEALTHY, "NeverSucceeded", sentence)
    if get_list(body, "status", "active"):
        sentence = "The job is running. Its last execution may not have been successful"
        return say(body, HEALTHY, "Running", sentence)
    # Both are times of one form, so their texts are in the order of the times.
    if str(ended) < get_text(body, "status", "lastScheduleTime"):
        sentence = "CronJob has not completed its last execution successfully"
        return say(body, DEGRADED, "LastRunFailed", sentence)
    sentence = "CronJob has completed its last execution successfully"
    return say(body, HEALTHY, "LastRunSucceeded", sentence)
