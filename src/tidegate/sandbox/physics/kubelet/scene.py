"""One container on its stage: whose it is, what it is for, and what is said of its course.

Its probes are arithmetic: each is asked at its initial delay and then once in each period. It fails
while the container is not up, and succeeds from then on.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Json
from tidegate.model.reading import mapping, number, text
from tidegate.sandbox.controllers.reaction import Visible
from tidegate.sandbox.physics.kubelet.states import ContainerRole
from tidegate.sandbox.physics.profile import ContainerCourse, Profile
from tidegate.sandbox.server.store import Stored


class ContainerProbe(NamedTuple):
    """The numbers of a probe, with Kubernetes' own where it says none."""

    delay: Ms
    period: Ms
    failures: int
    successes: int

    def first_success(self, began: Ms, up: Ms) -> Ms:
        """The first question at or after the moment from which it succeeds."""
        first = began + self.delay
        missed = max(0, -(-(up - first) // self.period))
        return Ms(first + missed * self.period)

    def given_up(self, began: Ms, up: Ms | None) -> Ms | None:
        """When it has failed too often, if that is before it first succeeds."""
        first = began + self.delay
        last = Ms(first + (self.failures - 1) * self.period)
        if up is not None and self.first_success(began, up) <= last:
            return None
        return last


class Probing(NamedTuple):
    """The moments of one run of a container; None is never."""

    started: Ms | None
    ready: Ms | None
    killed: Ms | None
    killer: str = ""


def read_probe(container: Json, name: str) -> ContainerProbe | None:
    probe = mapping(container, name)
    if not probe:
        return None
    return ContainerProbe(
        Ms(number(probe, "initialDelaySeconds") * SECOND),
        Ms((number(probe, "periodSeconds") or 10) * SECOND),
        number(probe, "failureThreshold") or 3,
        number(probe, "successThreshold") or 1,
    )


def foresee(container: Json, began: Ms, up: Ms | None) -> Probing:
    """What the probes of a container that began then, and is up then, will come to."""
    startup = read_probe(container, "startupProbe")
    started: Ms | None = began
    if startup is not None:
        given_up = startup.given_up(began, up)
        if given_up is not None:
            return Probing(None, None, given_up, "startup")
        started = startup.first_success(began, up) if up is not None else None
    liveness = read_probe(container, "livenessProbe")
    killed = None
    if liveness is not None and startup is None:
        killed = liveness.given_up(began, up)
    return Probing(started, _ready(container, began, up, started), killed, "liveness")


def _ready(container: Json, began: Ms, up: Ms | None, started: Ms | None) -> Ms | None:
    if started is None:
        return None
    readiness = read_probe(container, "readinessProbe")
    if readiness is None:
        return started
    if up is None:
        return None
    # When a container has started, its readiness is asked at once, whatever the period.
    first = readiness.first_success(began, up) if started == began else started
    first = max(first, Ms(began + readiness.delay))
    return Ms(first + (readiness.successes - 1) * readiness.period)


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """One container, and all that decides how it goes on."""

    view: Visible
    pod: Stored
    profile: Profile
    container: Json
    course: ContainerCourse
    role: ContainerRole
    policy: str
    """The pod's own; init containers and sidecars read it their way."""
    earlier: int
    """How many pods failed at the same work before this one."""

    @property
    def image(self) -> str:
        return text(self.container, "image")

    @property
    def is_endless(self) -> bool:
        return self.role is ContainerRole.SIDECAR or (
            self.role is ContainerRole.MAIN and self.policy == "Always"
        )

    def restarts_after(self, code: int) -> bool:
        match self.role:
            case ContainerRole.SIDECAR:
                return True
            case ContainerRole.INIT:
                return code != 0 and self.policy != "Never"
            case ContainerRole.MAIN:
                return self.policy == "Always" or (self.policy == "OnFailure" and code != 0)

    def probing(self, began: Ms) -> Probing:
        up = Ms(began + self.course.ready + self.course.slow)
        return foresee(self.container, began, up)
