"""A pod's phase and conditions, told from its containers as a kubelet tells them."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.model.moment import Ms
from tidegate.model.reading import mappings, text
from tidegate.sandbox.physics.kubelet import states
from tidegate.sandbox.physics.kubelet.scene import Scene
from tidegate.sandbox.server.lifecycle import timestamp
from tidegate.sandbox.server.store import Body, Stored

Cast = Sequence[tuple[Scene, states.Box]]
"""The containers of a pod, init containers first, each with its state."""

PREPARED = "PodReadyToStartContainers"
SCHEDULED = "PodScheduled"
OWN = (PREPARED, "Initialized", "Ready", "ContainersReady")
TRUE: Body = {"status": "True"}
FALSE: Body = {"status": "False"}


def phase_of(cast: Cast) -> str:
    """Pending until everything has begun once; over when nothing will begin again."""
    for scene, box in cast:
        ended = _last_end(box)
        if scene.role is states.ContainerRole.INIT and ended and ended.code:
            if not scene.restarts_after(ended.code):
                return "Failed"
            return "Pending"
    if any(_is_pending(scene, box) for scene, box in cast):
        return "Pending"
    mains = [(scene, box) for scene, box in cast if scene.role is states.ContainerRole.MAIN]
    ends = [_last_end(box) for _, box in mains if not _is_going_on(box)]
    if len(ends) < len(mains) or any(
        ended and scene.restarts_after(ended.code)
        for (scene, _), ended in zip(mains, ends, strict=True)
    ):
        return "Running"
    return "Failed" if any(ended and ended.code for ended in ends) else "Succeeded"


def _is_pending(scene: Scene, box: states.Box) -> bool:
    match scene.role:
        case states.ContainerRole.INIT:
            return not isinstance(box.state, states.Terminated)
        case states.ContainerRole.SIDECAR:
            return (
                box.last is None
                and not isinstance(box.state, states.Terminated)
                and not box.started
            )
        case states.ContainerRole.MAIN:
            return isinstance(box.state, states.Waiting) and box.last is None


def _is_going_on(box: states.Box) -> bool:
    """Running, or about to run another image."""
    waits = isinstance(box.state, states.Waiting) and box.state.reason == states.CREATING
    return isinstance(box.state, states.Running) or waits


def _last_end(box: states.Box) -> states.Terminated | None:
    if isinstance(box.state, states.Terminated):
        return box.state
    return box.last if isinstance(box.state, states.Waiting) else None


def write_conditions(
    pod: Stored, cast: Cast, phase: str, known: dict[str, Body], *, since: Ms | None, now: Ms
) -> list[Body]:
    """All conditions: the kubelet's own by what is true now, those of others as they are.

    `since`: when the volumes of the pod were there, None while they are not.
    """
    is_prepared = since is not None and phase not in ("Succeeded", "Failed")
    readiness = _containers_ready(cast, phase)
    begun = now if since is None else since
    wanted: tuple[tuple[str, Body, Ms], ...] = (
        (PREPARED, TRUE if is_prepared else FALSE, begun if is_prepared else now),
        ("Initialized", _initialized(cast, phase), now),
        ("Ready", _gated(pod, known) if readiness is TRUE else readiness, now),
        ("ContainersReady", readiness, now),
    )
    others = [one for name, one in known.items() if name not in OWN]
    if SCHEDULED not in known:
        # Nobody has to schedule a pod that was made for its node.
        others.append(_dated(SCHEDULED, None, TRUE, begun))
    return [*(_dated(name, known.get(name), said, at) for name, said, at in wanted), *others]


def _dated(name: str, known: Body | None, said: Body, moment: Ms) -> Body:
    if known is not None and known.get("status") == said["status"]:
        return {"type": name, **said, "lastTransitionTime": known.get("lastTransitionTime")}
    return {"type": name, **said, "lastTransitionTime": timestamp(moment)}


def _initialized(cast: Cast, phase: str) -> Body:
    if phase == "Succeeded":
        return {**TRUE, "reason": "PodCompleted"}
    has_begun = any(
        scene.role is states.ContainerRole.MAIN
        and (box.last or not isinstance(box.state, states.Waiting))
        for scene, box in cast
    )
    open_ = [box.name for scene, box in cast if not has_begun and _is_open(scene, box)]
    if not open_:
        return TRUE
    told = f"containers with incomplete status: [{' '.join(open_)}]"
    return {**FALSE, "reason": "ContainersNotInitialized", "message": told}


def _is_open(scene: Scene, box: states.Box) -> bool:
    if scene.role is states.ContainerRole.SIDECAR:
        return not box.started
    return scene.role is states.ContainerRole.INIT and not box.ready


def _containers_ready(cast: Cast, phase: str) -> Body:
    if phase in ("Succeeded", "Failed"):
        return {**FALSE, "reason": "PodCompleted" if phase == "Succeeded" else "PodFailed"}
    unready = [
        box.name
        for scene, box in cast
        if scene.role is not states.ContainerRole.INIT and not box.ready
    ]
    if not unready:
        return TRUE
    told = f"containers with unready status: [{' '.join(unready)}]"
    return {**FALSE, "reason": "ContainersNotReady", "message": told}


def _gated(pod: Stored, known: dict[str, Body]) -> Body:
    """What a pod's readiness gates leave of its readiness."""
    troubles = []
    for gate in mappings(pod.body, "spec", "readinessGates"):
        name = text(gate, "conditionType")
        condition = known.get(name)
        if condition is None:
            told = f'corresponding condition of pod readiness gate "{name}" does not exist.'
            troubles.append(told)
        elif condition.get("status") != "True":
            told = f'the status of pod readiness gate "{name}" is not "True"'
            troubles.append(f"{told}, but {condition.get('status')}")
    if not troubles:
        return TRUE
    return {**FALSE, "reason": "ReadinessGatesNotReady", "message": ", ".join(troubles)}
