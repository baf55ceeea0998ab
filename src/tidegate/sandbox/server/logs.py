"""Container logs by run, and the run that a client reads."""

from __future__ import annotations

from tidegate.model.k8s.json_fields import get_int, get_mapping, get_mappings, get_text
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.sandbox.server.store import StoredObject
from tidegate.world.messages import Invalid, Outcome, RawResponse
from tidegate.world.requests import Logs

IMAGE_MESSAGES = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}
"""Messages for a container that waits for its image, by the reason in its status.

Like `validateContainerLogStatus` in `pkg/kubelet/kubelet_pods.go` of Kubernetes 1.36.4.
"""


class ContainerLogs:
    """Log lines by pod uid, container and run; the last two runs are kept."""

    def __init__(self) -> None:
        self._lines: dict[tuple[str, str, int], list[str]] = {}

    def add(self, uid: str, container: str, run: int, lines: tuple[str, ...]) -> None:
        """Append lines to the log of a run."""
        self._lines.setdefault((uid, container, run), []).extend(lines)
        self._lines.pop((uid, container, run - 2), None)

    def read(self, pod: StoredObject, request: Logs) -> Outcome:
        """Return the requested log lines, or an error."""
        container = _choose_container(pod, request.container)
        if isinstance(container, Invalid):
            return container
        run = _choose_run(pod, container, previous=request.previous)
        if isinstance(run, Invalid):
            return run
        lines = self._lines.get((pod.uid, container, run), [])
        tail = lines[-request.tail :] if request.tail else lines
        return RawResponse("".join(f"{line}\n" for line in tail).encode())


def _choose_container(pod: StoredObject, requested: str) -> str | Invalid:
    """Return the requested container, or the only one if none is requested.

    Like `LogLocation` in `pkg/registry/core/pod/strategy.go` of Kubernetes 1.36.4.
    """
    containers, init_containers = (
        _container_names(pod.body, "containers"),
        _container_names(pod.body, "initContainers"),
    )
    if requested:
        message = f"container {requested} is not valid for pod {pod.ref.name}"
        return requested if requested in (*containers, *init_containers) else Invalid(message)
    if len(containers) == 1:
        return containers[0]
    message = f"a container name must be specified for pod {pod.ref.name}"
    if containers:
        message += f", choose one of: [{' '.join(containers)}]"
    if init_containers:
        message += f" or one of the init containers: [{' '.join(init_containers)}]"
    return Invalid(message)


def _container_names(pod: JsonObject, key: str) -> list[str]:
    return [get_text(container, "name") for container in get_mappings(pod, "spec", key)]


def _choose_run(pod: StoredObject, container: str, *, previous: bool) -> int | Invalid:
    """Return the number of the run to show: the last one, while a container waits for a restart.

    Like `validateContainerLogStatus` in `pkg/kubelet/kubelet_pods.go` of Kubernetes 1.36.4.
    """
    status = _container_status(pod.body, container)
    restarts, last_terminated = (
        get_int(status, "restartCount"),
        get_mapping(status, "lastState", "terminated"),
    )
    waiting = get_mapping(status, "state", "waiting")
    subject = f'container "{container}" in pod "{pod.ref.name}"'
    if previous and not last_terminated:
        return Invalid(f"previous terminated {subject} not found")
    if waiting and not last_terminated:
        reason = get_text(waiting, "reason")
        return Invalid(f"{subject} is waiting to start: {IMAGE_MESSAGES.get(reason, reason)}")
    return restarts - 1 if previous and not waiting else restarts


def _container_status(pod: JsonObject, container: str) -> dict[str, Json]:
    """Return the status of a container; empty if it was not started yet."""
    for key in ("containerStatuses", "initContainerStatuses"):
        for status in get_mappings(pod, "status", key):
            if get_text(status, "name") == container:
                return status
    return {}
