"""Approvals and suspensions of units, stored as ConfigMaps next to the unit records.

An approval is for a unit and one desired state: the next revision waits again. Permission to
write such a ConfigMap is enough to approve; no access to records is needed. Suspensions are for
units whose kind the cluster does not serve; other units are suspended in their own resource.

    kubectl get configmap -n tidegate-system -l tidegate.dev/approval=unit
    kubectl get configmap -n tidegate-system -l tidegate.dev/suspended=unit
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from tidegate.engine.cluster.procedures import ApiCall, Procedure
from tidegate.engine.records.storage import (
    MARKER_VALUE,
    TIDEGATE_NAMESPACE,
    resource_name,
    store_marker,
)
from tidegate.model.k8s.kinds import CONFIG_MAP
from tidegate.model.k8s.objects import ClusterRef, Ref
from tidegate.model.units.unit import UnitId
from tidegate.world.messages import ErrorOutcome, WatchEvent, WatchEventType, is_error
from tidegate.world.requests import Selection, Verb, Watch, Write

APPROVAL_LABEL = "tidegate.dev/approval"
DIGEST_KEY, APPROVER_KEY = "text", "by"


class _ApprovalMap(msgspec.Struct):
    data: dict[str, str] = {}


class Approvals(msgspec.Struct):
    """The approvals of the clusters in which units wait for one."""

    desired_digest: Callable[[UnitId], str]
    """Returns the digest of the desired state of a unit."""
    preapproved: frozenset[UnitId] = frozenset()
    """Units that were approved when the rollout was started."""
    namespace: str = TIDEGATE_NAMESPACE
    _approved_digests: dict[ClusterRef, str] = msgspec.field(default_factory=dict)
    """Digest that each approval is for."""
    _waiting: dict[ClusterRef, UnitId] = msgspec.field(default_factory=dict)
    _watched_clusters: set[str] = msgspec.field(default_factory=set)

    def wait(self, unit: UnitId, cluster: str) -> Procedure[UnitId | ErrorOutcome | None]:
        """Return the unit if it is approved.

        Otherwise watch for approvals as long as the rollout lasts.
        """
        object_ref = ClusterRef(cluster, approval_ref(unit.tracking_id, self.namespace))
        self._waiting[object_ref] = unit
        if unit in self.preapproved:
            return unit
        if cluster not in self._watched_clusters:
            self._watched_clusters.add(cluster)
            selection = Selection(
                CONFIG_MAP, self.namespace, label_selector=f"{APPROVAL_LABEL}={MARKER_VALUE}"
            )
            (outcome,) = yield (ApiCall(cluster, Watch(selection)),)
            if is_error(outcome):
                self._watched_clusters.discard(cluster)
                return outcome
        return self._approved_unit(object_ref)

    def apply_watch_event(self, cluster: str, event: WatchEvent) -> UnitId | None:
        """Apply a watch event; return the unit that it approves, if any."""
        object_ref = ClusterRef(cluster, event.live.ref)
        if cluster not in self._watched_clusters or object_ref.ref.kind != CONFIG_MAP:
            return None
        if event.type is WatchEventType.DELETED:
            self._approved_digests.pop(object_ref, None)
            return None
        body = msgspec.json.decode(event.live.body, type=_ApprovalMap)
        if object_ref.ref.namespace == self.namespace and DIGEST_KEY in body.data:
            self._approved_digests[object_ref] = body.data[DIGEST_KEY]
        return self._approved_unit(object_ref)

    def _approved_unit(self, object_ref: ClusterRef) -> UnitId | None:
        unit = self._waiting.get(object_ref)
        is_approved = unit is not None and self._approved_digests.get(
            object_ref
        ) == self.desired_digest(unit)
        return unit if is_approved else None

    def delete_approval(self, unit: UnitId, cluster: str) -> Procedure[None]:
        """Delete the approval of a unit that has been rolled out."""
        object_ref = ClusterRef(cluster, approval_ref(unit.tracking_id, self.namespace))
        if self._approved_digests.pop(object_ref, None) is not None:
            yield (ApiCall(cluster, Write(verb=Verb.DELETE, ref=object_ref.ref)),)


def approval_ref(unit: str, namespace: str = TIDEGATE_NAMESPACE) -> Ref:
    """Return the reference of the approval of a unit."""
    return Ref(CONFIG_MAP, namespace, resource_name(unit))


def build_approval(unit: str, digest: str, by: str, namespace: str = TIDEGATE_NAMESPACE) -> Write:
    """Return the write that approves a desired state of a unit; replaces an earlier approval."""
    ref = approval_ref(unit, namespace)
    return store_marker(ref, unit, APPROVAL_LABEL, {DIGEST_KEY: digest, APPROVER_KEY: by})


SUSPENDED_LABEL = "tidegate.dev/suspended"
SUSPENSIONS = Selection(
    CONFIG_MAP, TIDEGATE_NAMESPACE, label_selector=f"{SUSPENDED_LABEL}={MARKER_VALUE}"
)
"""Selects the suspensions of all units of a cluster."""


def suspension_ref(unit: str) -> Ref:
    """Return the reference of the suspension of a unit."""
    return Ref(CONFIG_MAP, TIDEGATE_NAMESPACE, f"{resource_name(unit)}.suspended")


def build_suspension(unit: str, by: str) -> Write:
    """Return the write that suspends a unit until it is resumed."""
    return store_marker(suspension_ref(unit), unit, SUSPENDED_LABEL, {"by": by})
