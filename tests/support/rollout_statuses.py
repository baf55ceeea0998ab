"""What controllers would say: statuses that a test writes in their place."""

from __future__ import annotations

from tidegate.model.k8s.objects import Json, JsonObject

AT = "2026-01-01T00:00:00Z"


def ready(generation: int) -> JsonObject:
    """A Deployment of one replica that is there."""
    return {**_replicas(generation, ready=1), "conditions": [_progress("NewReplicaSetAvailable")]}


def stuck(generation: int) -> JsonObject:
    """A Deployment that has missed its progress deadline."""
    overdue = _progress("ProgressDeadlineExceeded", status="False")
    return {**_replicas(generation, ready=0), "conditions": [overdue]}


def _replicas(generation: int, *, ready: int) -> JsonObject:
    return {
        "observedGeneration": generation,
        "replicas": 1,
        "updatedReplicas": 1,
        "readyReplicas": ready,
        "availableReplicas": ready,
        "unavailableReplicas": 1 - ready,
    }


def _progress(reason: str, *, status: str = "True") -> Json:
    return _condition("Progressing", reason, status=status)


def complete() -> JsonObject:
    """A Job that has done its work."""
    conditions = [_condition("SuccessCriteriaMet", "Done"), _condition("Complete", "Done")]
    return {
        "startTime": AT,
        "completionTime": AT,
        "succeeded": 1,
        "active": 0,
        "ready": 0,
        "terminating": 0,
        "uncountedTerminatedPods": {},
        "conditions": [*conditions],
    }


def addressed(address: str = "192.0.2.1") -> JsonObject:
    """An Ingress or a Service that has an address."""
    return {"loadBalancer": {"ingress": [{"ip": address}]}}


def _condition(kind: str, reason: str, *, status: str = "True") -> Json:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": reason,
        "lastTransitionTime": AT,
    }
