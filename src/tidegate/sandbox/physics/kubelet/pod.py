"""The kubelet: looks at one pod and does what is due. Nothing is kept between two looks.

What time it is for a pod stands in its status: when it was bound, when each container began and
ended. What comes next follows from that, from the profile, and from what the pod needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from tidegate.model.moment import SECOND, Ms, format_duration
from tidegate.model.objects import Json, Ref
from tidegate.model.reading import mapping, mappings, number, part, text
from tidegate.sandbox.controllers.conditions import moment_of
from tidegate.sandbox.controllers.reaction import At, Controller, Looking, Print, Visible
from tidegate.sandbox.controllers.writes import Voice, controller_ref, patch
from tidegate.sandbox.kinds import POD
from tidegate.sandbox.physics.kubelet import states
from tidegate.sandbox.physics.kubelet.conditions import (
    PREPARED,
    SCHEDULED,
    phase_of,
    write_conditions,
)
from tidegate.sandbox.physics.kubelet.containers import ContainerStep, Note, advance
from tidegate.sandbox.physics.kubelet.needs import missing_volume
from tidegate.sandbox.physics.kubelet.scene import Scene
from tidegate.sandbox.physics.kubelet.schedule import TERMINATED, end, schedule
from tidegate.sandbox.physics.kubelet.states import ENDED_BY_SIGNAL, mark
from tidegate.sandbox.physics.profile import Courses, Named, Profile, Subject
from tidegate.sandbox.server.lifecycle import timestamp
from tidegate.sandbox.server.store import Body, Stored, Transition
from tidegate.world.calls import Write
from tidegate.world.facts import Change, is_refusal

KUBELET = "kubelet"
VOICE = Voice(KUBELET)
OVER = ("Succeeded", "Failed")
HOST_ADDRESS = "10.0.0.1"
LONGEST_MOUNT_PAUSE = Ms(122 * SECOND)
OVERDUE = "Pod was active on the node longer than the specified deadline"


LOOK_AGAIN = Ms(5 * SECOND)
"""How often a pod is looked at that somebody has to set free."""

Held: TypeAlias = Callable[[Visible, Stored], str]


def kubelet(
    profile: Profile, *, held: Held = lambda _view, _pod: "", announces: bool = False
) -> Controller:
    """A scheduler and a kubelet in one, which take as long as this profile says.

    `held` tells why a pod that runs cannot be ready yet: a store that nobody has unsealed. One that
    `announces` tells how long images were pulled, for whoever looks at the cluster from outside.
    """
    courses = Courses(profile)

    def react(view: Visible, ref: Ref, now: Ms) -> Looking:
        pod = view.get(ref)
        if pod is None:
            return
        scenes = _scenes(view, pod, profile, courses)
        if pod.is_deleting:
            yield from end(pod, Ms(max((one.course.stop for one in scenes), default=0)), now)
        elif text(pod.body, "status", "phase") in OVER:
            return
        elif not text(pod.body, "spec", "nodeName"):
            why_not = next((one.course.unschedulable for one in scenes), "")
            yield from schedule(view, pod, why_not, now)
        else:
            why = held(view, pod)
            if why:
                scenes = [
                    replace(one, course=msgspec.structs.replace(one.course, never_ready=True))
                    for one in scenes
                ]
                yield At(Ms(now + LOOK_AGAIN))
            yield from _live(view, pod, scenes, now, announces=announces)

    return Controller(KUBELET, react, _concerns, kinds=(POD,))


def _scenes(view: Visible, pod: Stored, profile: Profile, courses: Courses) -> list[Scene]:
    owners = tuple(_owners(view, pod))
    policy = text(pod.body, "spec", "restartPolicy", default="Always")
    owner = controller_ref(pod)
    job = view.get(owner) if owner is not None and owner.kind.name == "Job" else None
    earlier = number(job.body, "status", "failed") if job else 0
    return [
        Scene(
            view=view,
            pod=pod,
            profile=profile,
            container=container,
            course=courses.of(
                Subject(
                    owners, pod.ref.namespace, text(container, "name"), text(container, "image")
                )
            ),
            role=states.role_of(container, is_init=is_init),
            policy=policy,
            earlier=earlier,
        )
        for key, is_init in (("initContainers", True), ("containers", False))
        for container in mappings(pod.body, "spec", key)
    ]


def _owners(view: Visible, pod: Stored) -> Iterator[Named]:
    """The pod, and what controls it, up to the object that a person wrote."""
    stored: Stored | None = pod
    while stored is not None:
        yield Named(stored.ref.kind.name, stored.ref.name)
        owner = controller_ref(stored)
        if owner is None:
            return
        stored = view.get(owner)
        if stored is None:
            yield Named(owner.kind.name, owner.name)


class _Look(msgspec.Struct):
    """What one look at a pod comes to."""

    pod: Stored
    scenes: list[Scene]
    now: Ms
    conditions: dict[str, Body]
    bound: Ms
    boxes: list[states.Box] = msgspec.field(default_factory=list)
    steps: list[ContainerStep] = msgspec.field(default_factory=list)
    alarms: list[Ms] = msgspec.field(default_factory=list)
    notes: list[Note] = msgspec.field(default_factory=list)


def _live(view: Visible, pod: Stored, scenes: list[Scene], now: Ms, *, announces: bool) -> Looking:
    """Everything that is due in a pod that has a node."""
    conditions = {text(one, "type"): one for one in mappings(pod.body, "status", "conditions")}
    look = _Look(pod, scenes, now, conditions, _bound(pod, conditions))
    since = _mounted(view, look)
    _advance_all(look, since)
    deadline = _deadline(look)
    is_overdue = deadline is not None and deadline <= now
    if is_overdue:
        look.steps = [_overdue(step, now) for step in look.steps]
    elif deadline is not None:
        look.alarms.append(deadline)
    changes: Body = {}
    if is_overdue or _is_news(look, since):
        status = _status(look, since, is_overdue=is_overdue)
        known = mapping(pod.body, "status")
        changes = {key: value for key, value in status.items() if known.get(key) != value}
    marks = mark(pod, (name for step in look.steps for name in step.assumes))
    if changes or marks:
        outcome = yield _write(pod, changes, marks)
        if outcome is None or is_refusal(outcome):
            yield At(Ms(now + SECOND))
            return
        yield from _print(look)
        if announces:
            yield from _announce(look)
    yield from _say(look, has_changed=bool(changes))
    alarms = [*look.alarms, *(step.alarm for step in look.steps if step.alarm is not None)]
    if alarms and changes.get("phase") not in OVER:
        yield At(min(alarms))


def _mounted(view: Visible, look: _Look) -> Ms | None:
    """When the volumes of a pod were there and its containers could begin; None if not yet."""
    known = look.conditions.get(PREPARED)
    if known is not None and known.get("status") == "True":
        return moment_of(known.get("lastTransitionTime"))
    volume, trouble = missing_volume(view, look.pod)
    if not trouble:
        return look.bound if known is None else states.whole_second(look.now)
    told = f'MountVolume.SetUp failed for volume "{volume}" : {trouble}'
    look.notes.append(Note("FailedMount", told))
    waited = look.now - look.bound
    look.alarms.append(Ms(look.now + min(max(waited, SECOND), LONGEST_MOUNT_PAUSE)))
    return None


def _bound(pod: Stored, conditions: dict[str, Body]) -> Ms:
    scheduled = conditions.get(SCHEDULED)
    found = moment_of(scheduled.get("lastTransitionTime")) if scheduled else None
    return found or moment_of(pod.metadata.get("creationTimestamp")) or Ms(0)


def _advance_all(look: _Look, since: Ms | None) -> None:
    """Init containers one after the other, then all others at once."""
    has_inits = any(scene.role is not states.ContainerRole.MAIN for scene in look.scenes)
    told = {
        text(one, "name"): one
        for key in ("initContainerStatuses", "containerStatuses")
        for one in mappings(look.pod.body, "status", key)
    }
    for scene in look.scenes:
        name = text(scene.container, "name")
        box = states.read_box(
            scene.container, told.get(name), states.INITIALIZING if has_inits else states.CREATING
        )
        step = advance(scene, box, since, look.now)
        look.boxes.append(box)
        look.steps.append(step)
        if scene.role is not states.ContainerRole.MAIN and since is not None:
            passed = _passed(scene, step.box, look.now)
            since = max(since, passed) if passed is not None else None
    _end_sidecars(look)


def _end_sidecars(look: _Look) -> None:
    """Sidecars end when nobody is left whom they could serve."""
    played = list(zip(look.scenes, look.steps, strict=True))
    mains = [step for scene, step in played if scene.role is states.ContainerRole.MAIN]
    if all(isinstance(step.box.state, states.Terminated) and step.alarm is None for step in mains):
        look.steps = [
            step._replace(box=_ended(step.box, 0, look.now))
            if scene.role is states.ContainerRole.SIDECAR
            else step
            for scene, step in played
        ]


def _passed(scene: Scene, box: states.Box, now: Ms) -> Ms | None:
    """When an init container let the next one begin; None if it does not yet."""
    match box.state:
        case states.Terminated() if scene.role is states.ContainerRole.INIT and box.state.code == 0:
            return box.state.finished
        case states.Running() if scene.role is states.ContainerRole.SIDECAR:
            started = scene.probing(box.state.began).started
            return started if started is not None and started <= now else None
    return None


def _ended(box: states.Box, code: int, now: Ms) -> states.Box:
    """A running container that was made to end."""
    if not isinstance(box.state, states.Running):
        return box
    reason = "Error" if code else "Completed"
    ended = states.Terminated(code, reason, "", box.state.began, states.whole_second(now))
    return box._replace(state=ended, started=False, ready=False)


def _overdue(step: ContainerStep, now: Ms) -> ContainerStep:
    ended = _ended(step.box, TERMINATED, now)
    assumes = () if ended is step.box else (ENDED_BY_SIGNAL,)
    return step._replace(box=ended, assumes=(*step.assumes, *assumes))


def _deadline(look: _Look) -> Ms | None:
    seconds = number(look.pod.body, "spec", "activeDeadlineSeconds")
    return Ms(look.bound + seconds * SECOND) if seconds else None


def _status(look: _Look, since: Ms | None, *, is_overdue: bool) -> Body:
    cast = [(scene, step.box) for scene, step in zip(look.scenes, look.steps, strict=True)]
    phase = "Failed" if is_overdue else phase_of(cast)
    status: Body = {"phase": phase, "startTime": timestamp(look.bound)}
    if look.pod.generation:
        status["observedGeneration"] = look.pod.generation
    if is_overdue:
        status |= {"reason": "DeadlineExceeded", "message": OVERDUE}
    known = look.conditions
    conditions = write_conditions(look.pod, cast, phase, known, since=since, now=look.now)
    status["conditions"] = [*conditions]
    inits = [
        states.write_box(box) for scene, box in cast if scene.role is not states.ContainerRole.MAIN
    ]
    if inits:
        status["initContainerStatuses"] = [*inits]
    status["containerStatuses"] = [
        states.write_box(box) for scene, box in cast if scene.role is states.ContainerRole.MAIN
    ]
    return status | _addresses(look.pod, is_held=since is None)


def _addresses(pod: Stored, *, is_held: bool) -> Body:
    found: Body = {"hostIP": HOST_ADDRESS, "hostIPs": [{"ip": HOST_ADDRESS}]}
    if is_held:
        return found
    own = HOST_ADDRESS
    if part(pod.body, "spec", "hostNetwork") is not True:
        drawn = int(pod.uid[:6] or "0", 16)
        own = f"10.{128 + (drawn >> 16) % 128}.{drawn >> 8 & 255}.{drawn & 255}"
    return found | {"podIP": own, "podIPs": [{"ip": own}]}


def _is_news(look: _Look, since: Ms | None) -> bool:
    """Whether a status has to be written. That everything is still to come is not worth it."""
    if look.boxes != [step.box for step in look.steps]:
        return True
    known = look.conditions.get(PREPARED)
    if known is None:
        return since is None
    is_prepared = known.get("status") == "True"
    return is_prepared == (since is None) or bool(mappings(look.pod.body, "spec", "readinessGates"))


def _write(pod: Stored, changes: Body, marks: Body) -> Write:
    """A status, and what it rests on."""
    parts: Body = {"metadata": marks} if marks else {}
    return patch(pod, {**parts, "status": changes}, subresource="status", manager=KUBELET)


def _print(look: _Look) -> Looking:
    for step in look.steps:
        if step.lines:
            yield Print(look.pod.uid, step.box.name, step.box.restarts, step.lines)


def _announce(look: _Look) -> Looking:
    """What was pulled for containers that run for the first time, and when."""
    for scene, box, step in zip(look.scenes, look.boxes, look.steps, strict=True):
        has_waited = isinstance(box.state, states.Waiting) and box.last is None
        if has_waited and isinstance(step.box.state, states.Running):
            course, began = scene.course, step.box.state.began
            span = format_duration(course.pull)
            told = f'Successfully pulled image "{box.image}" in {span} ({span} including waiting).'
            key = "containers" if scene.role is states.ContainerRole.MAIN else "initContainers"
            spot = f"spec.{key}{{{box.name}}}"
            yield VOICE.tell(look.pod, "Pulled", told, Ms(began - course.start), at=spot)


def _say(look: _Look, *, has_changed: bool) -> Looking:
    """The Events of what has just been written. What is assumed is told anyway."""
    for note in (*look.notes, *(note for step in look.steps for note in step.notes)):
        if has_changed or note.is_assumed:
            speak = VOICE.tell if note.is_assumed else VOICE.warn
            yield speak(look.pod, note.reason, note.message, look.now)


def _concerns(_view: Visible, event: Transition) -> Iterator[Ref]:
    """New pods, and changes that are not a kubelet's own."""
    stored, before = event.stored, event.before
    if stored.ref.kind != POD or event.change is Change.DELETED:
        return
    is_others = before is None or stored.is_deleting or _spec(before) is not _spec(stored)
    if is_others or mappings(stored.body, "spec", "readinessGates"):
        yield stored.ref


def _spec(stored: Stored) -> Json:
    return stored.body.get("spec")
