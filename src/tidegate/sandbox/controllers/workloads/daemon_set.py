"""DaemonSets: one pod on every node that its template may run on."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import NamedTuple

from tidegate.model.moment import MINUTE, Ms
from tidegate.model.objects import Json, Ref
from tidegate.model.reading import mapping, mappings, number, part, text
from tidegate.sandbox.controllers import writes
from tidegate.sandbox.controllers.conditions import share, without_zeros
from tidegate.sandbox.controllers.pods import (
    await_next,
    is_available,
    is_ready,
    new_pod,
    phase_of,
    refusal_of,
    retry_at,
)
from tidegate.sandbox.controllers.reaction import At, Controller, Looking, Visible
from tidegate.sandbox.controllers.workloads import placement
from tidegate.sandbox.controllers.writes import Voice, first_warning
from tidegate.sandbox.kinds import DAEMON_SET, NODE, POD
from tidegate.sandbox.server.store import Body, Stored, Transition
from tidegate.world.calls import Write
from tidegate.world.facts import Change, Outcome

VOICE = Voice("daemonset-controller")
REVISION_LABEL = "controller-revision-hash"
OF_PODS = writes.with_controlled(DAEMON_SET, POD)


class Patrol(NamedTuple):
    """A DaemonSet at one look: its nodes, and its pods by node, the oldest first."""

    owner: Stored
    digest: str
    fits: dict[str, placement.NodeFit]
    pods: dict[str, list[Stored]]
    now: Ms

    @property
    def least(self) -> int:
        return number(self.owner.body, "spec", "minReadySeconds")

    @property
    def desired(self) -> int:
        return sum(fit.runs for fit in self.fits.values())

    def limit(self, name: str, default: int) -> int:
        given = part(self.owner.body, "spec", "updateStrategy", "rollingUpdate", name)
        return share(default if given is None else given, of=self.desired, rounds_up=True)

    def is_new(self, pod: Stored) -> bool:
        return pod.labels.get(REVISION_LABEL) == self.digest

    def is_well(self, pod: Stored) -> bool:
        return is_available(pod, self.least, now=self.now)

    def staying(self, node: str) -> list[Stored]:
        """The pods of a node that are not on their way out."""
        return [pod for pod in self.pods.get(node, []) if not pod.is_deleting]

    def sorted_out(self, pods: list[Stored]) -> tuple[list[Stored], list[Stored]]:
        """The new ones and the old ones."""
        new = [pod for pod in pods if self.is_new(pod)]
        return new, [pod for pod in pods if not self.is_new(pod)]


def keep_watch(view: Visible, ref: Ref, now: Ms) -> Looking:
    """A pod on every node that should have one; old ones are replaced a few at a time."""
    owner = view.get(ref)
    if owner is None or owner.is_deleting:
        return
    patrol = _read(view, owner, now)
    refusal = yield from _man(patrol)
    if refusal:
        since = first_warning(view, owner, reason="FailedCreate")
        yield At(retry_at(since, now=now, longest=MINUTE))
    patrol = _read(view, owner, now)
    if not refusal and text(owner.body, "spec", "updateStrategy", "type") != "OnDelete":
        yield from _renew(patrol)
    yield from writes.say(owner, _status(patrol))
    everyone = [pod for pods in patrol.pods.values() for pod in pods]
    yield from await_next(everyone, patrol.least, now=now)


def _read(view: Visible, owner: Stored, now: Ms) -> Patrol:
    template = mapping(owner.body, "spec", "template")
    fits = {node.ref.name: placement.fit_of(template, node) for node in view.all_of(NODE)}
    pods: dict[str, list[Stored]] = {}
    for pod in writes.controlled(view, owner, POD):
        pods.setdefault(placement.node_of(pod), []).append(pod)
    return Patrol(owner, writes.digest_of(template), fits, pods, now)


def _man(patrol: Patrol) -> Generator[Write, Outcome | None, str]:
    """Make what is missing and delete what should not be; why something could not be made."""
    problem = ""
    for node, fit in patrol.fits.items():
        pods = patrol.staying(node)
        # Beside one that ends, the next may run only where there may be two.
        there = pods if patrol.limit("maxSurge", 0) else patrol.pods.get(node)
        if fit.runs and not there:
            problem = problem or (yield from _make(patrol, node))
        elif fit.stays:
            yield from _tidy(patrol, node, pods)
        else:
            yield from writes.delete_all(pods)
    return problem


def _tidy(patrol: Patrol, node: str, pods: list[Stored]) -> Iterator[Write]:
    """Pods that have ended go, and so do those beyond the first, unless they are the next ones."""
    for pod in pods:
        if phase_of(pod) == "Failed":
            place = f"{pod.ref.namespace}/{pod.ref.name} on node {node}"
            said = f"Found failed daemon pod {place}, will try to kill it"
            yield VOICE.tell(patrol.owner, "FailedDaemonPod", said, patrol.now)
            yield writes.delete(pod)
        elif phase_of(pod) == "Succeeded":
            yield writes.delete(pod)
    running = [pod for pod in pods if phase_of(pod) not in ("Failed", "Succeeded")]
    new, old = patrol.sorted_out(running)
    if not patrol.limit("maxSurge", 0):
        yield from writes.delete_all(running[1:])
        return
    yield from writes.delete_all((*new[1:], *old[1:]))
    if new and old and (not is_ready(old[0]) or patrol.is_well(new[0])):
        yield writes.delete(old[0])


def _make(patrol: Patrol, node: str) -> Generator[Write, Outcome | None, str]:
    template = mapping(patrol.owner.body, "spec", "template")
    spec = mapping(template, "spec")
    borne: list[Json] = [*mappings(spec, "tolerations"), *placement.ALWAYS_TOLERATED]
    write = new_pod(
        patrol.owner,
        template,
        metadata={
            "generateName": f"{patrol.owner.ref.name}-",
            "labels": {REVISION_LABEL: patrol.digest},
        },
        spec={"affinity": placement.pinned(spec, node), "tolerations": borne},
    )
    refusal = refusal_of((yield write))
    if refusal:
        yield VOICE.warn(patrol.owner, "FailedCreate", f"Error creating: {refusal}", patrol.now)
    return refusal


def _renew(patrol: Patrol) -> Generator[Write, Outcome | None, None]:
    """Old pods make room for new ones: as many as may be missing, or may be there twice."""
    if surge := patrol.limit("maxSurge", 0):
        yield from _renew_beside(patrol, surge)
        return
    spare = patrol.limit("maxUnavailable", 1) or 1
    candidates: list[Stored] = []
    for node, fit in patrol.fits.items():
        pods = patrol.staying(node)
        if not fit.runs and not pods:
            continue
        if len(pods) != 1 or not patrol.is_well(pods[0]):
            spare -= 1
            yield from writes.delete_all([pod for pod in pods if not patrol.is_new(pod)])
        elif not patrol.is_new(pods[0]):
            candidates.append(pods[0])
    yield from writes.delete_all(candidates[: max(0, spare)])


def _renew_beside(patrol: Patrol, surge: int) -> Generator[Write, Outcome | None, None]:
    candidates: list[str] = []
    for node, fit in patrol.fits.items():
        new, old = patrol.sorted_out(patrol.staying(node))
        if new and old:
            surge -= not patrol.is_well(new[0])
        elif old and fit.runs and not patrol.is_well(old[0]):
            yield from _make(patrol, node)
        elif old and fit.runs:
            candidates.append(node)
    for node in candidates[: max(0, surge)]:
        yield from _make(patrol, node)


def _status(patrol: Patrol) -> Body:
    first = {
        node: patrol.pods[node][0]
        for node, fit in patrol.fits.items()
        if fit.runs and patrol.pods.get(node)
    }
    available = sum(is_ready(pod) and patrol.is_well(pod) for pod in first.values())
    counts: Body = {
        "observedGeneration": patrol.owner.generation,
        "updatedNumberScheduled": sum(map(patrol.is_new, first.values())),
        "numberAvailable": available,
        "numberUnavailable": patrol.desired - available,
    }
    return {
        "currentNumberScheduled": len(first),
        "numberMisscheduled": sum(
            not fit.runs and bool(patrol.pods.get(node)) for node, fit in patrol.fits.items()
        ),
        "desiredNumberScheduled": patrol.desired,
        "numberReady": sum(map(is_ready, first.values())),
        **without_zeros(counts),
    }


def _concerns(view: Visible, event: Transition) -> Iterator[Ref]:
    yield from OF_PODS(view, event)
    if event.stored.ref.kind == NODE and _moves_pods(event):
        yield from (daemon_set.ref for daemon_set in view.all_of(DAEMON_SET))


def _moves_pods(event: Transition) -> bool:
    """Nodes report all the time; only their labels and taints say who may run there."""
    before = event.before
    if event.change is not Change.MODIFIED or before is None:
        return True
    taints = part(event.stored.body, "spec", "taints") != part(before.body, "spec", "taints")
    return taints or event.stored.labels != before.labels


DAEMON_SETS = Controller("daemon-sets", keep_watch, _concerns, kinds=(DAEMON_SET, POD, NODE))
