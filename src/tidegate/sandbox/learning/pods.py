"""How long pods took: what their statuses and the Events of their kubelets tell.

Only the first run of a container counts: later ones find its image, and wait for their turn. Events
are gone after an hour; then the time until a container ran is told as a whole, and what is usual
for its start is taken off.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tidegate.model.moment import MINUTE, Ms, parse_measured
from tidegate.model.objects import Json
from tidegate.model.patterns import late
from tidegate.model.reading import mapping, mappings, number, text
from tidegate.sandbox.controllers.conditions import moment_of
from tidegate.sandbox.controllers.reaction import Visible
from tidegate.sandbox.controllers.writes import EVENT, controller_ref
from tidegate.sandbox.kinds import POD
from tidegate.sandbox.learning.measures import Measures, Whom
from tidegate.sandbox.physics.kubelet.awaiting import waits_of_container
from tidegate.sandbox.physics.kubelet.dialling import does_poll
from tidegate.sandbox.physics.kubelet.states import ContainerRole, role_of
from tidegate.sandbox.physics.profile import Profile
from tidegate.sandbox.server.store import Stored

PULLED = late(r'pulled image ".*" in (\S+?)(?: \((\S+) including waiting\))?[.,]?(?:\s|$)')
PRESENT = "already present on machine"
HELD_UP = frozenset(
    {"FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox", "Failed", "BackOff"}
)
"""Events of a pod that waited for something else than its image."""
LATEST_READY = Ms(10 * MINUTE)
"""Who is ready later has been ready before: a Deployment is given so long by default."""
TAG = late(r"(?<=[^/])(?:@|:(?=[^/]*$)).*")


class PodNews(NamedTuple):
    """What Events tell of a pod: how long each image was pulled, and whether it was held up."""

    pulls: dict[str, Ms]
    is_held_up: bool


class ContainerLife(NamedTuple):
    """One container of a pod, with what its status tells of its first run."""

    container: Json
    status: Json
    role: ContainerRole
    field_path: str

    @property
    def began(self) -> Ms | None:
        if number(self.status, "restartCount"):
            return None
        state = mapping(self.status, "state")
        ran = mapping(state, "running") or mapping(state, "terminated")
        return moment_of(ran.get("startedAt"))

    @property
    def ended(self) -> Ms | None:
        """When it had done its work."""
        end = mapping(self.status, "state", "terminated")
        return moment_of(end.get("finishedAt")) if end and not number(end, "exitCode") else None

    @property
    def image(self) -> str:
        return TAG.sub(lambda found: f"{found[0][0]}*", text(self.container, "image"))


def measure_pods(view: Visible, profile: Profile, measures: Measures) -> None:
    """All that the pods of a cluster tell; `profile` says what waits, and what a start takes."""
    told = _told(view.all_of(EVENT))
    for pod in view.all_of(POD):
        lives = list(_lives(pod))
        said = told.get(pod.uid, PodNews({}, is_held_up=False))
        _measure_beginnings(pod, lives, said, profile, measures)
        _measure_readiness(pod, lives, measures)
        for life in lives:
            _measure_work(view, pod, life, profile, measures)


def _told(events: Iterable[Stored]) -> dict[str, PodNews]:
    """By the pod's uid, what Events say."""
    found: dict[str, PodNews] = {}
    for event in events:
        about = mapping(event.body, "involvedObject")
        pulls, held_up = found.get(text(about, "uid"), PodNews({}, is_held_up=False))
        reason, message = text(event.body, "reason"), text(event.body, "message")
        if reason == "Pulled":
            span = _pull(message)
            if span is not None:
                pulls[text(about, "fieldPath")] = span
        held_up = held_up or reason in HELD_UP
        found[text(about, "uid")] = PodNews(pulls, held_up)
    return found


def _pull(message: str) -> Ms | None:
    """How long a container waited for its image, in the words of a kubelet."""
    if PRESENT in message:
        return Ms(0)
    found = PULLED.search(message)
    try:
        return parse_measured(found[2] or found[1]) if found else None
    except ValueError:
        return None


def _lives(pod: Stored) -> Iterator[ContainerLife]:
    for key, status_key in (
        ("initContainers", "initContainerStatuses"),
        ("containers", "containerStatuses"),
    ):
        told = {text(one, "name"): one for one in mappings(pod.body, "status", status_key)}
        for container in mappings(pod.body, "spec", key):
            name = text(container, "name")
            role = role_of(container, is_init=key == "initContainers")
            yield ContainerLife(container, told.get(name), role, f"spec.{key}{{{name}}}")


def _measure_beginnings(
    pod: Stored, lives: list[ContainerLife], said: PodNews, profile: Profile, measures: Measures
) -> None:
    """From its place, or from the end of what came before it, until each container ran."""
    since = _condition(pod, "PodScheduled")
    for life in lives:
        began, whom = life.began, Whom(image=life.image)
        pull = said.pulls.get(life.field_path)
        if pull is not None:
            measures.take("pull", whom, pull)
        if began is not None and since is not None and not said.is_held_up:
            if pull is not None:
                measures.take("start", whom, Ms(max(0, began - since - pull)))
            else:
                measures.take("pull", whom, Ms(max(0, began - since - profile.durations.start)))
                measures.left_out[
                    "pulls whose Events are gone: taken from when containers ran"
                ] += 1
        if life.role is ContainerRole.INIT:
            since = life.ended
        elif life.role is ContainerRole.SIDECAR:
            since = None if mapping(life.container, "startupProbe") else life.began


def _measure_readiness(pod: Stored, lives: list[ContainerLife], measures: Measures) -> None:
    """From its start until all was ready, for containers that have a probe."""
    ready = _condition(pod, "ContainersReady")
    for life in lives:
        began = life.began
        has_probe = mapping(life.container, "readinessProbe") or mapping(
            life.container, "startupProbe"
        )
        if ready is None or began is None or not has_probe or life.role is ContainerRole.INIT:
            continue
        if ready - began > LATEST_READY:
            measures.left_out["pods that were ready before, and again later"] += 1
        else:
            measures.take("ready", Whom(image=life.image), Ms(ready - began))


def _measure_work(
    view: Visible, pod: Stored, life: ContainerLife, profile: Profile, measures: Measures
) -> None:
    """From start to end, of containers that have something to do and do not wait for others."""
    state = mapping(life.status, "state", "terminated")
    began, ended = moment_of(state.get("startedAt")), life.ended
    policy = text(pod.body, "spec", "restartPolicy", default="Always")
    is_init = life.role is ContainerRole.INIT
    if began is None or ended is None or (policy == "Always" and not is_init):
        return
    if does_poll(view, pod, life.container, profile):
        measures.left_out["tasks that wait for a Service"] += 1
    elif waits_of_container(view, pod, life.container):
        measures.left_out["tasks that wait for objects"] += 1
    elif is_init:
        whom = Whom(container=text(life.container, "name"), image=life.image)
        measures.take("init", whom, Ms(ended - began))
    elif life.role is ContainerRole.MAIN:
        measures.take("run", _task(view, pod), Ms(ended - began))


def _task(view: Visible, pod: Stored) -> Whom:
    """Whose pod it is: of a CronJob, of a Job, or nobody's."""
    owner, found = controller_ref(pod), Whom("Pod", pod.ref.name)
    while owner is not None:
        found = Whom(owner.kind.name, owner.name)
        stored = view.get(owner)
        owner = controller_ref(stored) if stored is not None else None
    return found


def _condition(pod: Stored, name: str) -> Ms | None:
    """Since when a condition of a pod is true."""
    for one in mappings(pod.body, "status", "conditions"):
        if one.get("type") == name and one.get("status") == "True":
            return moment_of(one.get("lastTransitionTime"))
    return None
