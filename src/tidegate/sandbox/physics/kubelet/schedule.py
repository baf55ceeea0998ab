"""How a pod comes to a node and how it goes.

It is bound as soon as nothing speaks against it. When it is deleted, its containers get their time.
"""

from __future__ import annotations

import msgspec

from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Json, Ref
from tidegate.model.reading import listed, mapping, mappings, number, text
from tidegate.sandbox.controllers.conditions import (
    find_condition,
    moment_of,
    steady,
    without_condition,
)
from tidegate.sandbox.controllers.reaction import At, Looking, Visible
from tidegate.sandbox.controllers.storage.claims import claims_of, waits_for_pod
from tidegate.sandbox.controllers.workloads.placement import node_of
from tidegate.sandbox.controllers.writes import Voice, patch
from tidegate.sandbox.kinds import NODE
from tidegate.sandbox.physics.kubelet.states import ENDED_BY_SIGNAL, mark
from tidegate.sandbox.server.lifecycle import timestamp
from tidegate.sandbox.server.store import Body, Stored
from tidegate.world.calls import Verb, Write

SCHEDULER = Voice("default-scheduler")
ONLY_NODE = "node-1"
"""Where everything runs in a cluster that has no Node objects."""
UNBOUND = "pod has unbound immediate PersistentVolumeClaims"
UNPREEMPTED = "not found"
"""What a scheduler of this version adds when no node was even looked at."""
SOONEST, LATEST = Ms(SECOND), Ms(10 * SECOND)
TERMINATED = 143
"""128 and the number of the signal to end."""


def schedule(view: Visible, pod: Stored, why_not: str, now: Ms) -> Looking:
    """Bind a pod, or say why it has to wait."""
    if listed(pod.body, "spec", "schedulingGates"):
        return
    claims = [(ref, view.get(ref)) for ref in claims_of(pod)]
    trouble = f"{why_not}." if why_not else _trouble_with(view, claims)
    if trouble:
        nodes = len(view.all_of(NODE)) or 1
        message = f"0/{nodes} nodes are available: {trouble}"
        write = _unschedulable(pod, message, now)
        if write is not None:
            yield write
            yield SCHEDULER.warn(pod, "FailedScheduling", message, now)
    elif all(claim and _is_bound(claim) for _, claim in claims):
        yield bind(pod, _node(view, pod))
        return
    waited = now - (moment_of(pod.metadata.get("creationTimestamp")) or now)
    yield At(Ms(now + min(max(waited // 4, SOONEST), LATEST)))


def bind(pod: Stored, node: str) -> Write:
    """The order to run a pod on a node, as a scheduler gives it."""
    body: Body = {
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


def _node(view: Visible, pod: Stored) -> str:
    wanted = node_of(pod)
    if wanted:
        return wanted
    nodes = view.all_of(NODE)
    return nodes[int(pod.uid[:8] or "0", 16) % len(nodes)].ref.name if nodes else ONLY_NODE


def _trouble_with(view: Visible, claims: list[tuple[Ref, Stored | None]]) -> str:
    """What a scheduler says of claims. Those that wait for a pod to be placed are no trouble."""
    for ref, claim in claims:
        if claim is None:
            return f'persistentvolumeclaim "{ref.name}" not found. {UNPREEMPTED}'
        if not _is_bound(claim) and not waits_for_pod(view, claim):
            return f"{UNBOUND}. {UNPREEMPTED}"
    return ""


def _is_bound(claim: Stored) -> bool:
    return text(claim.body, "status", "phase") == "Bound"


def _unschedulable(pod: Stored, message: str, now: Ms) -> Write | None:
    conditions = mappings(pod.body, "status", "conditions")
    known = find_condition(conditions, "PodScheduled")
    if known is not None and known.get("message") == message:
        return None
    words = ("Unschedulable", message)
    condition = steady(conditions, "PodScheduled", "False", words, now=now)
    others = without_condition(conditions, "PodScheduled")
    change: Body = {"status": {"phase": "Pending", "conditions": [*others, condition]}}
    return patch(pod, change, subresource="status", manager="kube-scheduler")


def end(pod: Stored, stop: Ms, now: Ms) -> Looking:
    """Let a pod go when its containers have stopped: after `stop`, or when their time is up."""
    if not text(pod.body, "spec", "nodeName"):
        return
    grace = Ms(number(pod.metadata, "deletionGracePeriodSeconds") * SECOND)
    limit = moment_of(pod.metadata.get("deletionTimestamp")) or now
    due = Ms(limit - grace + min(stop, grace))
    if now < due:
        yield At(due)
        return
    if pod.finalizers and text(pod.body, "status", "phase") not in ("Succeeded", "Failed"):
        # Whoever holds the pod counts it by how it ended.
        yield _last_status(pod, now)
    if grace or not pod.finalizers:
        yield Write(verb=Verb.DELETE, ref=pod.ref, uid=pod.uid, grace=0)


def _last_status(pod: Stored, now: Ms) -> Write:
    status: Body = {"phase": "Failed"}
    for key in ("initContainerStatuses", "containerStatuses"):
        known = mappings(pod.body, "status", key)
        if known:
            status[key] = [_terminated(one, now) for one in known]
    change: Body = {"metadata": mark(pod, (ENDED_BY_SIGNAL,)), "status": status}
    return patch(pod, change, subresource="status", manager="kubelet")


def _terminated(container: Body, now: Ms) -> Json:
    began = mapping(container, "state", "running").get("startedAt")
    if began is None:
        return container
    ended: Body = {
        "exitCode": TERMINATED,
        "reason": "Error",
        "startedAt": began,
        "finishedAt": timestamp(now),
    }
    return {**container, "state": {"terminated": ended}, "ready": False, "started": False}
