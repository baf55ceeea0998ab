"""Workloads without pods: a Deployment, a Job or an Ingress becomes ready after a while of its own.

Annotations that begin with `test.tidegate.dev/` say how, in milliseconds: `after` it is ready,
before that `sick` for so long. One with `never` stays as it is, one with `dies` fails for good. A
Job with a time to live is removed when that is over.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.model.k8s.json_fields import get_int, get_mapping, get_text
from tidegate.model.k8s.objects import Json, JsonObject, Kind, Ref
from tidegate.model.times import SECOND, Ms
from tidegate.sandbox.controllers.core import API_CONTROLLERS
from tidegate.sandbox.controllers.interface import (
    Controller,
    ObjectReader,
    Reconciliation,
    RequeueAt,
)
from tidegate.sandbox.controllers.writes import set_status
from tidegate.sandbox.faults import Fault
from tidegate.sandbox.server.store import StoredObject, StoreEvent
from tidegate.sandbox.world import Sandbox
from tidegate.world.requests import Verb, Write

DEPLOYMENT = Kind("apps", "v1", "Deployment")
JOB = Kind("batch", "v1", "Job")
INGRESS = Kind("networking.k8s.io", "v1", "Ingress")
KINDS = (DEPLOYMENT, JOB, INGRESS)
PREFIX = "test.tidegate.dev/"


def note(stored: StoredObject, name: str, default: int = 0) -> int:
    return int(
        get_text(stored.body, "metadata", "annotations", PREFIX + name, default=str(default))
    )


class WorkloadTimes:
    """Remembers since when each object is as it is."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, int], Ms] = {}

    def look(self, view: ObjectReader, ref: Ref, now: Ms) -> Reconciliation:
        stored = view.get(ref)
        if stored is None or stored.is_deleting or note(stored, "never"):
            return
        since = self._since.setdefault((stored.uid, stored.generation), now)
        sick, ready = Ms(since + note(stored, "sick")), Ms(since + note(stored, "after", 20))
        if now < sick:
            yield from _say(stored, "sick")
            yield RequeueAt(sick)
        elif note(stored, "dies"):
            yield from _say(stored, "dead")
        elif now < ready:
            yield from _say(stored, "busy")
            yield RequeueAt(ready)
        else:
            yield from _say(stored, "well")
            yield from _expire(stored, ready, now)


def _expire(stored: StoredObject, ready: Ms, now: Ms) -> Reconciliation:
    lifetime = get_int(stored.body, "spec", "ttlSecondsAfterFinished", default=-1)
    ends = Ms(ready + lifetime * SECOND)
    if lifetime >= 0 and now < ends:
        yield RequeueAt(ends)
    elif lifetime >= 0:
        yield Write(verb=Verb.DELETE, ref=stored.ref, uid=stored.uid)


def _say(stored: StoredObject, state: str) -> Reconciliation:
    status = STATUSES[stored.ref.kind](stored, state)
    if status != get_mapping(stored.body, "status"):
        yield set_status(stored, status)


def _deployment(stored: StoredObject, state: str) -> JsonObject:
    expected = get_int(stored.body, "spec", "replicas", default=1)
    ready = expected if state == "well" else 0
    status: JsonObject = {
        "observedGeneration": stored.generation,
        "replicas": expected,
        "updatedReplicas": expected,
        "readyReplicas": ready,
        "availableReplicas": ready,
    }
    if state == "well":
        progress = _condition("Progressing", "True", "NewReplicaSetAvailable")
        status["conditions"] = [_condition("Available", "True", "MinimumReplicas"), progress]
    if state in ("sick", "dead"):
        status["conditions"] = [_condition("Progressing", "False", "ProgressDeadlineExceeded")]
    return status


def _job(_: StoredObject, state: str) -> JsonObject:
    if state == "well":
        return {"succeeded": 1, "conditions": [_condition("Complete", "True", "Done")]}
    if state == "dead":
        return {"failed": 1, "conditions": [_condition("Failed", "True", "BackoffLimitExceeded")]}
    return {"active": 1}


def _ingress(_: StoredObject, state: str) -> JsonObject:
    return {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]} if state == "well" else {}}


def _condition(kind: str, status: str, reason: str) -> Json:
    return {"type": kind, "status": status, "reason": reason, "message": f"it is {reason}"}


STATUSES = {DEPLOYMENT: _deployment, JOB: _job, INGRESS: _ingress}


def _concerns(_: ObjectReader, event: StoreEvent) -> Iterable[Ref]:
    ref = event.stored.ref
    return (ref,) if ref.kind in KINDS else ()


def nurse_of(nurse: WorkloadTimes) -> Controller:
    return Controller("nurse", nurse.look, _concerns, Ms(5))


def quick_sandbox(*, seed: int = 0, faults: tuple[Fault, ...] = ()) -> Sandbox:
    """A cluster whose workloads obey their annotations and nothing else."""
    return Sandbox(
        seed=seed, faults=faults, controllers=(*API_CONTROLLERS, nurse_of(WorkloadTimes()))
    )
