"""A kubelet without physics: does to pods what the stages of the test plane do.

Pods are placed on a node and become Ready at once, those of Jobs succeed at once. Annotations that
begin with `test.tidegate.dev/` say otherwise; `plane/parts/stages.py` lists them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text
from tidegate.model.k8s.kinds import POD
from tidegate.model.k8s.objects import Json, JsonObject, Kind, Ref
from tidegate.model.times import MINUTE, SECOND, Ms
from tidegate.sandbox.controllers.conditions import read_timestamp
from tidegate.sandbox.controllers.interface import (
    Controller,
    ObjectReader,
    Reconciliation,
    RequeueAt,
)
from tidegate.sandbox.controllers.pods import phase_of
from tidegate.sandbox.controllers.workloads.placement import target_node
from tidegate.sandbox.controllers.writes import controller_of_kind, set_status
from tidegate.sandbox.server.lifecycle import format_rfc3339
from tidegate.sandbox.server.store import StoredObject, StoreEvent
from tidegate.world.requests import Verb, Write

PREFIX = "test.tidegate.dev/"
JOB = Kind("batch", "v1", "Job")
NODE = Kind("", "v1", "Node")
ANY_NODE = "kwok-0"
SPAN = re.compile(r"(?P<count>\d+)(?P<unit>ms|s|m|h)")
UNITS = {"ms": 1, "s": SECOND, "m": MINUTE, "h": 60 * MINUTE}


def play_kubelet(view: ObjectReader, ref: Ref, now: Ms) -> Reconciliation:
    """Place a pod, start it, end it when its time has come, and let it go when it must."""
    pod = view.get(ref)
    if pod is None:
        return
    if pod.is_deleting:
        if pod.metadata.get("deletionGracePeriodSeconds"):
            yield Write(verb=Verb.DELETE, ref=pod.ref, uid=pod.uid, grace_period_seconds=0)
        return
    if not get_text(pod.body, "spec", "nodeName"):
        yield _place(view, pod)
        return
    next_state, moment = _next_deed(pod)
    if next_state is None:
        return
    if moment > now:
        yield RequeueAt(moment)
    else:
        yield set_status(pod, {**get_mapping(pod.body, "status"), **_status(pod, next_state, now)})


def _next_deed(pod: StoredObject) -> tuple[str | None, Ms]:
    """What happens to a pod next, and when."""
    outcome, phase = _note(pod, "outcome"), phase_of(pod)
    made = read_timestamp(pod.metadata.get("creationTimestamp")) or Ms(0)
    if phase == "Pending":
        next_state = {"never": None, "crash": "crash"}.get(outcome, "ready")
        return next_state, Ms(made + _span(pod, "ready-after"))
    if phase != "Running" or outcome in ("crash", "hang"):
        return None, made
    started = read_timestamp(get_mapping(pod.body, "status").get("startTime")) or made
    ends = Ms(started + _span(pod, "run-for"))
    if outcome == "fail":
        return "fail", ends
    return ("succeed" if controller_of_kind(pod, JOB) else None), ends


def _status(pod: StoredObject, next_state: str, now: Ms) -> JsonObject:
    match next_state:
        case "ready":
            return _running(
                pod, is_ready=True, state={"running": {"startedAt": format_rfc3339(now)}}, now=now
            )
        case "crash":
            waiting: JsonObject = {"reason": "CrashLoopBackOff"}
            return _running(pod, is_ready=False, state={"waiting": waiting}, now=now)
        case "succeed":
            return _ended(pod, "Succeeded", code=0, now=now)
        case _:
            return _ended(pod, "Failed", code=int(_note(pod, "exit-code") or 1), now=now)


def _running(pod: StoredObject, *, is_ready: bool, state: JsonObject, now: Ms) -> JsonObject:
    return {
        "phase": "Running",
        "startTime": format_rfc3339(now),
        "conditions": _conditions("True" if is_ready else "False", now),
        "containerStatuses": _containers(pod, state, is_ready=is_ready),
    }


def _ended(pod: StoredObject, phase: str, *, code: int, now: Ms) -> JsonObject:
    ended: JsonObject = {
        "exitCode": code,
        "reason": "Completed" if phase == "Succeeded" else "Error",
        "finishedAt": format_rfc3339(now),
    }
    return {
        "phase": phase,
        "conditions": _conditions("False", now),
        "containerStatuses": _containers(pod, {"terminated": ended}, is_ready=False),
    }


def _conditions(ready: str, now: Ms) -> list[Json]:
    expected = {"Initialized": "True", "Ready": ready, "ContainersReady": ready}
    return [
        {"type": name, "status": status, "lastTransitionTime": format_rfc3339(now)}
        for name, status in expected.items()
    ]


def _containers(pod: StoredObject, state: JsonObject, *, is_ready: bool) -> list[Json]:
    return [
        {
            "name": container.get("name"),
            "image": container.get("image"),
            "imageID": "",
            "ready": is_ready,
            "started": is_ready,
            "restartCount": 0,
            "state": state,
        }
        for container in get_mappings(pod.body, "spec", "containers")
    ]


def _place(view: ObjectReader, pod: StoredObject) -> Write:
    """On the node that its affinity names, or on the first."""
    nodes = view.list_objects(NODE)
    name = target_node(pod) or (nodes[0].ref.name if nodes else ANY_NODE)
    body = msgspec.json.encode({"spec": {"nodeName": name}})
    return Write(verb=Verb.PATCH, ref=pod.ref, body=body, uid=pod.uid, manager="kube-scheduler")


def _note(pod: StoredObject, name: str) -> str:
    return get_text(pod.metadata, "annotations", f"{PREFIX}{name}")


def _span(pod: StoredObject, name: str) -> Ms:
    parts = SPAN.finditer(_note(pod, name))
    return Ms(sum(int(part["count"]) * UNITS[part["unit"]] for part in parts))


def _concerns(_view: ObjectReader, event: StoreEvent) -> Iterator[Ref]:
    if event.stored.ref.kind == POD:
        yield event.stored.ref


INSTANT_KUBELET = Controller("instant-kubelet", play_kubelet, _concerns, delay=Ms(20))
