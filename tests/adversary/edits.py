"""Edits of other clients that could open a gate too early, or keep it closed for good."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tidegate.model.k8s.objects import Json, JsonObject

HOLD = "adversary.example.org/hold"


@dataclass(frozen=True, slots=True)
class ForeignEdit:
    """What another client does to a workload, and how it is undone."""

    kind: str
    """The kind of the workload."""
    name: str
    patch: JsonObject = field(default_factory=dict)
    """A merge patch."""
    undo: JsonObject = field(default_factory=dict)
    """A merge patch that takes the edit back; empty if nothing must be taken back."""
    subresource: str = ""
    deletes: bool = False
    """Whether the workload is deleted after the patch."""
    needs_gate: bool = False
    """Whether the edit works only while the gate of the workload waits."""


def _spec(**fields: Json) -> JsonObject:
    return {"spec": {**fields}}


def _pods(**fields: Json) -> JsonObject:
    return {"spec": {"template": {"spec": {**fields}}}}


def _pod_notes(**notes: Json) -> JsonObject:
    named: JsonObject = {f"test.tidegate.dev/{name}": note for name, note in notes.items()}
    return {"spec": {"template": {"metadata": {"annotations": named}}}}


NO_NODE: JsonObject = {"no-node-is": "here"}
NO_AFFINITY: JsonObject = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "none", "operator": "Exists"}]}]
        }
    }
}
OTHER_IMAGE: Json = [{"name": "main", "image": "eve:1"}]
ROLLING: JsonObject = {"type": "RollingUpdate"}
HELD: JsonObject = {"metadata": {"finalizers": [HOLD]}}
RELEASED: JsonObject = {"metadata": {"finalizers": None}}


def _edits_of_pods(kind: str) -> Iterator[ForeignEdit]:
    """Yield edits that keep pods of the desired text from running, for any workload."""
    yield ForeignEdit(
        kind, "selects no node", _pods(nodeSelector=NO_NODE), _pods(nodeSelector=None)
    )
    yield ForeignEdit(kind, "fits no node", _pods(affinity=NO_AFFINITY), _pods(affinity=None))
    yield ForeignEdit(
        kind,
        "waits for a scheduling gate",
        _pods(schedulingGates=[{"name": HOLD}]),
        _pods(schedulingGates=None),
    )
    yield ForeignEdit(
        kind,
        "has an unknown scheduler",
        _pods(schedulerName="unknown"),
        _pods(schedulerName="default-scheduler"),
    )
    yield ForeignEdit(
        kind,
        "waits for a readiness gate",
        _pods(readinessGates=[{"conditionType": HOLD}]),
        _pods(readinessGates=None),
    )
    yield ForeignEdit(
        kind, "has pods that never start", _pod_notes(outcome="never"), _pod_notes(outcome=None)
    )
    yield ForeignEdit(
        kind, "is ready only after minutes", _spec(minReadySeconds=500), _spec(minReadySeconds=0)
    )
    yield ForeignEdit(kind, "has another image", _pods(containers=OTHER_IMAGE))
    yield ForeignEdit(kind, "is deleted", deletes=True)
    yield ForeignEdit(kind, "is deleted and held", HELD, RELEASED, deletes=True)


def _edits() -> Iterator[ForeignEdit]:
    for kind in ("Deployment", "StatefulSet", "DaemonSet"):
        yield from _edits_of_pods(kind)
    yield ForeignEdit("Deployment", "is scaled to zero", _spec(replicas=0), _spec(replicas=1))
    yield ForeignEdit("Deployment", "is paused", _spec(paused=True), _spec(paused=None))
    yield ForeignEdit(
        "Deployment",
        "has a forged status",
        {"status": {"observedGeneration": 99, "updatedReplicas": 1, "availableReplicas": 1}},
        subresource="status",
    )
    yield ForeignEdit("StatefulSet", "is scaled to zero", _spec(replicas=0), _spec(replicas=1))
    yield ForeignEdit(
        "StatefulSet",
        "is partitioned",
        _spec(updateStrategy={**ROLLING, "rollingUpdate": {"partition": 1}}),
        _spec(updateStrategy={**ROLLING, "rollingUpdate": {"partition": 0}}),
    )
    yield ForeignEdit(
        "StatefulSet",
        "is updated on delete",
        _spec(updateStrategy={"type": "OnDelete", "rollingUpdate": None}),
        _spec(updateStrategy=ROLLING),
    )
    yield ForeignEdit(
        "DaemonSet",
        "is updated on delete",
        _spec(updateStrategy={"type": "OnDelete", "rollingUpdate": None}),
        _spec(updateStrategy=ROLLING),
    )
    yield ForeignEdit(
        "Job", "is suspended", _spec(suspend=True), _spec(suspend=False), needs_gate=True
    )
    yield ForeignEdit(
        "Job", "has no parallelism", _spec(parallelism=0), _spec(parallelism=1), needs_gate=True
    )
    yield ForeignEdit("Job", "is deleted and held", HELD, RELEASED, deletes=True)


EDITS = tuple(_edits())
