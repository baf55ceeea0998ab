"""Context of a container: its pod, its role and its profile.

Probes are computed: each runs at its initial delay and then once in each period. It fails while
the container is not up, and succeeds from then on.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from tidegate.model.k8s.json_fields import get_int, get_mapping, get_text
from tidegate.model.k8s.objects import Json
from tidegate.model.times import SECOND, Ms
from tidegate.sandbox.controllers.interface import ObjectReader
from tidegate.sandbox.node.kubelet.states import ContainerRole
from tidegate.sandbox.node.profile import ContainerProfile, Profile
from tidegate.sandbox.server.store import StoredObject


class ContainerProbe(NamedTuple):
    """The numbers of a probe, with the defaults of Kubernetes.

    Like `SetDefaults_Probe` in `pkg/apis/core/v1/defaults.go` of Kubernetes 1.36.4.
    """

    delay: Ms
    """`initialDelaySeconds` as a duration."""
    period: Ms
    """`periodSeconds` as a duration."""
    failures: int
    """`failureThreshold`."""
    successes: int
    """`successThreshold`."""

    def first_success(self, started_at: Ms, up_at: Ms) -> Ms:
        """Return the time of the first probe at or after the time the container is up."""
        first = started_at + self.delay
        missed = max(0, -(-(up_at - first) // self.period))
        return Ms(first + missed * self.period)

    def failure_time(self, started_at: Ms, up_at: Ms | None) -> Ms | None:
        """Return when the failure threshold is reached; None if a success comes first."""
        first = started_at + self.delay
        last = Ms(first + (self.failures - 1) * self.period)
        if up_at is not None and self.first_success(started_at, up_at) <= last:
            return None
        return last


class ProbeTimes(NamedTuple):
    """Times of the probe results in one run of a container; None is never."""

    started: Ms | None
    """When the startup probe succeeds."""
    ready: Ms | None
    """When the readiness probe succeeds."""
    killed: Ms | None
    """When a failed probe kills the container."""
    killed_by: str = ""
    """The probe that kills the container."""


def read_probe(container: Json, name: str) -> ContainerProbe | None:
    """Return a probe of a container, or None."""
    probe = get_mapping(container, name)
    if not probe:
        return None
    return ContainerProbe(
        Ms(get_int(probe, "initialDelaySeconds") * SECOND),
        Ms((get_int(probe, "periodSeconds") or 10) * SECOND),
        get_int(probe, "failureThreshold") or 3,
        get_int(probe, "successThreshold") or 1,
    )


def predict_probes(container: Json, started_at: Ms, up_at: Ms | None) -> ProbeTimes:
    """Predict the probe results of a container that starts and is up at these times.

    Like `doProbe` in `pkg/kubelet/prober/worker.go` of Kubernetes 1.36.4.
    """
    startup = read_probe(container, "startupProbe")
    started: Ms | None = started_at
    if startup is not None:
        failed_at = startup.failure_time(started_at, up_at)
        if failed_at is not None:
            return ProbeTimes(None, None, failed_at, "startup")
        started = startup.first_success(started_at, up_at) if up_at is not None else None
    liveness = read_probe(container, "livenessProbe")
    killed = None
    if liveness is not None and startup is None:
        killed = liveness.failure_time(started_at, up_at)
    return ProbeTimes(
        started, _ready_time(container, started_at, up_at, started), killed, "liveness"
    )


def _ready_time(container: Json, started_at: Ms, up_at: Ms | None, started: Ms | None) -> Ms | None:
    if started is None:
        return None
    readiness = read_probe(container, "readinessProbe")
    if readiness is None:
        return started
    if up_at is None:
        return None
    # Readiness is probed at once when a container has started, whatever the period.
    first = readiness.first_success(started_at, up_at) if started == started_at else started
    first = max(first, Ms(started_at + readiness.delay))
    return Ms(first + (readiness.successes - 1) * readiness.period)


class ContainerContext(msgspec.Struct, frozen=True, kw_only=True):
    """A container, and everything that decides its behavior."""

    reader: ObjectReader
    """Read access to the cluster."""
    pod: StoredObject
    """The pod."""
    profile: Profile
    """The profile of the simulation."""
    container: Json
    """The container of the spec."""
    container_profile: ContainerProfile
    """The profile of the container."""
    role: ContainerRole
    """The role of the container."""
    restart_policy: str
    """The restart policy of the pod; init containers and sidecars interpret it differently."""
    earlier_failures: int
    """Number of earlier pods that failed at the same work."""

    @property
    def image(self) -> str:
        """The image of the spec."""
        return get_text(self.container, "image")

    @property
    def is_long_running(self) -> bool:
        """Whether the container should run until its pod is deleted."""
        return self.role is ContainerRole.SIDECAR or (
            self.role is ContainerRole.MAIN and self.restart_policy == "Always"
        )

    def should_restart(self, exit_code: int) -> bool:
        """Return whether a container that ended with this code restarts.

        Like `ShouldContainerBeRestarted` in `pkg/kubelet/container/helpers.go` of Kubernetes
        1.36.4.
        """
        match self.role:
            case ContainerRole.SIDECAR:
                return True
            case ContainerRole.INIT:
                return exit_code != 0 and self.restart_policy != "Never"
            case ContainerRole.MAIN:
                return self.restart_policy == "Always" or (
                    self.restart_policy == "OnFailure" and exit_code != 0
                )

    def probe_times(self, started_at: Ms) -> ProbeTimes:
        """Return the probe times of a run that starts at this time."""
        up_at = Ms(started_at + self.container_profile.ready + self.container_profile.slow)
        return predict_probes(self.container, started_at, up_at)
