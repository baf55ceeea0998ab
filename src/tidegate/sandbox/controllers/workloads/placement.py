"""Node placement of pod templates by name, label and taint; free capacity is not considered."""

from __future__ import annotations

from typing import NamedTuple

from tidegate.model.k8s.json_fields import get_list, get_mapping, get_mappings, get_text
from tidegate.model.k8s.labels import parse_requirement
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.sandbox.server.store import StoredObject

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NO_EXECUTE = "NoExecute"
DAEMON_TOLERATIONS: tuple[JsonObject, ...] = tuple(
    {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": effect}
    for name, effect in (
        ("not-ready", NO_EXECUTE),
        ("unreachable", NO_EXECUTE),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    )
)
"""Tolerations of every pod of a DaemonSet.

Like `AddOrUpdateDaemonPodTolerations` in `pkg/controller/daemon/util/daemonset_util.go` of
Kubernetes 1.36.4.
"""


class NodeFit(NamedTuple):
    """Whether a new pod should run on a node, and whether an existing one should continue to run.

    Like `NodeShouldRunDaemonPod` in `pkg/controller/daemon/daemon_controller.go` of Kubernetes
    1.36.4.
    """

    should_run: bool
    """Whether a new pod should run on the node."""
    should_continue: bool
    """Whether an existing pod should continue to run on the node."""


def node_fit(template: Json, node: StoredObject) -> NodeFit:
    """Return whether the pods of a DaemonSet's template should run on a node."""
    spec = get_mapping(template, "spec")
    if get_text(spec, "nodeName", default=node.ref.name) != node.ref.name:
        return NodeFit(should_run=False, should_continue=False)
    if not _matches_affinity(spec, node):
        return NodeFit(should_run=False, should_continue=False)
    tolerations: list[JsonObject] = [*get_mappings(spec, "tolerations"), *DAEMON_TOLERATIONS]
    untolerated = [
        taint
        for taint in get_mappings(node.body, "spec", "taints")
        if taint.get("effect") in ("NoSchedule", NO_EXECUTE)
        and not any(_tolerates(toleration, taint) for toleration in tolerations)
    ]
    return NodeFit(
        should_run=not untolerated,
        should_continue=not any(
            blocking_taint.get("effect") == NO_EXECUTE for blocking_taint in untolerated
        ),
    )


def pin_to_node(spec: JsonObject, node: str) -> JsonObject:
    """Return a pod's affinity narrowed to one node that already met all requirements.

    Like `ReplaceDaemonSetPodNodeNameNodeAffinity` in `pkg/controller/daemon/util/daemonset_util.go`
    of Kubernetes 1.36.4.
    """
    field: JsonObject = {"key": "metadata.name", "operator": "In", "values": [node]}
    term: JsonObject = {"matchFields": [field]}
    affinity = get_mapping(spec, "affinity")
    node_affinity: JsonObject = {
        **get_mapping(affinity, "nodeAffinity"),
        REQUIRED: {"nodeSelectorTerms": [term]},
    }
    return {**affinity, "nodeAffinity": node_affinity}


def target_node(pod: StoredObject) -> str:
    """Return the node a pod is assigned to, or the one its affinity selects; empty for none.

    Like `GetTargetNodeName` in `pkg/controller/daemon/util/daemonset_util.go` of Kubernetes 1.36.4.
    """
    assigned = get_text(pod.body, "spec", "nodeName")
    if assigned:
        return assigned
    affinity = get_mapping(pod.body, "spec", "affinity", "nodeAffinity")
    for term in get_mappings(affinity, REQUIRED, "nodeSelectorTerms"):
        for field in get_mappings(term, "matchFields"):
            if field.get("key") == "metadata.name":
                return str(next(iter(get_list(field, "values")), ""))
    return ""


def _matches_affinity(spec: JsonObject, node: StoredObject) -> bool:
    if not get_mapping(spec, "nodeSelector").items() <= node.labels.items():
        return False
    terms = get_mappings(spec, "affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms")
    return not terms or any(_matches_term(term, node) for term in terms)


def _matches_term(term: JsonObject, node: StoredObject) -> bool:
    expressions = get_mappings(term, "matchExpressions")
    fields = get_mappings(term, "matchFields")
    names: JsonObject = {"metadata.name": node.ref.name}
    return bool(expressions or fields) and all(
        [
            *(parse_requirement(expression).matches(node.labels) for expression in expressions),
            *(parse_requirement(expression).matches(names) for expression in fields),
        ]
    )


def _tolerates(toleration: JsonObject, taint: JsonObject) -> bool:
    key, effect = get_text(toleration, "key"), get_text(toleration, "effect")
    if effect and effect != taint.get("effect"):
        return False
    if key and key != taint.get("key"):
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(key) and get_text(toleration, "value") == get_text(taint, "value")
