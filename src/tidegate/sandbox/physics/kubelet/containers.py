"""One container: created, running, ended, started again; each look takes it as far as time is."""

from __future__ import annotations

from typing import NamedTuple

from tidegate.model.moment import MINUTE, SECOND, Ms, format_duration
from tidegate.sandbox.physics.kubelet import states
from tidegate.sandbox.physics.kubelet.exits import Exit, foresee_exit
from tidegate.sandbox.physics.kubelet.needs import missing_setting
from tidegate.sandbox.physics.kubelet.scene import Probing, Scene
from tidegate.sandbox.physics.kubelet.schedule import TERMINATED
from tidegate.sandbox.physics.profile import ContainerCourse

FIRST_PAUSE, LONGEST_PAUSE = Ms(10 * SECOND), Ms(300 * SECOND)
STABLE = Ms(10 * MINUTE)
"""A container that ran so long begins its back-off anew."""
UNSETTLED = "CreateContainerConfigError"
PULLING = (states.CREATING, "ErrImagePull", "ImagePullBackOff")
"""Why a container waits that has run before: for another image."""
KILLED = 137
ASK_AGAIN = Ms(10 * SECOND)
"""How often a kubelet looks whether what it missed is there."""


class Note(NamedTuple):
    """Something for an Event; an assumption of ours is told as such."""

    reason: str
    message: str
    is_assumed: bool = False


class ContainerStep(NamedTuple):
    """What has become of a container, when to look again, and what there is to say."""

    box: states.Box
    alarm: Ms | None = None
    notes: tuple[Note, ...] = ()
    lines: tuple[str, ...] = ()
    assumes: tuple[str, ...] = ()


def advance(scene: Scene, box: states.Box, since: Ms | None, now: Ms) -> ContainerStep:
    """Take a container to where it is at this moment; `since` is when it may have begun."""
    if box.image != scene.image and scene.role is not states.ContainerRole.INIT:
        return _exchange(scene, box, since, now)
    match box.state:
        case states.Waiting():
            last = box.last
            return _begin(scene, box, since, now) if last is None else _again(scene, box, last, now)
        case states.Running():
            return _run(scene, box, box.state.began, now)
        case states.Terminated():
            return _rest(scene, box, box.state, now)


def _begin(scene: Scene, box: states.Box, since: Ms | None, now: Ms) -> ContainerStep:
    if since is None:
        return ContainerStep(box)
    course = scene.course
    pulled = Ms(since + course.pull)
    if course.unpullable:
        attempt = _pull(box, course, since, now)
        if isinstance(attempt, ContainerStep):
            return attempt
        pulled = attempt
    begins = Ms(pulled + course.start)
    if now < begins:
        return ContainerStep(box, begins)
    return _restart(scene, box, box.last, now) if box.last else _create(scene, box, now)


def _exchange(scene: Scene, box: states.Box, since: Ms | None, now: Ms) -> ContainerStep:
    """An image that is changed in place: its container ends, and begins anew without a pause."""
    fresh = box._replace(image=scene.image)
    match box.state:
        case states.Running():
            ended = states.Terminated(
                TERMINATED, "Error", "", box.state.began, states.whole_second(now)
            )
            gone = fresh._replace(
                state=states.Waiting(states.CREATING), last=ended, started=False, ready=False
            )
            step = _begin(scene, gone, ended.finished, now)
            said = Note("Killing", f"Container {box.name} definition changed, will be restarted")
            assumes = (states.ENDED_BY_SIGNAL, *step.assumes)
            return step._replace(notes=(said, *step.notes), assumes=assumes)
        case states.Waiting() if box.last is not None:
            return _begin(
                scene, fresh._replace(state=states.Waiting(states.CREATING)), box.last.finished, now
            )
        case states.Waiting():
            return _begin(scene, fresh, since, now)
        case states.Terminated() if scene.restarts_after(box.state.code):
            return _rest(scene, fresh, box.state, now)
        case states.Terminated():
            return ContainerStep(box)


def _create(scene: Scene, box: states.Box, now: Ms) -> ContainerStep:
    """An image is there; without the settings it still does not become a container."""
    trouble = missing_setting(scene.view, scene.pod, scene.container)
    if trouble:
        held = box._replace(state=states.Waiting(UNSETTLED, trouble))
        return ContainerStep(held, Ms(now + ASK_AGAIN), (Note("Failed", f"Error: {trouble}"),))
    began = states.whole_second(now)
    step = _run(scene, box._replace(state=states.Running(began)), began, now)
    return step._replace(
        lines=(*scene.course.lines, *step.lines),
        assumes=(*states.assumed_of_start(scene.container), *step.assumes),
    )


def _pull(box: states.Box, course: ContainerCourse, since: Ms, now: Ms) -> ContainerStep | Ms:
    """Where the pulling of an image that cannot be had is, or when it was had."""
    attempt, pause = Ms(since + course.pull), FIRST_PAUSE
    first = attempt
    while True:
        if course.pullable_after is not None and attempt >= since + course.pullable_after:
            return attempt
        following = Ms(attempt + pause)
        if following > now:
            break
        attempt, pause = following, min(Ms(pause * 2), LONGEST_PAUSE)
    image = box.image
    if now < first:
        return ContainerStep(box, first)
    absent = f'failed to pull and unpack image "{image}": not found'
    alarm = following if course.pullable_after is not None else None
    if now < first + SECOND:
        failed = box._replace(state=states.Waiting("ErrImagePull", absent))
        note = Note("Failed", f'Failed to pull image "{image}": {absent}')
        return ContainerStep(failed, Ms(first + SECOND), (note,))
    told = f'Back-off pulling image "{image}": ErrImagePull: {absent}'
    return ContainerStep(box._replace(state=states.Waiting("ImagePullBackOff", told)), alarm)


def _run(scene: Scene, box: states.Box, began: Ms, now: Ms) -> ContainerStep:
    """A running container: what its probes say by now, and whether it has ended."""
    probing = scene.probing(began)
    leaving = foresee_exit(scene, box, began, now)
    exit_ = _killed(leaving.exit, probing, box.name)
    if exit_ is not None and exit_.moment <= now:
        return _end(scene, box, exit_, now)
    if scene.role is states.ContainerRole.INIT:
        ready_alarm, box = None, box._replace(started=False, ready=False)
    else:
        box, ready_alarm = _probe(scene, box, probing, now)
    alarms = (exit_.moment if exit_ else None, leaving.alarm, ready_alarm)
    alarm = min((one for one in alarms if one is not None), default=None)
    notes = (Note("Assumed", leaving.assumed, is_assumed=True),) if leaving.assumed else ()
    return ContainerStep(box, alarm, notes, assumes=leaving.assumes)


def _killed(exit_: Exit | None, probing: Probing, name: str) -> Exit | None:
    if probing.killed is None or (exit_ is not None and exit_.moment < probing.killed):
        return exit_
    said = f"Container {name} failed {probing.killer} probe, will be restarted"
    assumes = (states.PROBES_FOLLOW, states.KILLED_BY_PROBE)
    why = f"killed by its {probing.killer} probe {states.in_words(*assumes)}"
    return Exit(probing.killed, KILLED, why, killing=said, assumes=assumes)


def _probe(
    scene: Scene, box: states.Box, probing: Probing, now: Ms
) -> tuple[states.Box, Ms | None]:
    """Whether a container counts as started and ready now, and when that changes next."""
    course = scene.course
    ready_from = None if course.never_ready else probing.ready
    started = probing.started is not None and probing.started <= now
    ready = started and ready_from is not None and ready_from <= now
    coming = [one for one in (probing.started, ready_from) if one is not None and one > now]
    if ready and course.flaps and ready_from is not None:
        turns = (now - ready_from) // course.flaps
        ready = turns % 2 == 0
        coming.append(Ms(ready_from + (turns + 1) * course.flaps))
    return box._replace(started=started, ready=ready), min(coming, default=None)


def _end(scene: Scene, box: states.Box, exit_: Exit, now: Ms) -> ContainerStep:
    began = box.state.began if isinstance(box.state, states.Running) else now
    reason = "Error" if exit_.code else "Completed"
    ended = states.Terminated(exit_.code, reason, exit_.message, began, states.whole_second(now))
    is_done = scene.role is states.ContainerRole.INIT and exit_.code == 0
    notes = (Note("Unhealthy", exit_.killing), Note("Killing", exit_.killing))
    over = box._replace(state=ended, started=False, ready=is_done)
    step = _rest(scene, over, ended, now)
    if step.box.restarts > over.restarts:
        # The next run is another look: what this one has said must be told first.
        step = ContainerStep(over, now)
    assumed = (Note("Assumed", exit_.message, is_assumed=True),) if exit_.assumes else ()
    told = (*(notes if exit_.killing else ()), *assumed, *step.notes)
    return step._replace(notes=told, lines=exit_.lines, assumes=exit_.assumes)


def _rest(scene: Scene, box: states.Box, ended: states.Terminated, now: Ms) -> ContainerStep:
    """A container that has ended stays so, or waits to be started again."""
    if not scene.restarts_after(ended.code):
        return ContainerStep(box)
    pause = pause_before_restart(box.restarts, ended)
    due = Ms(ended.finished + (pause or scene.course.start))
    if not pause:
        return _restart(scene, box, ended, now) if due <= now else ContainerStep(box, due)
    pod = f"{scene.pod.ref.name}_{scene.pod.ref.namespace}({scene.pod.uid})"
    told = f"back-off {format_duration(pause)} restarting failed container={box.name} pod={pod}"
    waiting = states.Waiting("CrashLoopBackOff", told)
    note = Note("BackOff", f"Back-off restarting failed container {box.name} in pod {pod}")
    return ContainerStep(box._replace(state=waiting, last=ended), due, (note,))


def _again(scene: Scene, box: states.Box, last: states.Terminated, now: Ms) -> ContainerStep:
    if isinstance(box.state, states.Waiting) and box.state.reason in PULLING:
        return _begin(scene, box, last.finished, now)
    due = Ms(last.finished + pause_before_restart(box.restarts, last))
    return _restart(scene, box, last, now) if due <= now else ContainerStep(box, due)


def _restart(scene: Scene, box: states.Box, ended: states.Terminated, now: Ms) -> ContainerStep:
    step = _create(scene, box._replace(last=ended, restarts=box.restarts + 1), now)
    if isinstance(step.box.state, states.Waiting) and step.box.state.reason == UNSETTLED:
        return step._replace(box=step.box._replace(restarts=box.restarts))
    return step


def pause_before_restart(restarts: int, ended: states.Terminated) -> Ms:
    """None before the first restart, then ten seconds, doubled each time up to five minutes."""
    if not restarts or ended.finished - ended.began >= STABLE:
        return Ms(0)
    return Ms(min(FIRST_PAUSE * 2 ** min(restarts - 1, 10), LONGEST_PAUSE))
