"""Scheduling and termination of pods.

A pod is bound as soon as nothing prevents it. On deletion, its containers get their grace
period.
"""

from __future__ import annotations

import msgspec

from tidegate.model.k8s.json_fields import get_int, get_list, get_mapping, get_mappings, get_text
from tidegate.model.k8s.kinds import NODE
from tidegate.model.k8s.objects import Json, JsonObject, Ref
from tidegate.model.times import SECOND, Ms
from tidegate.sandbox.controllers.conditions import (
    find_condition,
    next_condition,
    read_timestamp,
    without_condition,
)
from tidegate.sandbox.controllers.interface import ObjectReader, Reconciliation, RequeueAt
from tidegate.sandbox.controllers.storage.claims import claims_of, waits_for_consumer
from tidegate.sandbox.controllers.workloads.placement import target_node
from tidegate.sandbox.controllers.writes import EventRecorder, patch
from tidegate.sandbox.node.kubelet.states import ENDED_BY_SIGNAL, assumption_metadata
from tidegate.sandbox.server.lifecycle import format_rfc3339
from tidegate.sandbox.server.store import StoredObject
from tidegate.world.requests import Verb, Write

RECORDER = EventRecorder("default-scheduler")
DEFAULT_NODE = "node-1"
"""The node of a cluster without Node objects."""
UNBOUND_CLAIMS = "pod has unbound immediate PersistentVolumeClaims"
"""Message for a pod with claims that are not bound.

Like `PreFilter` in `pkg/scheduler/framework/plugins/volumebinding/volume_binding.go` of Kubernetes
1.36.4.
"""
PREEMPTION_MESSAGE = "not found"
"""The text that the scheduler of Kubernetes 1.36 appends if it evaluated no node."""
MIN_RETRY, MAX_RETRY = Ms(SECOND), Ms(10 * SECOND)
SIGTERM_EXIT_CODE = 143
"""128 plus the number of SIGTERM."""


def schedule_pod(
    reader: ObjectReader, pod: StoredObject, unschedulable: str, now: Ms
) -> Reconciliation:
    """Bind a pod, or record why it is unschedulable."""
    if get_list(pod.body, "spec", "schedulingGates"):
        return
    claims = [(ref, reader.get(ref)) for ref in claims_of(pod)]
    problem = f"{unschedulable}." if unschedulable else _claim_problem(reader, claims)
    if problem:
        nodes = len(reader.list_objects(NODE)) or 1
        message = f"0/{nodes} nodes are available: {problem}"
        write = _unschedulable_status(pod, message, now)
        if write is not None:
            yield write
            yield RECORDER.record_warning(pod, "FailedScheduling", message, now)
    elif all(claim and _is_bound(claim) for _, claim in claims):
        yield bind_pod(pod, _choose_node(reader, pod))
        return
    waited = now - (read_timestamp(pod.metadata.get("creationTimestamp")) or now)
    yield RequeueAt(Ms(now + min(max(waited // 4, MIN_RETRY), MAX_RETRY)))


def bind_pod(pod: StoredObject, node: str) -> Write:
    """Return the Binding of a pod to a node.

    Like `Bind` in `pkg/scheduler/framework/plugins/defaultbinder/default_binder.go` of Kubernetes
    1.36.4.
    """
    body: JsonObject = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": pod.ref.name, "namespace": pod.ref.namespace},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
    return Write(
        verb=Verb.CREATE,
        ref=pod.ref,
        body=msgspec.json.encode(body),
        subresource="binding",
        uid=pod.uid,
        manager="kube-scheduler",
    )


def _choose_node(reader: ObjectReader, pod: StoredObject) -> str:
    required = target_node(pod)
    if required:
        return required
    nodes = reader.list_objects(NODE)
    return nodes[int(pod.uid[:8] or "0", 16) % len(nodes)].ref.name if nodes else DEFAULT_NODE


def _claim_problem(reader: ObjectReader, claims: list[tuple[Ref, StoredObject | None]]) -> str:
    """Return the scheduler's message about the claims of a pod; empty if there is no problem.

    Claims that wait for their first consumer are no problem.

    Like `PreFilter` and `podHasPVCs` in
    `pkg/scheduler/framework/plugins/volumebinding/volume_binding.go` of Kubernetes 1.36.4.
    """
    for ref, claim in claims:
        if claim is None:
            return f'persistentvolumeclaim "{ref.name}" not found. {PREEMPTION_MESSAGE}'
        if not _is_bound(claim) and not waits_for_consumer(reader, claim):
            return f"{UNBOUND_CLAIMS}. {PREEMPTION_MESSAGE}"
    return ""


def _is_bound(claim: StoredObject) -> bool:
    return get_text(claim.body, "status", "phase") == "Bound"


def _unschedulable_status(pod: StoredObject, message: str, now: Ms) -> Write | None:
    conditions = get_mappings(pod.body, "status", "conditions")
    existing = find_condition(conditions, "PodScheduled")
    if existing is not None and existing.get("message") == message:
        return None
    reason_and_message = ("Unschedulable", message)
    condition = next_condition(conditions, "PodScheduled", "False", reason_and_message, now=now)
    others = without_condition(conditions, "PodScheduled")
    change: JsonObject = {"status": {"phase": "Pending", "conditions": [*others, condition]}}
    return patch(pod, change, subresource="status", manager="kube-scheduler")


def terminate_pod(pod: StoredObject, stop_duration: Ms, now: Ms) -> Reconciliation:
    """Delete a terminating pod once its containers have stopped, or the grace period is over."""
    if not get_text(pod.body, "spec", "nodeName"):
        return
    grace = Ms(get_int(pod.metadata, "deletionGracePeriodSeconds") * SECOND)
    limit = read_timestamp(pod.metadata.get("deletionTimestamp")) or now
    stopped_at = Ms(limit - grace + min(stop_duration, grace))
    if now < stopped_at:
        yield RequeueAt(stopped_at)
        return
    if pod.finalizers and get_text(pod.body, "status", "phase") not in ("Succeeded", "Failed"):
        # The controller that holds the finalizer counts the pod by its phase.
        yield _final_status(pod, now)
    if grace or not pod.finalizers:
        yield Write(verb=Verb.DELETE, ref=pod.ref, uid=pod.uid, grace_period_seconds=0)


def _final_status(pod: StoredObject, now: Ms) -> Write:
    status: JsonObject = {"phase": "Failed"}
    for key in ("initContainerStatuses", "containerStatuses"):
        statuses = get_mappings(pod.body, "status", key)
        if statuses:
            status[key] = [
                _terminate_status(container_status, now) for container_status in statuses
            ]
    change: JsonObject = {
        "metadata": assumption_metadata(pod, (ENDED_BY_SIGNAL,)),
        "status": status,
    }
    return patch(pod, change, subresource="status", manager="kubelet")


def _terminate_status(container_status: JsonObject, now: Ms) -> Json:
    started_at = get_mapping(container_status, "state", "running").get("startedAt")
    if started_at is None:
        return container_status
    terminated: JsonObject = {
        "exitCode": SIGTERM_EXIT_CODE,
        "reason": "Error",
        "startedAt": started_at,
        "finishedAt": format_rfc3339(now),
    }
    return {
        **container_status,
        "state": {"terminated": terminated},
        "ready": False,
        "started": False,
    }
