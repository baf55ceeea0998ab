"""State of a Deployment and its ReplicaSets: which is new, which are old, and their sizes."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tidegate.model.k8s.json_fields import get_int, get_mapping, get_text
from tidegate.model.k8s.kinds import REPLICA_SET
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.sandbox.controllers.conditions import scaled_value
from tidegate.sandbox.controllers.interface import ObjectReader
from tidegate.sandbox.controllers.pods import creation_order
from tidegate.sandbox.controllers.writes import compute_hash, list_controlled
from tidegate.sandbox.server.store import StoredObject

TEMPLATE_HASH = "pod-template-hash"
PREFIX = "deployment.kubernetes.io/"
REVISION, HISTORY = f"{PREFIX}revision", f"{PREFIX}revision-history"
DESIRED, MAXIMUM = f"{PREFIX}desired-replicas", f"{PREFIX}max-replicas"
NOT_COPIED = ("kubectl.kubernetes.io/last-applied-configuration", PREFIX)
DEFAULT_LIMIT = "25%"


class ReplicaSetState(msgspec.Struct, frozen=True):
    """A ReplicaSet of a Deployment: its desired size and its reported counts."""

    stored: StoredObject
    """The ReplicaSet."""
    size: int
    """The desired number of pods."""
    pods: int
    """The reported number of pods."""
    ready: int
    """The reported number of ready pods."""
    available: int
    """The reported number of available pods."""

    @property
    def revision(self) -> int:
        """The revision in the annotation."""
        return _parse_count(get_text(self.stored.metadata, "annotations", REVISION)) or 0

    def annotated_count(self, name: str) -> int | None:
        """Return a count that the Deployment wrote into an annotation, or None."""
        return _parse_count(get_text(self.stored.metadata, "annotations", name))


class DeploymentRollout(msgspec.Struct, frozen=True, kw_only=True):
    """A Deployment and its ReplicaSets, as read for one reconciliation."""

    deployment: StoredObject
    """The Deployment."""
    spec: dict[str, Json]
    """The spec of the Deployment."""
    template_hash: str
    """The hash of the current template."""
    new: ReplicaSetState | None
    """The ReplicaSet of the current template; None if it does not exist."""
    old: tuple[ReplicaSetState, ...]
    """The old ReplicaSets, the oldest first."""
    replicas: int
    """The desired number of pods."""
    max_surge: int
    """Maximum number of pods above the desired number."""
    max_unavailable: int
    """Maximum number of unavailable pods below the desired number."""
    is_recreate: bool
    """Whether the strategy is Recreate."""

    @property
    def template(self) -> dict[str, Json]:
        """The pod template."""
        return get_mapping(self.spec, "template")

    @property
    def deadline(self) -> int:
        """`progressDeadlineSeconds` of the spec."""
        return get_int(self.spec, "progressDeadlineSeconds", default=600)

    @property
    def is_paused(self) -> bool:
        """Whether the rollout is paused."""
        return self.spec.get("paused") is True

    @property
    def replica_sets(self) -> tuple[ReplicaSetState, ...]:
        """All ReplicaSets."""
        return (*self.old, self.new) if self.new else self.old

    @property
    def active(self) -> tuple[ReplicaSetState, ...]:
        """The ReplicaSets with a desired size above zero.

        Like `FilterActiveReplicaSets` in `pkg/controller/controller_utils.go` of Kubernetes 1.36.4.
        """
        return tuple(replica_set for replica_set in self.replica_sets if replica_set.size)

    def annotations(self) -> JsonObject:
        """Return the annotations for the new ReplicaSet, copied from the Deployment.

        Like `SetNewReplicaSetAnnotations` in `pkg/controller/deployment/util/deployment_util.go` of
        Kubernetes 1.36.4.
        """
        copied: JsonObject = {
            name: value
            for name, value in get_mapping(self.deployment.metadata, "annotations").items()
            if not name.startswith(NOT_COPIED)
        }
        revision = 1 + max((replica_set.revision for replica_set in self.old), default=0)
        if self.new is None:
            return {**copied, **self.scale_annotations(), REVISION: str(revision)}
        old_revision = self.new.revision
        if old_revision < revision:
            copied[REVISION] = str(revision)
            if old_revision:
                history = get_text(self.new.stored.metadata, "annotations", HISTORY)
                copied[HISTORY] = f"{history},{old_revision}" if history else str(old_revision)
        return copied

    def scale_annotations(self) -> JsonObject:
        """Return the annotations of a ReplicaSet with the size of its Deployment."""
        return {DESIRED: str(self.replicas), MAXIMUM: str(self.replicas + self.max_surge)}


def read_rollout(reader: ObjectReader, deployment: StoredObject) -> DeploymentRollout:
    """Read the ReplicaSets of a Deployment; the new one has the hash of the current template."""
    spec = get_mapping(deployment.body, "spec")
    digest = compute_hash(get_mapping(spec, "template"))
    owned = sorted(list_controlled(reader, deployment, REPLICA_SET), key=creation_order)
    replica_sets = [read_replica_set(stored) for stored in owned]
    new = next(
        (
            replica_set
            for replica_set in replica_sets
            if replica_set.stored.labels.get(TEMPLATE_HASH) == digest
        ),
        None,
    )
    replicas = get_int(spec, "replicas", default=1)
    is_recreate = get_text(spec, "strategy", "type") == "Recreate"
    max_surge, max_unavailable = (0, 0) if is_recreate else _resolve_limits(spec, replicas)
    return DeploymentRollout(
        deployment=deployment,
        spec=spec,
        template_hash=digest,
        new=new,
        old=tuple(replica_set for replica_set in replica_sets if replica_set is not new),
        replicas=replicas,
        max_surge=max_surge,
        max_unavailable=max_unavailable,
        is_recreate=is_recreate,
    )


def _resolve_limits(spec: dict[str, Json], replicas: int) -> tuple[int, int]:
    """Return `maxSurge` and `maxUnavailable` as counts, never both zero.

    Like `ResolveFenceposts` in `pkg/controller/deployment/util/deployment_util.go` of Kubernetes
    1.36.4.
    """
    rolling_update = get_mapping(spec, "strategy", "rollingUpdate")
    max_surge = scaled_value(
        rolling_update.get("maxSurge", DEFAULT_LIMIT), total=replicas, round_up=True
    )
    max_unavailable = scaled_value(
        rolling_update.get("maxUnavailable", DEFAULT_LIMIT), total=replicas, round_up=False
    )
    return max_surge, min(max_unavailable if max_unavailable or max_surge else 1, replicas)


def read_replica_set(stored: StoredObject) -> ReplicaSetState:
    """Return the sizes and counts of a ReplicaSet."""
    status = get_mapping(stored.body, "status")
    return ReplicaSetState(
        stored,
        size=get_int(stored.body, "spec", "replicas", default=1),
        pods=get_int(status, "replicas"),
        ready=get_int(status, "readyReplicas"),
        available=get_int(status, "availableReplicas"),
    )


def _parse_count(value: str) -> int | None:
    return int(value) if value.isdigit() else None


Sizes = list[tuple[ReplicaSetState, int]]
"""ReplicaSets with their new sizes."""


def new_size(rollout: DeploymentRollout) -> int:
    """Return how large the new ReplicaSet may become, given the sizes of the old ones.

    Like `NewRSNewReplicas` in `pkg/controller/deployment/util/deployment_util.go` of Kubernetes
    1.36.4.
    """
    current = rollout.new.size if rollout.new else 0
    if rollout.is_recreate or current > rollout.replicas:
        return rollout.replicas
    room = rollout.replicas + rollout.max_surge - _total_size(rollout.replica_sets)
    return current + min(room, rollout.replicas - current) if room > 0 else current


def old_sizes(rollout: DeploymentRollout) -> Sizes:
    """Return the smaller sizes of the old ReplicaSets: unhealthy pods go first, then spare ones.

    Like `reconcileOldReplicaSets` in `pkg/controller/deployment/rolling.go` of Kubernetes 1.36.4.
    """
    min_available = rollout.replicas - rollout.max_unavailable
    new_unavailable = rollout.new.size - rollout.new.available if rollout.new else 0
    spare = _total_size(rollout.replica_sets) - min_available - new_unavailable
    active = [replica_set for replica_set in rollout.old if replica_set.size]
    if spare <= 0 or not active:
        return []
    sizes: Sizes = []
    for replica_set in active:
        unhealthy = min(spare, max(0, replica_set.size - replica_set.available))
        spare -= unhealthy
        sizes.append((replica_set, replica_set.size - unhealthy))
    available = sum(replica_set.available for replica_set in active)
    spare = available + (rollout.new.available if rollout.new else 0) - min_available
    for index, (replica_set, size) in enumerate(sizes):
        reduction = min(size, max(0, spare))
        spare -= reduction
        sizes[index] = replica_set, size - reduction
    return sizes


def is_scaling(rollout: DeploymentRollout) -> bool:
    """Return whether the Deployment was scaled since its ReplicaSets were last annotated.

    Like `isScalingEvent` in `pkg/controller/deployment/sync.go` of Kubernetes 1.36.4.
    """
    return any(
        replica_set.annotated_count(DESIRED) not in (None, rollout.replicas)
        for replica_set in rollout.active
    )


def scaled_sizes(rollout: DeploymentRollout) -> Sizes:
    """Return sizes after scaling: in proportion during a rollout, else all on one ReplicaSet.

    Like `scale` in `pkg/controller/deployment/sync.go` and `GetReplicaSetProportion` in
    `pkg/controller/deployment/util/deployment_util.go` of Kubernetes 1.36.4.
    """
    match rollout.active:
        case ():
            newest = rollout.new or (rollout.old[-1] if rollout.old else None)
            return [(newest, rollout.replicas)] if newest else []
        case (only,):
            return [(only, rollout.replicas)]
        case _:
            if _is_saturated(rollout):
                return [(replica_set, 0) for replica_set in rollout.old if replica_set.size]
            return [] if rollout.is_recreate else _proportional_sizes(rollout)


def _proportional_sizes(rollout: DeploymentRollout) -> Sizes:
    allowed = rollout.replicas + rollout.max_surge if rollout.replicas else 0
    missing = allowed - _total_size(rollout.active)
    replica_sets = _by_size(rollout, newest_first=missing > 0)
    added = 0
    sizes: Sizes = []
    for replica_set in replica_sets:
        proportion = _proportion(replica_set, rollout)
        remaining = missing - added
        change = min(proportion, remaining) if missing > 0 else max(proportion, remaining)
        change = change if missing and remaining else 0
        added += change
        sizes.append((replica_set, replica_set.size + change))
    largest, size = sizes[0]
    return [(largest, max(0, size + missing - added)), *sizes[1:]]


def _by_size(rollout: DeploymentRollout, *, newest_first: bool) -> list[ReplicaSetState]:
    ordered = list(reversed(rollout.active)) if newest_first else list(rollout.active)
    return sorted(ordered, key=lambda replica_set: -replica_set.size)


def _proportion(replica_set: ReplicaSetState, rollout: DeploymentRollout) -> int:
    if not rollout.replicas:
        return -replica_set.size
    old_maximum = replica_set.annotated_count(MAXIMUM) or sum(
        other.pods for other in rollout.replica_sets
    )
    if not old_maximum:
        return 0
    # Halves are rounded away from zero, as the real controller does.
    return (2 * replica_set.size * (rollout.replicas + rollout.max_surge) + old_maximum) // (
        2 * old_maximum
    ) - replica_set.size


def _is_saturated(rollout: DeploymentRollout) -> bool:
    new = rollout.new
    desired = rollout.replicas
    return new is not None and new.size == new.annotated_count(DESIRED) == new.available == desired


def _total_size(replica_sets: Iterable[ReplicaSetState]) -> int:
    return sum(replica_set.size for replica_set in replica_sets)
