"""DaemonSets: one pod on every node that its template may run on."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import NamedTuple

from tidegate.model.k8s.json_fields import get_int, get_mapping, get_mappings, get_text, get_value
from tidegate.model.k8s.kinds import DAEMON_SET, NODE, POD
from tidegate.model.k8s.objects import Json, JsonObject, Ref
from tidegate.model.times import MINUTE, Ms
from tidegate.sandbox.controllers import writes
from tidegate.sandbox.controllers.conditions import scaled_value, without_zeros
from tidegate.sandbox.controllers.interface import (
    Controller,
    ObjectReader,
    Reconciliation,
    RequeueAt,
)
from tidegate.sandbox.controllers.pods import (
    creation_error,
    is_available,
    is_ready,
    new_pod,
    phase_of,
    requeue_when_available,
    retry_at,
)
from tidegate.sandbox.controllers.workloads import placement
from tidegate.sandbox.controllers.writes import EventRecorder, first_warning_time
from tidegate.sandbox.server.store import StoredObject, StoreEvent
from tidegate.world.messages import Outcome, WatchEventType
from tidegate.world.requests import Write

RECORDER = EventRecorder("daemonset-controller")
REVISION_LABEL = "controller-revision-hash"
MAP_PODS = writes.map_to_owner(DAEMON_SET, POD)


class DaemonSetState(NamedTuple):
    """A DaemonSet as read for one reconciliation: node fits, and pods by node, the oldest first."""

    owner: StoredObject
    """The DaemonSet."""
    digest: str
    """The hash of the current template."""
    fits: dict[str, placement.NodeFit]
    """The fit of each node, by name."""
    pods: dict[str, list[StoredObject]]
    """The pods by node."""
    now: Ms
    """The current time."""

    @property
    def min_ready_seconds(self) -> int:
        """`minReadySeconds` of the spec."""
        return get_int(self.owner.body, "spec", "minReadySeconds")

    @property
    def desired(self) -> int:
        """The number of nodes that should run a pod."""
        return sum(fit.should_run for fit in self.fits.values())

    def limit(self, name: str, default: int) -> int:
        value = get_value(self.owner.body, "spec", "updateStrategy", "rollingUpdate", name)
        return scaled_value(default if value is None else value, total=self.desired, round_up=True)

    def is_new(self, pod: StoredObject) -> bool:
        """Return whether a pod has the current template."""
        return pod.labels.get(REVISION_LABEL) == self.digest

    def is_available(self, pod: StoredObject) -> bool:
        """Return whether a pod is available."""
        return is_available(pod, self.min_ready_seconds, now=self.now)

    def remaining_pods(self, node: str) -> list[StoredObject]:
        """Return the pods of a node that are not being deleted."""
        return [pod for pod in self.pods.get(node, []) if not pod.is_deleting]

    def split_by_revision(
        self, pods: list[StoredObject]
    ) -> tuple[list[StoredObject], list[StoredObject]]:
        """Return the pods of the current revision, and the others."""
        new = [pod for pod in pods if self.is_new(pod)]
        return new, [pod for pod in pods if not self.is_new(pod)]


def reconcile_daemon_set(reader: ObjectReader, ref: Ref, now: Ms) -> Reconciliation:
    """Run a pod on every node that should have one; replace old pods a few at a time.

    Like `syncDaemonSet` and `manage` in `pkg/controller/daemon/daemon_controller.go` of Kubernetes
    1.36.4.
    """
    owner = reader.get(ref)
    if owner is None or owner.is_deleting:
        return
    state = _read_state(reader, owner, now)
    error = yield from _manage_pods(state)
    if error:
        since = first_warning_time(reader, owner, reason="FailedCreate")
        yield RequeueAt(retry_at(since, now=now, max_delay=MINUTE))
    state = _read_state(reader, owner, now)
    if not error and get_text(owner.body, "spec", "updateStrategy", "type") != "OnDelete":
        yield from _rolling_update(state)
    yield from writes.update_status(owner, _status(state))
    all_pods = [pod for pods in state.pods.values() for pod in pods]
    yield from requeue_when_available(all_pods, state.min_ready_seconds, now=now)


def _read_state(reader: ObjectReader, owner: StoredObject, now: Ms) -> DaemonSetState:
    template = get_mapping(owner.body, "spec", "template")
    fits = {node.ref.name: placement.node_fit(template, node) for node in reader.list_objects(NODE)}
    pods: dict[str, list[StoredObject]] = {}
    for pod in writes.list_controlled(reader, owner, POD):
        pods.setdefault(placement.target_node(pod), []).append(pod)
    return DaemonSetState(owner, writes.compute_hash(template), fits, pods, now)


def _manage_pods(state: DaemonSetState) -> Generator[Write, Outcome | None, str]:
    """Create missing pods and delete unwanted ones; return why a pod could not be created."""
    problem = ""
    for node, fit in state.fits.items():
        pods = state.remaining_pods(node)
        # Next to a terminating pod, a new pod runs only if the DaemonSet may surge.
        existing = pods if state.limit("maxSurge", 0) else state.pods.get(node)
        if fit.should_run and not existing:
            problem = problem or (yield from _create_pod(state, node))
        elif fit.should_continue:
            yield from _delete_surplus(state, node, pods)
        else:
            yield from writes.delete_all(pods)
    return problem


def _delete_surplus(state: DaemonSetState, node: str, pods: list[StoredObject]) -> Iterator[Write]:
    """Delete finished pods and duplicates, except a new pod that is surging.

    Like `podsShouldBeOnNode` in `pkg/controller/daemon/daemon_controller.go` of Kubernetes 1.36.4.
    """
    for pod in pods:
        if phase_of(pod) == "Failed":
            pod_on_node = f"{pod.ref.namespace}/{pod.ref.name} on node {node}"
            message = f"Found failed daemon pod {pod_on_node}, will try to kill it"
            yield RECORDER.record(state.owner, "FailedDaemonPod", message, state.now)
            yield writes.delete(pod)
        elif phase_of(pod) == "Succeeded":
            yield writes.delete(pod)
    running = [pod for pod in pods if phase_of(pod) not in ("Failed", "Succeeded")]
    new, old = state.split_by_revision(running)
    if not state.limit("maxSurge", 0):
        yield from writes.delete_all(running[1:])
        return
    yield from writes.delete_all((*new[1:], *old[1:]))
    if new and old and (not is_ready(old[0]) or state.is_available(new[0])):
        yield writes.delete(old[0])


def _create_pod(state: DaemonSetState, node: str) -> Generator[Write, Outcome | None, str]:
    template = get_mapping(state.owner.body, "spec", "template")
    spec = get_mapping(template, "spec")
    tolerations: list[Json] = [*get_mappings(spec, "tolerations"), *placement.DAEMON_TOLERATIONS]
    write = new_pod(
        state.owner,
        template,
        metadata={
            "generateName": f"{state.owner.ref.name}-",
            "labels": {REVISION_LABEL: state.digest},
        },
        spec={"affinity": placement.pin_to_node(spec, node), "tolerations": tolerations},
    )
    error = creation_error((yield write))
    if error:
        yield RECORDER.record_warning(
            state.owner, "FailedCreate", f"Error creating: {error}", state.now
        )
    return error


def _rolling_update(state: DaemonSetState) -> Generator[Write, Outcome | None, None]:
    """Delete old pods within `maxUnavailable`, or surge within `maxSurge`.

    Like `rollingUpdate` in `pkg/controller/daemon/update.go` of Kubernetes 1.36.4.
    """
    if surge := state.limit("maxSurge", 0):
        yield from _surge_update(state, surge)
        return
    spare = state.limit("maxUnavailable", 1) or 1
    candidates: list[StoredObject] = []
    for node, fit in state.fits.items():
        pods = state.remaining_pods(node)
        if not fit.should_run and not pods:
            continue
        if len(pods) != 1 or not state.is_available(pods[0]):
            spare -= 1
            yield from writes.delete_all([pod for pod in pods if not state.is_new(pod)])
        elif not state.is_new(pods[0]):
            candidates.append(pods[0])
    yield from writes.delete_all(candidates[: max(0, spare)])


def _surge_update(state: DaemonSetState, surge: int) -> Generator[Write, Outcome | None, None]:
    candidates: list[str] = []
    for node, fit in state.fits.items():
        new, old = state.split_by_revision(state.remaining_pods(node))
        if new and old:
            surge -= not state.is_available(new[0])
        elif old and fit.should_run and not state.is_available(old[0]):
            yield from _create_pod(state, node)
        elif old and fit.should_run:
            candidates.append(node)
    for node in candidates[: max(0, surge)]:
        yield from _create_pod(state, node)


def _status(state: DaemonSetState) -> JsonObject:
    first_pods = {
        node: state.pods[node][0]
        for node, fit in state.fits.items()
        if fit.should_run and state.pods.get(node)
    }
    available = sum(is_ready(pod) and state.is_available(pod) for pod in first_pods.values())
    counts: JsonObject = {
        "observedGeneration": state.owner.generation,
        "updatedNumberScheduled": sum(map(state.is_new, first_pods.values())),
        "numberAvailable": available,
        "numberUnavailable": state.desired - available,
    }
    return {
        "currentNumberScheduled": len(first_pods),
        "numberMisscheduled": sum(
            not fit.should_run and bool(state.pods.get(node)) for node, fit in state.fits.items()
        ),
        "desiredNumberScheduled": state.desired,
        "numberReady": sum(map(is_ready, first_pods.values())),
        **without_zeros(counts),
    }


def _map_event(reader: ObjectReader, event: StoreEvent) -> Iterator[Ref]:
    yield from MAP_PODS(reader, event)
    if event.stored.ref.kind == NODE and _affects_placement(event):
        yield from (daemon_set.ref for daemon_set in reader.list_objects(DAEMON_SET))


def _affects_placement(event: StoreEvent) -> bool:
    """Return whether labels or taints of a node changed; other reports of nodes move no pods.

    Like `shouldIgnoreNodeUpdate` in `pkg/controller/daemon/daemon_controller.go` of Kubernetes
    1.36.4.
    """
    before = event.before
    if event.change is not WatchEventType.MODIFIED or before is None:
        return True
    taints_changed = get_value(event.stored.body, "spec", "taints") != get_value(
        before.body, "spec", "taints"
    )
    return taints_changed or event.stored.labels != before.labels


DAEMON_SETS = Controller(
    "daemon-sets", reconcile_daemon_set, _map_event, kinds=(DAEMON_SET, POD, NODE)
)
