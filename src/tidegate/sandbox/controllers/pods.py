"""Pods as their controllers see them: alive or not, ready, available, and which go first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Json
from tidegate.model.reading import mapping, mappings, number, part, text
from tidegate.sandbox.controllers.conditions import moment_of
from tidegate.sandbox.controllers.reaction import At
from tidegate.sandbox.controllers.writes import create, owner_reference
from tidegate.sandbox.kinds import POD
from tidegate.sandbox.server.store import Body, Stored
from tidegate.world.calls import Write
from tidegate.world.facts import Forbidden, Outcome, is_refusal

COST = "controller.kubernetes.io/pod-deletion-cost"
PHASES = ("Pending", "Unknown", "Running")
FIRST_RETRY = Ms(SECOND)
LAST_RETRY = Ms(1_000 * SECOND)


def phase_of(pod: Stored) -> str:
    return text(pod.body, "status", "phase", default="Pending")


def is_active(pod: Stored) -> bool:
    return not pod.is_deleting and phase_of(pod) not in ("Succeeded", "Failed")


def ready_condition(pod: Stored) -> Body | None:
    """The Ready condition, where it says so."""
    for condition in mappings(pod.body, "status", "conditions"):
        if condition.get("type") == "Ready":
            return condition if condition.get("status") == "True" else None
    return None


def is_ready(pod: Stored) -> bool:
    return ready_condition(pod) is not None


def available_from(pod: Stored, least: int) -> Ms | None:
    """From when on a pod counts as available; None for one that is not ready."""
    condition = ready_condition(pod)
    if condition is None:
        return None
    since = moment_of(condition.get("lastTransitionTime")) if least else None
    return Ms(since + least * SECOND) if since is not None else Ms(0)


def is_available(pod: Stored, least: int, *, now: Ms) -> bool:
    moment = available_from(pod, least)
    return moment is not None and moment <= now


def await_next(pods: Iterable[Stored], least: int, *, now: Ms) -> Iterator[At]:
    """Look again when the next of these becomes available by waiting alone."""
    moments = [available_from(pod, least) for pod in pods] if least else []
    if later := [moment for moment in moments if moment is not None and moment > now]:
        yield At(min(later))


def new_pod(owner: Stored, template: Json, *, metadata: Body, spec: Body | None = None) -> Write:
    """A pod of a template, with what its controller adds.

    A server fills in how often containers are begun again; whoever judges a pod asks for that.
    """
    own = mapping(template, "metadata")
    meant: Body = {
        **{name: own[name] for name in ("annotations", "finalizers") if name in own},
        "namespace": owner.ref.namespace,
        **metadata,
        "labels": {**mapping(own, "labels"), **mapping(metadata, "labels")},
        "ownerReferences": [owner_reference(owner)],
    }
    wanted = {"restartPolicy": "Always", **mapping(template, "spec"), **(spec or {})}
    body: Body = {"metadata": meant, "spec": wanted}
    return create(POD, owner.ref.namespace, body)


def refusal_of(outcome: Outcome | None) -> str:
    """Why a pod could not be made; empty where it was, or where its namespace is going anyway."""
    if outcome is None or not is_refusal(outcome):
        return ""
    if isinstance(outcome, Forbidden) and any(
        cause.reason == "NamespaceTerminating" for cause in outcome.causes
    ):
        return ""
    return outcome.message


def retry_at(since: Ms | None, *, now: Ms, longest: Ms = LAST_RETRY) -> Ms:
    """Each pause is as long as all before it: what doubling comes to, told from the first alone."""
    elapsed = now - since if since is not None else 0
    return Ms(now + min(max(elapsed, FIRST_RETRY), longest))


def age_and_name(stored: Stored) -> tuple[str, str]:
    """Sorts the oldest first."""
    return text(stored.metadata, "creationTimestamp"), stored.ref.name


def least_wanted(pods: list[Stored], count: int) -> list[Stored]:
    """Those to delete first: not placed, not running, not ready, cheap, young."""
    youngest_first = sorted(pods, key=age_and_name, reverse=True)
    return sorted(youngest_first, key=_worth)[:count]


def _worth(pod: Stored) -> tuple[bool, int, bool, int, int]:
    phase = phase_of(pod)
    cost = text(pod.metadata, "annotations", COST, default="0")
    restarts = max(
        (number(one, "restartCount") for one in mappings(pod.body, "status", "containerStatuses")),
        default=0,
    )
    return (
        part(pod.body, "spec", "nodeName") is not None,
        PHASES.index(phase) if phase in PHASES else 0,
        is_ready(pod),
        int(cost) if cost.lstrip("-").isdigit() else 0,
        -restarts,
    )
