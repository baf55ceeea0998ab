"""On which nodes a pod template may run: names, labels and taints; not how much room there is."""

from __future__ import annotations

from typing import NamedTuple

from tidegate.model.labels import requirement
from tidegate.model.objects import Json
from tidegate.model.reading import listed, mapping, mappings, text
from tidegate.sandbox.server.store import Body, Stored

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NO_EXECUTE = "NoExecute"
ALWAYS_TOLERATED: tuple[Body, ...] = tuple(
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
"""What every DaemonSet's pod puts up with."""


class NodeFit(NamedTuple):
    """Whether a new pod goes to a node, and whether one that is there may stay."""

    runs: bool
    stays: bool


def fit_of(template: Json, node: Stored) -> NodeFit:
    """How a DaemonSet's template and a node go together."""
    spec = mapping(template, "spec")
    if text(spec, "nodeName", default=node.ref.name) != node.ref.name:
        return NodeFit(runs=False, stays=False)
    if not _is_chosen(spec, node):
        return NodeFit(runs=False, stays=False)
    tolerations: list[Body] = [*mappings(spec, "tolerations"), *ALWAYS_TOLERATED]
    hard = [
        taint
        for taint in mappings(node.body, "spec", "taints")
        if taint.get("effect") in ("NoSchedule", NO_EXECUTE)
        and not any(_tolerates(toleration, taint) for toleration in tolerations)
    ]
    return NodeFit(runs=not hard, stays=not any(one.get("effect") == NO_EXECUTE for one in hard))


def pinned(spec: Body, node: str) -> Body:
    """A pod's affinity, narrowed to one node; every other requirement on nodes was met already."""
    field: Body = {"key": "metadata.name", "operator": "In", "values": [node]}
    term: Body = {"matchFields": [field]}
    affinity = mapping(spec, "affinity")
    towards: Body = {
        **mapping(affinity, "nodeAffinity"),
        REQUIRED: {"nodeSelectorTerms": [term]},
    }
    return {**affinity, "nodeAffinity": towards}


def node_of(pod: Stored) -> str:
    """The node a pod is on, or the one it is meant for."""
    placed = text(pod.body, "spec", "nodeName")
    if placed:
        return placed
    affinity = mapping(pod.body, "spec", "affinity", "nodeAffinity")
    for term in mappings(affinity, REQUIRED, "nodeSelectorTerms"):
        for field in mappings(term, "matchFields"):
            if field.get("key") == "metadata.name":
                return str(next(iter(listed(field, "values")), ""))
    return ""


def _is_chosen(spec: Body, node: Stored) -> bool:
    if not mapping(spec, "nodeSelector").items() <= node.labels.items():
        return False
    terms = mappings(spec, "affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms")
    return not terms or any(_is_met(term, node) for term in terms)


def _is_met(term: Body, node: Stored) -> bool:
    expressions = mappings(term, "matchExpressions")
    fields = mappings(term, "matchFields")
    names: Body = {"metadata.name": node.ref.name}
    return bool(expressions or fields) and all(
        [
            *(requirement(one).holds(node.labels) for one in expressions),
            *(requirement(one).holds(names) for one in fields),
        ]
    )


def _tolerates(toleration: Body, taint: Body) -> bool:
    key, effect = text(toleration, "key"), text(toleration, "effect")
    if effect and effect != taint.get("effect"):
        return False
    if key and key != taint.get("key"):
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(key) and text(toleration, "value") == text(taint, "value")
