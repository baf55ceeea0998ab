"""What containers have printed, run by run, and which run a reader is shown."""

from __future__ import annotations

from tidegate.model.objects import Json
from tidegate.model.reading import mapping, mappings, number, text
from tidegate.sandbox.server.store import Body, Stored
from tidegate.world.calls import Logs
from tidegate.world.facts import Invalid, Outcome, Said

REASONS = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}
"""What is said of a container that waits for its image instead of the reason in its status."""


class Printed:
    """Lines by the pod's uid, the container and the number of its run; the last two are kept."""

    def __init__(self) -> None:
        self._lines: dict[tuple[str, str, int], list[str]] = {}

    def add(self, uid: str, container: str, run: int, lines: tuple[str, ...]) -> None:
        self._lines.setdefault((uid, container, run), []).extend(lines)
        self._lines.pop((uid, container, run - 2), None)

    def read(self, pod: Stored, request: Logs) -> Outcome:
        """What was asked for, or why there is none."""
        chosen = _choose(pod, request.container)
        if isinstance(chosen, Invalid):
            return chosen
        run = _run(pod, chosen, previous=request.previous)
        if isinstance(run, Invalid):
            return run
        lines = self._lines.get((pod.uid, chosen, run), [])
        shown = lines[-request.tail :] if request.tail else lines
        return Said("".join(f"{line}\n" for line in shown).encode())


def _choose(pod: Stored, named: str) -> str | Invalid:
    """The container that is meant: the only one, where none is named."""
    mains, inits = _names(pod.body, "containers"), _names(pod.body, "initContainers")
    if named:
        told = f"container {named} is not valid for pod {pod.ref.name}"
        return named if named in (*mains, *inits) else Invalid(told)
    if len(mains) == 1:
        return mains[0]
    told = f"a container name must be specified for pod {pod.ref.name}"
    if mains:
        told += f", choose one of: [{' '.join(mains)}]"
    if inits:
        told += f" or one of the init containers: [{' '.join(inits)}]"
    return Invalid(told)


def _names(pod: Body, key: str) -> list[str]:
    return [text(one, "name") for one in mappings(pod, "spec", key)]


def _run(pod: Stored, container: str, *, previous: bool) -> int | Invalid:
    """Which run of a container is shown. One that waits to be started again shows its last."""
    status = _status(pod.body, container)
    restarts, last = number(status, "restartCount"), mapping(status, "lastState", "terminated")
    waiting = mapping(status, "state", "waiting")
    where = f'container "{container}" in pod "{pod.ref.name}"'
    if previous and not last:
        return Invalid(f"previous terminated {where} not found")
    if waiting and not last:
        reason = text(waiting, "reason")
        return Invalid(f"{where} is waiting to start: {REASONS.get(reason, reason)}")
    return restarts - 1 if previous and not waiting else restarts


def _status(pod: Body, container: str) -> dict[str, Json]:
    """What is known of a container; nothing, of one that nobody has begun."""
    for key in ("containerStatuses", "initContainerStatuses"):
        for one in mappings(pod, "status", key):
            if text(one, "name") == container:
                return one
    return {}
