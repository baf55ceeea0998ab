"""A Deployment and its ReplicaSets at one look: who is new, who is old, how many may be where."""

from __future__ import annotations

import msgspec

from tidegate.model.objects import Json
from tidegate.model.reading import mapping, number, text
from tidegate.sandbox.controllers.amounts import share
from tidegate.sandbox.controllers.pods import age_and_name
from tidegate.sandbox.controllers.reaction import Sight
from tidegate.sandbox.controllers.workloads.replica_set import REPLICA_SET
from tidegate.sandbox.controllers.writes import controlled, digest_of
from tidegate.sandbox.server.store import Stored

HASH = "pod-template-hash"
PREFIX = "deployment.kubernetes.io/"
REVISION, HISTORY = f"{PREFIX}revision", f"{PREFIX}revision-history"
DESIRED, MAXIMUM = f"{PREFIX}desired-replicas", f"{PREFIX}max-replicas"
QUARTER = "25%"


class Crew(msgspec.Struct, frozen=True):
    """One ReplicaSet of a Deployment: what is asked of it, and what it says it has."""

    stored: Stored
    size: int
    pods: int
    ready: int
    available: int

    @property
    def revision(self) -> int:
        return _whole(text(self.stored.metadata, "annotations", REVISION)) or 0

    def note(self, name: str) -> int | None:
        """A count that the Deployment left on the ReplicaSet."""
        return _whole(text(self.stored.metadata, "annotations", name))


class DeploymentRollout(msgspec.Struct, frozen=True, kw_only=True):
    """What one look at a Deployment finds."""

    deployment: Stored
    spec: dict[str, Json]
    hash: str
    new: Crew | None
    old: tuple[Crew, ...]
    """The oldest first."""
    replicas: int
    surge: int
    """How many pods more than asked for there may be."""
    unavailable: int
    """How many of those asked for may be missing."""
    is_recreated: bool

    @property
    def template(self) -> dict[str, Json]:
        return mapping(self.spec, "template")

    @property
    def deadline(self) -> int:
        return number(self.spec, "progressDeadlineSeconds", default=600)

    @property
    def is_paused(self) -> bool:
        return self.spec.get("paused") is True

    @property
    def all(self) -> tuple[Crew, ...]:
        return (*self.old, self.new) if self.new else self.old

    @property
    def active(self) -> tuple[Crew, ...]:
        return tuple(crew for crew in self.all if crew.size)


def read_rollout(view: Sight, deployment: Stored) -> DeploymentRollout:
    """The ReplicaSets of a Deployment, told apart by the digest of its template."""
    spec = mapping(deployment.body, "spec")
    digest = digest_of(mapping(spec, "template"))
    owned = sorted(controlled(view, deployment, REPLICA_SET), key=age_and_name)
    crews = [read_crew(own) for own in owned]
    new = next((crew for crew in crews if crew.stored.labels.get(HASH) == digest), None)
    replicas = number(spec, "replicas", default=1)
    is_recreated = text(spec, "strategy", "type") == "Recreate"
    surge, unavailable = (0, 0) if is_recreated else _limits(spec, replicas)
    return DeploymentRollout(
        deployment=deployment,
        spec=spec,
        hash=digest,
        new=new,
        old=tuple(crew for crew in crews if crew is not new),
        replicas=replicas,
        surge=surge,
        unavailable=unavailable,
        is_recreated=is_recreated,
    )


def _limits(spec: dict[str, Json], replicas: int) -> tuple[int, int]:
    """How many may be too many, and how many too few. Never neither: then nothing could move."""
    given = mapping(spec, "strategy", "rollingUpdate")
    surge = share(given.get("maxSurge", QUARTER), of=replicas, rounds_up=True)
    missing = share(given.get("maxUnavailable", QUARTER), of=replicas, rounds_up=False)
    return surge, min(missing if missing or surge else 1, replicas)


def read_crew(stored: Stored) -> Crew:
    status = mapping(stored.body, "status")
    return Crew(
        stored,
        size=number(stored.body, "spec", "replicas", default=1),
        pods=number(status, "replicas"),
        ready=number(status, "readyReplicas"),
        available=number(status, "availableReplicas"),
    )


def _whole(value: str) -> int | None:
    return int(value) if value.isdigit() else None
