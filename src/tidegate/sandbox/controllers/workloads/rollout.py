"""A Deployment and its ReplicaSets at one look: who is new, who is old, how large each may be."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tidegate.model.objects import Json
from tidegate.model.reading import mapping, number, text
from tidegate.sandbox.controllers.conditions import share
from tidegate.sandbox.controllers.pods import age_and_name
from tidegate.sandbox.controllers.reaction import Visible
from tidegate.sandbox.controllers.writes import controlled, digest_of
from tidegate.sandbox.kinds import REPLICA_SET
from tidegate.sandbox.server.store import Body, Stored

HASH = "pod-template-hash"
PREFIX = "deployment.kubernetes.io/"
REVISION, HISTORY = f"{PREFIX}revision", f"{PREFIX}revision-history"
DESIRED, MAXIMUM = f"{PREFIX}desired-replicas", f"{PREFIX}max-replicas"
NOT_COPIED = ("kubectl.kubernetes.io/last-applied-configuration", PREFIX)
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

    def notes(self) -> Body:
        """The annotations that the new ReplicaSet should have, of those of the Deployment."""
        copied: Body = {
            name: value
            for name, value in mapping(self.deployment.metadata, "annotations").items()
            if not name.startswith(NOT_COPIED)
        }
        revision = 1 + max((crew.revision for crew in self.old), default=0)
        if self.new is None:
            return {**copied, **self.scale_notes(), REVISION: str(revision)}
        before = self.new.revision
        if before < revision:
            copied[REVISION] = str(revision)
            if before:
                history = text(self.new.stored.metadata, "annotations", HISTORY)
                copied[HISTORY] = f"{history},{before}" if history else str(before)
        return copied

    def scale_notes(self) -> Body:
        """What ReplicaSets are told of the Deployment's size."""
        return {DESIRED: str(self.replicas), MAXIMUM: str(self.replicas + self.surge)}


def read_rollout(view: Visible, deployment: Stored) -> DeploymentRollout:
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


Sizes = list[tuple[Crew, int]]


def new_size(rollout: DeploymentRollout) -> int:
    """How large the new ReplicaSet may be, beside the old ones."""
    own = rollout.new.size if rollout.new else 0
    if rollout.is_recreated or own > rollout.replicas:
        return rollout.replicas
    room = rollout.replicas + rollout.surge - _total(rollout.all)
    return own + min(room, rollout.replicas - own) if room > 0 else own


def old_sizes(rollout: DeploymentRollout) -> Sizes:
    """How small the old ones may become: first what is not available, then what can be spared."""
    least = rollout.replicas - rollout.unavailable
    waiting = rollout.new.size - rollout.new.available if rollout.new else 0
    spare = _total(rollout.all) - least - waiting
    active = [crew for crew in rollout.old if crew.size]
    if spare <= 0 or not active:
        return []
    sizes: Sizes = []
    for crew in active:
        unhealthy = min(spare, max(0, crew.size - crew.available))
        spare -= unhealthy
        sizes.append((crew, crew.size - unhealthy))
    available = sum(crew.available for crew in active)
    spare = available + (rollout.new.available if rollout.new else 0) - least
    for place, (crew, size) in enumerate(sizes):
        less = min(size, max(0, spare))
        spare -= less
        sizes[place] = crew, size - less
    return sizes


def is_scaling(rollout: DeploymentRollout) -> bool:
    """Whether the Deployment was scaled since its ReplicaSets were last told."""
    return any(crew.note(DESIRED) not in (None, rollout.replicas) for crew in rollout.active)


def scaled_sizes(rollout: DeploymentRollout) -> Sizes:
    """Sizes after scaling: in proportion while a rollout is under way, else all on one."""
    match rollout.active:
        case ():
            newest = rollout.new or (rollout.old[-1] if rollout.old else None)
            return [(newest, rollout.replicas)] if newest else []
        case (only,):
            return [(only, rollout.replicas)]
        case _:
            if _is_saturated(rollout):
                return [(crew, 0) for crew in rollout.old if crew.size]
            return [] if rollout.is_recreated else _proportional(rollout)


def _proportional(rollout: DeploymentRollout) -> Sizes:
    allowed = rollout.replicas + rollout.surge if rollout.replicas else 0
    missing = allowed - _total(rollout.active)
    crews = _by_size(rollout, newest_first=missing > 0)
    added = 0
    sizes: Sizes = []
    for crew in crews:
        fraction = _fraction(crew, rollout)
        left = missing - added
        step = min(fraction, left) if missing > 0 else max(fraction, left)
        step = step if missing and left else 0
        added += step
        sizes.append((crew, crew.size + step))
    largest, size = sizes[0]
    return [(largest, max(0, size + missing - added)), *sizes[1:]]


def _by_size(rollout: DeploymentRollout, *, newest_first: bool) -> list[Crew]:
    ordered = list(reversed(rollout.active)) if newest_first else list(rollout.active)
    return sorted(ordered, key=lambda crew: -crew.size)


def _fraction(crew: Crew, rollout: DeploymentRollout) -> int:
    if not rollout.replicas:
        return -crew.size
    before = crew.note(MAXIMUM) or sum(one.pods for one in rollout.all)
    if not before:
        return 0
    # Halves are rounded away from zero, as the real controller does.
    return (2 * crew.size * (rollout.replicas + rollout.surge) + before) // (2 * before) - crew.size


def _is_saturated(rollout: DeploymentRollout) -> bool:
    new = rollout.new
    wanted = rollout.replicas
    return new is not None and new.size == new.note(DESIRED) == new.available == wanted


def _total(crews: Iterable[Crew]) -> int:
    return sum(crew.size for crew in crews)
