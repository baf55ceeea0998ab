"""An object's own facts: how it is counted, what of it its status changes, how it ends."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Json, Propagation
from tidegate.model.reading import listed, mapping, mappings, number, text
from tidegate.sandbox.kinds import STATUS_ALONE
from tidegate.sandbox.ownership.compare import same
from tidegate.sandbox.server.register import KindEntry
from tidegate.sandbox.server.store import Body, Resource, Stored, metadata_of
from tidegate.schema.causes import forbidden
from tidegate.world.calls import Write
from tidegate.world.facts import Cause

NAMESPACES = Resource("", "namespaces")
SERVICES = Resource("", "services")
PODS = Resource("", "pods")
JOBS = Resource("batch", "jobs")
CRDS = Resource("apiextensions.k8s.io", "customresourcedefinitions")
DEPLOYMENTS = Resource("apps", "deployments")
KEPT = {("apps", "deployments"): ("labels",), PODS: ("ownerReferences",)}
"""Parts of the metadata that a write of the status leaves as they were, though not the rest."""
PODS_STAY = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background "
    "to remove them or set propagationPolicy=Orphan to suppress this warning"
)
"""Of all kinds, Jobs alone leave what they own behind unless they are told not to."""
DEFAULT_GRACE = 30
FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
WAITING: dict[Propagation, Json] = {
    Propagation.FOREGROUND: FOREGROUND,
    Propagation.ORPHAN: ORPHAN,
}
"""The finalizer of what waits for what it owns, or for letting go of it."""
CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
SUFFIX = "bcdfghjklmnpqrstvwxz2456789"
"""What servers put behind generated names: no vowels, so no words."""
_SPELLED = bytes(ord(SUFFIX[byte % len(SUFFIX)]) for byte in range(256))


def spell(drawn: bytes) -> str:
    """Bytes in the letters of generated names."""
    return drawn.translate(_SPELLED).decode()


def timestamp(now: Ms) -> str:
    return _second(now // SECOND)


@lru_cache(maxsize=256)
def _second(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def count(body: Body, before: Stored, entry: KindEntry) -> Body:
    """A spec that changed is counted: everything but metadata and status is spec.

    The annotations of a Deployment count too: its ReplicaSets get them.
    """
    if not entry.is_counted:
        return body
    names = (set(body) | set(before.body)) - {"metadata", "status", "apiVersion", "kind"}
    is_same = all(same(body.get(name), before.body.get(name)) for name in names)
    if is_same and entry.resource == DEPLOYMENTS:
        is_same = metadata_of(body).get("annotations") == before.metadata.get("annotations")
    if is_same:
        return body
    metadata = {**metadata_of(body), "generation": before.generation + 1}
    return {**body, "metadata": metadata}


def late_finalizers(before: Stored, body: Body) -> list[Cause]:
    """An object that is being deleted takes no new finalizer."""
    if not before.is_deleting:
        return []
    known = listed(body, "metadata", "finalizers")
    added = [str(one) for one in known if one not in before.finalizers]
    if not added:
        return []
    named = ", ".join(f'"{one}"' for one in added)
    why = (
        "no new finalizers can be added if the object is being deleted, "
        f"found new finalizers []string{{{named}}}"
    )
    return [forbidden("metadata.finalizers", why)]


def is_over(body: Body, entry: KindEntry) -> bool:
    """Whether a deletion that was held has nothing left to wait for."""
    metadata = metadata_of(body)
    if "deletionTimestamp" not in metadata or metadata.get("finalizers"):
        return False
    if metadata.get("deletionGracePeriodSeconds"):
        return False
    return not (entry.resource == NAMESPACES and listed(body, "spec", "finalizers"))


def end(before: Stored, entry: KindEntry, write: Write, *, now: Ms) -> Body | None:
    """What a deletion leaves: the object that waits for its finalizers or its time, or nothing."""
    if entry.resource == CRDS and not before.is_deleting:
        return _leaving_definition(before, now)
    finalizers = _with_propagation(before.finalizers, write.propagation)
    grace = _grace(before, entry, write.grace)
    is_full = entry.resource == NAMESPACES and bool(listed(before.body, "spec", "finalizers"))
    if not (finalizers or grace or is_full):
        return None
    metadata = {**before.metadata, "finalizers": finalizers}
    if not finalizers:
        del metadata["finalizers"]
    begun = _deletion_began(before, now)
    metadata["deletionTimestamp"] = timestamp(Ms(begun + grace * SECOND))
    metadata["deletionGracePeriodSeconds"] = grace
    if not before.is_deleting and before.generation:
        metadata["generation"] = before.generation + 1
    body: Body = {**before.body, "metadata": metadata}
    if entry.resource == NAMESPACES:
        body["status"] = {"phase": "Terminating"}
    return body


def _leaving_definition(before: Stored, now: Ms) -> Body:
    """A definition stays until its instances are gone, however its deletion was asked for."""
    status = mapping(before.body, "status")
    terminating: Body = {
        "type": "Terminating",
        "status": "True",
        "reason": "InstanceDeletionPending",
        "message": "CustomResourceDefinition marked for deletion; "
        "CustomResource deletion will begin soon",
        "lastTransitionTime": timestamp(now),
    }
    conditions: list[Json] = [*listed(status, "conditions"), terminating]
    metadata: Body = {
        **before.metadata,
        "deletionTimestamp": timestamp(now),
        "finalizers": [*before.finalizers, CLEANUP],
    }
    return {**before.body, "metadata": metadata, "status": {**status, "conditions": conditions}}


def _grace(before: Stored, entry: KindEntry, wanted: int | None) -> int:
    """The seconds that a pod has to end: none without a node, and never more than it had."""
    if entry.resource != PODS:
        return 0
    if before.is_deleting:
        left = number(before.metadata, "deletionGracePeriodSeconds")
        return left if wanted is None else min(left, wanted)
    spec, phase = mapping(before.body, "spec"), text(before.body, "status", "phase")
    if not spec.get("nodeName") or phase in ("Failed", "Succeeded"):
        return 0
    own = number(spec, "terminationGracePeriodSeconds", default=DEFAULT_GRACE)
    return max(own if wanted is None else wanted, 0)


def _deletion_began(before: Stored, now: Ms) -> Ms:
    if not before.is_deleting:
        return now
    told = datetime.fromisoformat(str(before.metadata.get("deletionTimestamp")))
    given = number(before.metadata, "deletionGracePeriodSeconds")
    return Ms(int(told.timestamp() - given) * SECOND)


def bind(pod: Stored, node: str, *, now: Ms) -> Body:
    """A pod that a scheduler has put on a node."""
    status = mapping(pod.body, "status")
    conditions = mappings(status, "conditions")
    others = [one for one in conditions if one.get("type") != "PodScheduled"]
    placed: Json = {
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": timestamp(now),
    }
    return {
        **pod.body,
        "spec": {**mapping(pod.body, "spec"), "nodeName": node},
        "status": {**status, "conditions": [*others, placed]},
    }


def _with_propagation(finalizers: list[Json], propagation: Propagation | None) -> list[Json]:
    if propagation is None:
        return finalizers
    kept = [one for one in finalizers if one not in (FOREGROUND, ORPHAN)]
    return [*kept, WAITING[propagation]] if propagation in WAITING else kept


def change_status(before: Stored, body: Body, entry: KindEntry) -> Body:
    """The object as it was, with all of `body` that can be written through its status."""
    changed: Body = {**before.body, "metadata": _metadata(before, body, entry)}
    status = body.get("status")
    if status is None:
        changed.pop("status", None)
    else:
        changed["status"] = status
    given = mapping(before.body, "status").get("qosClass") if entry.resource == PODS else None
    if given and not mapping(changed, "status").get("qosClass"):
        changed["status"] = {**mapping(changed, "status"), "qosClass": given}
    return changed


def _metadata(before: Stored, body: Body, entry: KindEntry) -> Body:
    told = metadata_of(body)
    kind = entry.kind
    if told is before.metadata or entry.is_custom or (kind.group, kind.name) in STATUS_ALONE:
        return before.metadata
    kept = KEPT.get(entry.resource, ())
    metadata = {name: part for name, part in told.items() if name not in kept}
    return metadata | {name: before.metadata[name] for name in kept if name in before.metadata}
