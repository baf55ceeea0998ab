"""ReplicaSets: as many pods of one template as are asked for, and what became of them."""

from __future__ import annotations

from collections.abc import Generator

from tidegate.model.moment import Ms
from tidegate.model.objects import Json, Ref
from tidegate.model.reading import mapping, mappings, number
from tidegate.sandbox.controllers.conditions import (
    Conditions,
    find_condition,
    moment_of,
    new_condition,
    without_condition,
    without_zeros,
)
from tidegate.sandbox.controllers.pods import (
    await_next,
    is_active,
    is_available,
    is_ready,
    least_wanted,
    new_pod,
    refusal_of,
    retry_at,
)
from tidegate.sandbox.controllers.reaction import At, Controller, Looking, Visible
from tidegate.sandbox.controllers.writes import Voice, controlled, delete, say, with_controlled
from tidegate.sandbox.kinds import POD, REPLICA_SET
from tidegate.sandbox.server.store import Body, Stored
from tidegate.world.calls import Write
from tidegate.world.facts import Outcome

VOICE = Voice("replicaset-controller")
FAILURE = "ReplicaFailure"
BURST = 500
"""So many pods are made or deleted in one look."""


def keep_replicas(view: Visible, ref: Ref, now: Ms) -> Looking:
    """Make or delete pods until there are as many as asked for; say how many there were."""
    owner = view.get(ref)
    if owner is None:
        return
    pods = controlled(view, owner, POD)
    active = [pod for pod in pods if is_active(pod)]
    problem = ""
    if not owner.is_deleting:
        problem = yield from _make_up(owner, active, now)
    status = _status(owner, pods, active, problem, now)
    yield from say(owner, status)
    if problem:
        failed = find_condition(mappings(status, "conditions"), FAILURE)
        since = moment_of(failed.get("lastTransitionTime")) if failed else None
        yield At(retry_at(since, now=now))
    yield from await_next(active, _least(owner), now=now)


def _least(owner: Stored) -> int:
    return number(owner.body, "spec", "minReadySeconds")


def _make_up(owner: Stored, active: list[Stored], now: Ms) -> Generator[Write, Outcome | None, str]:
    """The difference between what is and what should be; why it could not be made up."""
    missing = number(owner.body, "spec", "replicas", default=1) - len(active)
    if missing > 0:
        return (yield from _make_pods(owner, min(missing, BURST), now))
    for pod in least_wanted(active, min(-missing, BURST)) if missing else ():
        yield delete(pod)
    return ""


def _make_pods(owner: Stored, count: int, now: Ms) -> Generator[Write, Outcome | None, str]:
    """In batches of one, two, four; the first batch with a refusal is the last."""
    template = mapping(owner.body, "spec", "template")
    write = new_pod(owner, template, metadata={"generateName": f"{owner.ref.name}-"})
    batch, problem = 1, ""
    while count > 0 and not problem:
        for _ in range(min(batch, count)):
            refusal = refusal_of((yield write))
            if refusal:
                yield VOICE.warn(owner, "FailedCreate", f"Error creating: {refusal}", now)
            problem = problem or refusal
        count, batch = count - batch, batch * 2
    return problem


def _status(owner: Stored, pods: list[Stored], active: list[Stored], problem: str, now: Ms) -> Body:
    least = _least(owner)
    labels = mapping(owner.body, "spec", "template", "metadata", "labels")
    counts: Body = {
        "fullyLabeledReplicas": sum(labels.items() <= pod.labels.items() for pod in active),
        "readyReplicas": sum(map(is_ready, active)),
        "availableReplicas": sum(is_available(pod, least, now=now) for pod in active),
        "observedGeneration": owner.generation,
    }
    conditions: list[Json] = [*_conditions(owner, len(active), problem, now)]
    return {
        "replicas": len(active),
        **without_zeros(counts),
        "terminatingReplicas": sum(pod.is_deleting for pod in pods),
        **({"conditions": conditions} if conditions else {}),
    }


def _conditions(owner: Stored, active: int, problem: str, now: Ms) -> Conditions:
    known = mappings(owner.body, "status", "conditions")
    if not problem:
        return without_condition(known, FAILURE)
    if find_condition(known, FAILURE):
        return known
    wanted = number(owner.body, "spec", "replicas", default=1)
    reason = "FailedCreate" if active < wanted else "FailedDelete"
    return [*known, new_condition(FAILURE, "True", reason, problem, now=now, dated="")]


REPLICA_SETS = Controller(
    "replica-sets", keep_replicas, with_controlled(REPLICA_SET, POD), kinds=(REPLICA_SET, POD)
)
