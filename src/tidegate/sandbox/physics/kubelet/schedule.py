"""Where a pod goes: it is bound to a node as soon as nothing speaks against it."""

from __future__ import annotations

import msgspec

from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Kind, Ref
from tidegate.model.reading import listed, mappings, text
from tidegate.sandbox.controllers.conditions import find_condition, moment_of
from tidegate.sandbox.controllers.reaction import At, Looking, Sight
from tidegate.sandbox.controllers.storage.claims import claims_of, waits_for_pod
from tidegate.sandbox.controllers.workloads.placement import node_of
from tidegate.sandbox.controllers.writes import patch, warn
from tidegate.sandbox.server.lifecycle import timestamp
from tidegate.sandbox.server.store import Body, Stored
from tidegate.world.calls import Verb, Write

NODE = Kind("", "v1", "Node")
SCHEDULER = "default-scheduler"
ONLY_NODE = "node-1"
"""Where everything runs in a cluster that has no Node objects."""
UNBOUND = "pod has unbound immediate PersistentVolumeClaims"
UNPREEMPTED = "not found"
"""What a scheduler of this version adds when no node was even looked at."""
SOONEST, LATEST = Ms(SECOND), Ms(10 * SECOND)


def schedule(view: Sight, pod: Stored, why_not: str, now: Ms) -> Looking:
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
            yield warn(pod, reason="FailedScheduling", message=message, now=now, source=SCHEDULER)
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


def _node(view: Sight, pod: Stored) -> str:
    wanted = node_of(pod)
    if wanted:
        return wanted
    nodes = view.all_of(NODE)
    return nodes[int(pod.uid[:8] or "0", 16) % len(nodes)].ref.name if nodes else ONLY_NODE


def _trouble_with(view: Sight, claims: list[tuple[Ref, Stored | None]]) -> str:
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
    since = known.get("lastTransitionTime") if known else None
    condition: Body = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": message,
        "lastTransitionTime": since or timestamp(now),
    }
    others = [one for one in conditions if one.get("type") != "PodScheduled"]
    change: Body = {"status": {"phase": "Pending", "conditions": [*others, condition]}}
    return patch(pod, change, subresource="status", manager="kube-scheduler")
