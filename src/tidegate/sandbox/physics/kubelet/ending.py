"""The end of a pod that is being deleted: its containers get their time, and then it goes."""

from __future__ import annotations

from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Json
from tidegate.model.reading import mapping, mappings, number, text
from tidegate.sandbox.controllers.conditions import moment_of
from tidegate.sandbox.controllers.reaction import At, Looking
from tidegate.sandbox.controllers.writes import patch
from tidegate.sandbox.physics.kubelet.marks import ENDED_BY_SIGNAL, mark
from tidegate.sandbox.server.lifecycle import timestamp
from tidegate.sandbox.server.store import Body, Stored
from tidegate.world.calls import Verb, Write

TERMINATED = 143
"""128 and the number of the signal to end."""


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
