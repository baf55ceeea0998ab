"""Durations of pods, from their statuses and the Events of the kubelet.

Only the first run of a container counts: later runs have the image already, and wait for their
back-off. Events expire after an hour; then the time until a container runs is measured as a
whole, and the default duration of a start is subtracted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tidegate.model.k8s.json_fields import get_int, get_mapping, get_mappings, get_text
from tidegate.model.k8s.kinds import EVENT, POD
from tidegate.model.k8s.objects import Json
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.times import MINUTE, Ms, parse_measured_duration
from tidegate.sandbox.controllers.conditions import read_timestamp
from tidegate.sandbox.controllers.interface import ObjectReader
from tidegate.sandbox.controllers.writes import controller_ref
from tidegate.sandbox.measurements.measures import Measurements, RuleSelector
from tidegate.sandbox.node.kubelet.kubectl_wait import container_waits
from tidegate.sandbox.node.kubelet.service_calls import is_polling
from tidegate.sandbox.node.kubelet.states import ContainerRole, container_role
from tidegate.sandbox.node.profile import Profile
from tidegate.sandbox.server.store import StoredObject

PULLED_MESSAGE = lazy_regex(
    r'pulled image ".*" in (\S+?)(?: \((\S+) including waiting\))?[.,]?(?:\s|$)'
)
IMAGE_PRESENT = "already present on machine"
DELAY_REASONS = frozenset(
    {"FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox", "Failed", "BackOff"}
)
"""Reasons of Events of a pod that waited for something other than its image."""
MAX_READY_DURATION = Ms(10 * MINUTE)
"""A container that is ready later was ready before: the default deadline of a Deployment."""
IMAGE_TAG = lazy_regex(r"(?<=[^/])(?:@|:(?=[^/]*$)).*")


class PodEventSummary(NamedTuple):
    """Events of a pod: pull durations by container, and whether something else delayed it."""

    pulls: dict[str, Ms]
    """Pull durations by container."""
    is_delayed: bool
    """Whether the pod waited for something other than its images."""


class MeasuredContainer(NamedTuple):
    """A container of a pod, with the status of its first run."""

    container: Json
    """The container of the spec."""
    status: Json
    """The status of the container."""
    role: ContainerRole
    """The role of the container."""
    field_path: str
    """The field path in Events about the container."""

    @property
    def started_at(self) -> Ms | None:
        """The start of the first run; None if not started, or restarted since."""
        if get_int(self.status, "restartCount"):
            return None
        state = get_mapping(self.status, "state")
        run_state = get_mapping(state, "running") or get_mapping(state, "terminated")
        return read_timestamp(run_state.get("startedAt"))

    @property
    def finished_at(self) -> Ms | None:
        """The successful end of the container, or None."""
        terminated = get_mapping(self.status, "state", "terminated")
        return (
            read_timestamp(terminated.get("finishedAt"))
            if terminated and not get_int(terminated, "exitCode")
            else None
        )

    @property
    def image_pattern(self) -> str:
        """The image with a wildcard for its tag or digest."""
        return IMAGE_TAG.sub(lambda match: f"{match[0][0]}*", get_text(self.container, "image"))


def measure_pods(reader: ObjectReader, profile: Profile, measurements: Measurements) -> None:
    """Measure all pods of a cluster; `profile` has wait patterns and default durations."""
    events_by_pod = _read_events(reader.list_objects(EVENT))
    for pod in reader.list_objects(POD):
        containers = list(_measured_containers(pod))
        events = events_by_pod.get(pod.uid, PodEventSummary({}, is_delayed=False))
        _measure_starts(pod, containers, events, profile, measurements)
        _measure_readiness(pod, containers, measurements)
        for measured in containers:
            _measure_run(reader, pod, measured, profile, measurements)


def _read_events(events: Iterable[StoredObject]) -> dict[str, PodEventSummary]:
    """Return the Events by pod uid."""
    by_pod: dict[str, PodEventSummary] = {}
    for event in events:
        regarding = get_mapping(event.body, "involvedObject")
        pulls, is_delayed = by_pod.get(
            get_text(regarding, "uid"), PodEventSummary({}, is_delayed=False)
        )
        reason, message = get_text(event.body, "reason"), get_text(event.body, "message")
        if reason == "Pulled":
            pull = _parse_pull(message)
            if pull is not None:
                pulls[get_text(regarding, "fieldPath")] = pull
        is_delayed = is_delayed or reason in DELAY_REASONS
        by_pod[get_text(regarding, "uid")] = PodEventSummary(pulls, is_delayed)
    return by_pod


def _parse_pull(message: str) -> Ms | None:
    """Return how long a container waited for its image, from a message of the kubelet, or None."""
    if IMAGE_PRESENT in message:
        return Ms(0)
    match = PULLED_MESSAGE.search(message)
    try:
        return parse_measured_duration(match[2] or match[1]) if match else None
    except ValueError:
        return None


def _measured_containers(pod: StoredObject) -> Iterator[MeasuredContainer]:
    for key, status_key in (
        ("initContainers", "initContainerStatuses"),
        ("containers", "containerStatuses"),
    ):
        statuses = {
            get_text(status, "name"): status
            for status in get_mappings(pod.body, "status", status_key)
        }
        for container in get_mappings(pod.body, "spec", key):
            name = get_text(container, "name")
            role = container_role(container, is_init=key == "initContainers")
            yield MeasuredContainer(container, statuses.get(name), role, f"spec.{key}{{{name}}}")


def _measure_starts(
    pod: StoredObject,
    containers: list[MeasuredContainer],
    events: PodEventSummary,
    profile: Profile,
    measurements: Measurements,
) -> None:
    """Measure from scheduling, or from the end of the previous container, to each start."""
    since = true_since(pod, "PodScheduled")
    for measured in containers:
        started_at, selector = measured.started_at, RuleSelector(image=measured.image_pattern)
        pull = events.pulls.get(measured.field_path)
        if pull is not None:
            measurements.record("pull", selector, pull)
        if started_at is not None and since is not None and not events.is_delayed:
            if pull is not None:
                measurements.record("start", selector, Ms(max(0, started_at - since - pull)))
            else:
                measurements.record(
                    "pull", selector, Ms(max(0, started_at - since - profile.durations.start))
                )
                measurements.skipped[
                    "pulls without Events: estimated from the start of the container"
                ] += 1
        if measured.role is ContainerRole.INIT:
            since = measured.finished_at
        elif measured.role is ContainerRole.SIDECAR:
            since = None if get_mapping(measured.container, "startupProbe") else measured.started_at


def _measure_readiness(
    pod: StoredObject, containers: list[MeasuredContainer], measurements: Measurements
) -> None:
    """Measure from the start of containers with a probe until the pod's containers are ready."""
    ready = true_since(pod, "ContainersReady")
    for measured in containers:
        started_at = measured.started_at
        has_probe = get_mapping(measured.container, "readinessProbe") or get_mapping(
            measured.container, "startupProbe"
        )
        if (
            ready is None
            or started_at is None
            or not has_probe
            or measured.role is ContainerRole.INIT
        ):
            continue
        if ready - started_at > MAX_READY_DURATION:
            measurements.skipped["pods that became ready more than once"] += 1
        else:
            measurements.record(
                "ready", RuleSelector(image=measured.image_pattern), Ms(ready - started_at)
            )


def _measure_run(
    reader: ObjectReader,
    pod: StoredObject,
    measured: MeasuredContainer,
    profile: Profile,
    measurements: Measurements,
) -> None:
    """Measure from start to end, for containers that terminate and do not wait for others."""
    state = get_mapping(measured.status, "state", "terminated")
    started_at, finished_at = read_timestamp(state.get("startedAt")), measured.finished_at
    policy = get_text(pod.body, "spec", "restartPolicy", default="Always")
    is_init = measured.role is ContainerRole.INIT
    if started_at is None or finished_at is None or (policy == "Always" and not is_init):
        return
    if is_polling(reader, pod, measured.container, profile):
        measurements.skipped["tasks that wait for a Service"] += 1
    elif container_waits(reader, pod, measured.container):
        measurements.skipped["tasks that wait for objects"] += 1
    elif is_init:
        selector = RuleSelector(
            container=get_text(measured.container, "name"), image=measured.image_pattern
        )
        measurements.record("init", selector, Ms(finished_at - started_at))
    elif measured.role is ContainerRole.MAIN:
        measurements.record("run", _task_selector(reader, pod), Ms(finished_at - started_at))


def _task_selector(reader: ObjectReader, pod: StoredObject) -> RuleSelector:
    """Return a selector for the pod's top-level owner, such as a CronJob or Job, or for the pod."""
    owner, selector = controller_ref(pod), RuleSelector("Pod", pod.ref.name)
    while owner is not None:
        selector = RuleSelector(owner.kind.name, owner.name)
        stored = reader.get(owner)
        owner = controller_ref(stored) if stored is not None else None
    return selector


def true_since(stored: StoredObject, name: str) -> Ms | None:
    """Return since when a condition of an object is true, or None."""
    for condition in get_mappings(stored.body, "status", "conditions"):
        if condition.get("type") == name and condition.get("status") == "True":
            return read_timestamp(condition.get("lastTransitionTime"))
    return None
