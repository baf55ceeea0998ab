"""A new object: its identity, and what a server gives to some kinds.

A pod gets the class that tells which go last when a node is short of room. A Job gets a selector
and labels that are its own, unless it says `manualSelector` and chooses both itself. Nobody owns
what the server gives.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from fractions import Fraction

from tidegate.model.labels import matches
from tidegate.model.moment import Ms
from tidegate.model.objects import Json, Ref
from tidegate.model.quantity import quantity_of
from tidegate.model.reading import mapping, mappings, part, text
from tidegate.sandbox.kinds import FIRST_STATUSES
from tidegate.sandbox.server.lifecycle import JOBS, NAMESPACES, PODS, SERVICES, spell, timestamp
from tidegate.sandbox.server.register import KindEntry
from tidegate.sandbox.server.store import Body, metadata_of
from tidegate.schema.causes import invalid, required
from tidegate.world.facts import Cause

COUNTED = ("cpu", "memory")

Amounts = dict[str, Fraction]
UID = "batch.kubernetes.io/controller-uid"
NAME = "batch.kubernetes.io/job-name"
OLD_UID, OLD_NAME = "controller-uid", "job-name"
LABELS = "spec.template.metadata.labels"


class Names:
    """Everything random of a cluster, made from a seed."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._count = 0
        self._addresses = 0

    def uid(self) -> str:
        text = self._draw().hex()
        parts = (text[:8], text[8:12], f"4{text[13:16]}", f"8{text[17:20]}", text[20:32])
        return "-".join(parts)

    def suffixed(self, prefix: str) -> str:
        ending = spell(self._draw()[:5])
        return f"{prefix}{ending}" if prefix else ""

    def address(self) -> str:
        """An address of the service network, each once."""
        self._addresses += 1
        high, low = divmod(self._addresses + 9, 250)
        return f"10.{96 + high // 250}.{high % 250}.{low + 1}"

    def _draw(self) -> bytes:
        self._count += 1
        return hashlib.blake2b(f"{self._seed}/{self._count}".encode(), digest_size=16).digest()


def begin(body: Body, entry: KindEntry, ref: Ref, *, now: Ms, names: Names) -> Body:
    """A new object: its identity, and what its kind starts with."""
    dropped = {"deletionTimestamp", "deletionGracePeriodSeconds", "resourceVersion", "generation"}
    metadata = {k: v for k, v in metadata_of(body).items() if k not in dropped}
    metadata |= {"name": ref.name, "uid": names.uid(), "creationTimestamp": timestamp(now)}
    if entry.served.namespaced:
        metadata["namespace"] = ref.namespace
    if entry.is_counted:
        metadata["generation"] = 1
    begun: Body = {
        **body,
        "apiVersion": entry.kind.api_version,
        "kind": entry.kind.name,
        "metadata": metadata,
    }
    if entry.has_status:
        begun.pop("status", None)
    first = FIRST_STATUSES.get(entry.kind)
    begun |= {} if first is None else {"status": first}
    if entry.resource == NAMESPACES:
        return _namespace(begun, ref.name)
    if entry.resource == SERVICES:
        return _service(begun, names)
    if entry.resource == PODS:
        return {**begun, "status": {"phase": "Pending", "qosClass": service_class(begun)}}
    if entry.resource == JOBS:
        return select_own_pods(begun)
    return begun


def _namespace(body: Body, name: str) -> Body:
    metadata = metadata_of(body)
    labels = {**mapping(metadata, "labels"), "kubernetes.io/metadata.name": name}
    return {
        **body,
        "metadata": {**metadata, "labels": labels},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def _service(body: Body, names: Names) -> Body:
    known = dict(mapping(body, "spec"))
    if known.get("type") != "ExternalName":
        given = known.get("clusterIP") or names.address()
        known |= {"clusterIP": given, "clusterIPs": known.get("clusterIPs") or [given]}
    return {**body, "spec": known}


def service_class(pod: Body) -> str:
    """`BestEffort` where nothing is asked for, `Guaranteed` where all of it is a limit as well.

    What a pod asks for as a whole counts more than what its containers do.
    """
    spec = mapping(pod, "spec")
    whole = mapping(spec, "resources")
    containers = [*mappings(spec, "containers"), *mappings(spec, "initContainers")]
    shares = [whole] if whole else [mapping(one, "resources") for one in containers]
    if not any(shares):
        return "BestEffort"
    read = [(_requests(share), _amounts(share, "limits")) for share in shares]
    if not any(requests or limits for requests, limits in read):
        return "BestEffort"
    is_guaranteed = all(
        len(limits) == len(COUNTED) and requests == limits for requests, limits in read
    )
    return "Guaranteed" if is_guaranteed else "Burstable"


def _amounts(share: Body, name: str) -> Amounts:
    given = mapping(share, name)
    amounts = {key: quantity_of(given[key]) for key in COUNTED if key in given}
    return {key: amount for key, amount in amounts.items() if amount is not None and amount > 0}


def _requests(share: Body) -> Amounts:
    """What has a limit and no request requests its limit."""
    requested = mapping(share, "requests")
    limits = _amounts(share, "limits")
    unsaid = {key: amount for key, amount in limits.items() if key not in requested}
    return {**unsaid, **_amounts(share, "requests")}


def select_own_pods(job: Body) -> Body:
    """A new Job with the labels that its pods will have, and a selector for them."""
    if _chooses_itself(job):
        return job
    spec, template = mapping(job, "spec"), mapping(job, "spec", "template")
    selector = mapping(spec, "selector")
    own = _own_labels(job)
    labels: Body = {**own, **mapping(template, "metadata", "labels")}
    wanted: Body = {UID: own[UID], **mapping(selector, "matchLabels")}
    completed: Body = {
        **spec,
        "selector": {**selector, "matchLabels": wanted},
        "template": {**template, "metadata": {**mapping(template, "metadata"), "labels": labels}},
    }
    return {**job, "spec": completed}


def find_foreign_labels(job: Body) -> Iterator[Cause]:
    """What a new Job says of its pods that is not so: labels of another Job, above all."""
    selector, labels = part(job, "spec", "selector"), mapping(job, "spec", "template", "metadata")
    given = mapping(labels, "labels")
    if selector is None:
        yield required("spec.selector")
    if not _chooses_itself(job):
        own = _own_labels(job)
        for key in (OLD_UID, OLD_NAME, UID, NAME):
            if given.get(key) != own[key]:
                yield invalid(f"{LABELS}[{key}]", given, f"must be '{own[key]}'")
        if not matches(selector, own):
            yield invalid("spec.selector", selector, "`selector` not auto-generated")
    if selector is None or not matches(selector, given):
        yield invalid(LABELS, given or None, "`selector` does not match template `labels`")


def _chooses_itself(job: Body) -> bool:
    return part(job, "spec", "manualSelector") is True


def _own_labels(job: Body) -> dict[str, Json]:
    metadata = metadata_of(job)
    uid, name = text(metadata, "uid"), text(metadata, "name")
    return {UID: uid, NAME: name, OLD_UID: uid, OLD_NAME: name}
