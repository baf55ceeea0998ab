"""Deployment, ReplicaSet, StatefulSet and DaemonSet, as Argo CD judges them.

A StatefulSet and a DaemonSet are never Degraded. A Deployment is, when its progress deadline has
passed; it can still recover.
"""

from __future__ import annotations

from tidegate.health.argo.verdicts import (
    DEGRADED,
    HEALTHY,
    PROGRESSING,
    SUSPENDED,
    Body,
    condition_of,
    count,
    is_true,
    is_unobserved,
    message_of,
    say,
)
from tidegate.model.reading import mapping, number, part, text
from tidegate.model.verdict import Verdict

TOO_LATE = "ProgressDeadlineExceeded"
WAITING = "Waiting for rollout to finish"


def judge_deployment(body: Body) -> Verdict:
    if part(body, "spec", "paused") is True:
        return say(body, SUSPENDED, "Paused", "Deployment is paused")
    if is_unobserved(body):
        return _unobserved(body, "deployment")
    progress = condition_of(body, "Progressing")
    if progress.get("reason") == TOO_LATE:
        name = text(body, "metadata", "name")
        sentence = f'Deployment "{name}" exceeded its progress deadline'
        return say(body, DEGRADED, TOO_LATE, sentence)
    return _judge_replicas(body)


def _judge_replicas(body: Body) -> Verdict:
    status = mapping(body, "status")
    total, updated = number(status, "replicas"), number(status, "updatedReplicas")
    available = number(status, "availableReplicas")
    wanted = number(body, "spec", "replicas", default=updated)
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


def judge_replica_set(body: Body) -> Verdict:
    if is_unobserved(body):
        return _unobserved(body, "replica set")
    failure = condition_of(body, "ReplicaFailure")
    if is_true(failure):
        return say(body, DEGRADED, "ReplicaFailure", message_of(failure))
    available = number(body, "status", "availableReplicas")
    wanted = number(body, "spec", "replicas", default=available)
    if available < wanted:
        sentence = f"{WAITING}: {available} out of {wanted} new replicas are available..."
        return say(body, PROGRESSING, "ReplicasNotAvailable", sentence)
    return say(body, HEALTHY, "Available", f"{available} of {wanted} replicas are available")


def judge_stateful_set(body: Body) -> Verdict:
    if not number(body, "status", "observedGeneration") or is_unobserved(body):
        sentence = "Waiting for statefulset spec update to be observed..."
        return say(body, PROGRESSING, "GenerationNotObserved", sentence)
    ready = number(body, "status", "readyReplicas")
    wanted = number(body, "spec", "replicas", default=ready)
    if ready < wanted:
        sentence = f"Waiting for {wanted - ready} pods to be ready..."
        return say(body, PROGRESSING, "PodsNotReady", sentence)
    return _judge_revision(body, ready)


def _judge_revision(body: Body, ready: int) -> Verdict:
    strategy = mapping(body, "spec", "updateStrategy")
    is_rolling = strategy.get("type") == "RollingUpdate"
    if is_rolling and part(strategy, "rollingUpdate") is not None:
        return _judge_partition(body, strategy)
    if strategy.get("type") == "OnDelete":
        return say(body, HEALTHY, "Ready", f"statefulset has {ready} ready pods")
    status = mapping(body, "status")
    current, update = text(status, "currentRevision"), text(status, "updateRevision")
    if update != current:
        pods = f"{number(status, 'updatedReplicas')} pods at revision {update}..."
        sentence = f"waiting for statefulset rolling update to complete {pods}"
        return say(body, PROGRESSING, "ReplicasNotUpdated", sentence)
    pods = f"{number(status, 'currentReplicas')} pods at revision {current}..."
    return say(body, HEALTHY, "Ready", f"statefulset rolling update complete {pods}")


def _judge_partition(body: Body, strategy: Body) -> Verdict:
    """What stands before the partition keeps its revision, and nobody waits for it."""
    updated = number(body, "status", "updatedReplicas")
    partition = part(strategy, "rollingUpdate", "partition")
    replicas = part(body, "spec", "replicas")
    if isinstance(partition, int) and isinstance(replicas, int) and updated < replicas - partition:
        pods = f"{updated} out of {replicas - partition} new pods have been updated..."
        sentence = f"Waiting for partitioned roll out to finish: {pods}"
        return say(body, PROGRESSING, "ReplicasNotUpdated", sentence)
    sentence = f"partitioned roll out complete: {updated} new pods have been updated..."
    return say(body, HEALTHY, "Ready", sentence)


def judge_daemon_set(body: Body) -> Verdict:
    if is_unobserved(body):
        return _unobserved(body, "daemon set")
    status, name = mapping(body, "status"), text(body, "metadata", "name")
    updated = number(status, "updatedNumberScheduled")
    wanted = number(status, "desiredNumberScheduled")
    available = number(status, "numberAvailable")
    if text(body, "spec", "updateStrategy", "type") == "OnDelete":
        sentence = f"daemon set {updated} out of {wanted} new pods have been updated"
        return say(body, HEALTHY, "Available", sentence)
    waiting = f'Waiting for daemon set "{name}" rollout to finish'
    if updated < wanted:
        sentence = f"{waiting}: {updated} out of {wanted} new pods have been updated..."
        return say(body, PROGRESSING, "PodsNotUpdated", sentence)
    if available < wanted:
        sentence = f"{waiting}: {available} of {wanted} updated pods are available..."
        return say(body, PROGRESSING, "PodsNotAvailable", sentence)
    return say(body, HEALTHY, "Available", f"available on {count(available, 'node')}")


def _unobserved(body: Body, noun: str) -> Verdict:
    sentence = f"{WAITING}: observed {noun} generation less than desired generation"
    return say(body, PROGRESSING, "GenerationNotObserved", sentence)
