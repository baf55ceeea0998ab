"""One container on its stage: whose it is, what it is for, and what is said of its course."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.model.moment import Ms
from tidegate.model.objects import Json
from tidegate.model.reading import text
from tidegate.sandbox.controllers.reaction import Sight
from tidegate.sandbox.physics.course import Course, Profile
from tidegate.sandbox.physics.kubelet.probes import Probing, foresee
from tidegate.sandbox.physics.kubelet.states import Role
from tidegate.sandbox.server.store import Stored


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One container, and all that decides how it goes on."""

    view: Sight
    pod: Stored
    profile: Profile
    container: Json
    course: Course
    role: Role
    policy: str
    """The pod's own; init containers and sidecars read it their way."""
    earlier: int
    """How many pods failed at the same work before this one."""

    @property
    def image(self) -> str:
        return text(self.container, "image")

    @property
    def is_endless(self) -> bool:
        return self.role is Role.SIDECAR or (self.role is Role.MAIN and self.policy == "Always")

    def restarts_after(self, code: int) -> bool:
        match self.role:
            case Role.SIDECAR:
                return True
            case Role.INIT:
                return code != 0 and self.policy != "Never"
            case Role.MAIN:
                return self.policy == "Always" or (self.policy == "OnFailure" and code != 0)

    def probing(self, began: Ms) -> Probing:
        up = Ms(began + self.course.ready + self.course.slow)
        return foresee(self.container, began, up)
