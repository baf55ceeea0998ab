"""What of a built-in kind cannot be changed once it is there, as Kubernetes 1.36 validates updates.

A row names a place that stays, the places below it that may change all the same, and when it holds.
Custom kinds freeze fields by rules of their own: only a server knows those.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias

from tidegate.model.objects import Kind
from tidegate.model.quantity import quantity_of
from tidegate.model.reading import mapping, mappings, part, text
from tidegate.plan.diff.owned import Body

Names: TypeAlias = tuple[str, ...]
"""The fields that lead to a place; items of lists are not told apart."""
Condition: TypeAlias = Callable[[Body, Body], bool]


class Frozen(NamedTuple):
    """A place that stays, as long as `when(live, wanted)`."""

    place: Names
    free: tuple[Names, ...] = ()
    when: Condition = lambda _live, _wanted: True


def at(path: str) -> Names:
    return tuple(path.split(".")) if path else ()


def _each(prefix: str, names: str) -> tuple[Names, ...]:
    return tuple(at(f"{prefix}.{name}") for name in names.split())


def _holds(path: str, *values: str | bool) -> Condition:
    """What lives has one of these values there."""
    return lambda live, _wanted: part(live, *at(path)) in values


def _is_set(path: str) -> Condition:
    return lambda live, _wanted: bool(part(live, *at(path)))


def _has_own_address(live: Body, wanted: Body) -> bool:
    """A Service keeps its address, unless it is or becomes a name for something outside."""
    types = {text(body, "spec", "type") for body in (live, wanted)}
    return "ExternalName" not in types and bool(text(live, "spec", "clusterIP"))


def _keeps_families(live: Body, wanted: Body) -> bool:
    """One without an address may change them."""
    addresses = {text(body, "spec", "clusterIP") for body in (live, wanted)}
    return _has_own_address(live, wanted) and "None" not in addresses


def _stays_balanced(live: Body, wanted: Body) -> bool:
    return all(text(body, "spec", "type") == "LoadBalancer" for body in (live, wanted))


def _is_unsuspended(live: Body, _wanted: Body) -> bool:
    return part(live, "spec", "suspend") is not True


def _is_counted(live: Body, wanted: Body) -> bool:
    """An indexed Job may change its completions together with its parallelism."""
    spec = {**mapping(live, "spec"), **mapping(wanted, "spec")}
    is_indexed = spec.get("completionMode") == "Indexed"
    return not is_indexed or spec.get("completions") != spec.get("parallelism")


def _cannot_grow(live: Body, wanted: Body) -> bool:
    """A claim can ask for more once it is bound, and never for less."""
    path = ("spec", "resources", "requests", "storage")
    before, after = (quantity_of(part(body, *path)) for body in (live, wanted))
    is_less = before is not None and after is not None and after < before
    return is_less or text(live, "status", "phase") != "Bound"


def _is_established(live: Body, _wanted: Body) -> bool:
    return any(
        condition.get("type") == "Established" and condition.get("status") == "True"
        for condition in mappings(live, "status", "conditions")
    )


def _lengthens_life(live: Body, wanted: Body) -> bool:
    """A pod's deadline can be set once, and then only come closer."""
    before, after = (part(body, "spec", "activeDeadlineSeconds") for body in (live, wanted))
    if not isinstance(before, int):
        return False
    return not isinstance(after, int) or after > before


SELECTOR = (Frozen(at("spec.selector")),)
ROLE = (Frozen(at("roleRef")),)
WHOLE_SPEC = (Frozen(at("spec")),)
DATA = tuple(Frozen(at(name), (), _holds("immutable", True)) for name in ("data", "immutable"))
VOLUME_MAY = (
    "accessModes capacity claimRef mountOptions nodeAffinity persistentVolumeReclaimPolicy "
    "storageClassName volumeAttributesClassName"
)
POD_MAY = "containers.image initContainers.image activeDeadlineSeconds tolerations schedulingGates"
SCHEDULING = (
    "metadata.labels metadata.annotations spec.nodeSelector spec.tolerations "
    "spec.schedulingGates spec.affinity.nodeAffinity "
    "spec.containers.resources spec.initContainers.resources"
)
STATEFUL_SET_MAY = (
    "replicas ordinals template updateStrategy revisionHistoryLimit "
    "persistentVolumeClaimRetentionPolicy minReadySeconds"
)
CLAIM_MAY = "resources.requests volumeAttributesClassName volumeName storageClassName"

ROWS: dict[tuple[str, str], tuple[Frozen, ...]] = {
    ("", "ConfigMap"): (*DATA, Frozen(at("binaryData"), (), _holds("immutable", True))),
    ("", "Secret"): (*DATA, Frozen(at("type"))),
    ("", "Service"): (
        Frozen(at("spec.clusterIP"), (), _has_own_address),
        Frozen(at("spec.clusterIPs"), (), _has_own_address),
        Frozen(at("spec.ipFamilies"), (), _keeps_families),
        Frozen(at("spec.loadBalancerClass"), (), _stays_balanced),
        Frozen(at("spec.healthCheckNodePort"), (), _is_set("spec.healthCheckNodePort")),
    ),
    ("", "Pod"): (
        Frozen(at("spec"), _each("spec", POD_MAY)),
        Frozen(at("spec.activeDeadlineSeconds"), (), _lengthens_life),
    ),
    ("", "PersistentVolumeClaim"): (
        Frozen(at("spec"), _each("spec", CLAIM_MAY)),
        Frozen(at("spec.resources.requests"), (), _cannot_grow),
        Frozen(at("spec.volumeName"), (), _is_set("spec.volumeName")),
        Frozen(at("spec.storageClassName"), (), _is_set("spec.storageClassName")),
    ),
    ("", "PersistentVolume"): (
        Frozen(at("spec"), _each("spec", VOLUME_MAY)),
        Frozen(at("spec.nodeAffinity"), (), _is_set("spec.nodeAffinity")),
    ),
    ("apps", "ControllerRevision"): (Frozen(at("data")),),
    ("apps", "DaemonSet"): SELECTOR,
    ("apps", "Deployment"): SELECTOR,
    ("apps", "ReplicaSet"): SELECTOR,
    ("apps", "StatefulSet"): (Frozen(at("spec"), _each("spec", STATEFUL_SET_MAY)),),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): (
        Frozen(at("spec.group")),
        Frozen(at("spec.names.plural")),
        Frozen(at("spec.names.kind"), (), _is_established),
        Frozen(at("spec.scope"), (), _is_established),
    ),
    ("batch", "Job"): (
        *map(
            Frozen,
            _each(
                "spec",
                "selector completionMode podFailurePolicy backoffLimitPerIndex managedBy "
                "successPolicy",
            ),
        ),
        Frozen(at("spec.completions"), (), _is_counted),
        Frozen(at("spec.template"), (), _is_unsuspended),
        Frozen(at("spec.template"), _each("spec.template", SCHEDULING)),
    ),
    ("certificates.k8s.io", "CertificateSigningRequest"): WHOLE_SPEC,
    ("certificates.k8s.io", "ClusterTrustBundle"): (Frozen(at("spec.signerName")),),
    ("coordination.k8s.io", "LeaseCandidate"): (Frozen(at("spec.leaseName")),),
    ("discovery.k8s.io", "EndpointSlice"): (Frozen(at("addressType")),),
    ("networking.k8s.io", "IPAddress"): (Frozen(at("spec.parentRef")),),
    ("networking.k8s.io", "IngressClass"): (Frozen(at("spec.controller")),),
    ("networking.k8s.io", "ServiceCIDR"): (Frozen(at("spec.cidrs")),),
    ("node.k8s.io", "RuntimeClass"): (Frozen(at("handler")),),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): ROLE,
    ("rbac.authorization.k8s.io", "RoleBinding"): ROLE,
    ("resource.k8s.io", "ResourceClaim"): WHOLE_SPEC,
    ("resource.k8s.io", "ResourceClaimTemplate"): WHOLE_SPEC,
    ("scheduling.k8s.io", "PriorityClass"): (Frozen(at("value")), Frozen(at("preemptionPolicy"))),
    ("storage.k8s.io", "CSIDriver"): tuple(
        map(Frozen, _each("spec", "attachRequired volumeLifecycleModes"))
    ),
    ("storage.k8s.io", "CSIStorageCapacity"): (
        Frozen(at("nodeTopology")),
        Frozen(at("storageClassName")),
    ),
    ("storage.k8s.io", "StorageClass"): tuple(
        Frozen((name,))
        for name in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")
    ),
    ("storage.k8s.io", "VolumeAttachment"): WHOLE_SPEC,
    ("storage.k8s.io", "VolumeAttributesClass"): (
        Frozen(at("driverName")),
        Frozen(at("parameters")),
    ),
    ("storagemigration.k8s.io", "StorageVersionMigration"): WHOLE_SPEC,
}


def find_frozen(changed: Iterable[Names], live: Body, wanted: Body) -> tuple[Names, ...]:
    """Those of the changed places that cannot be changed."""
    kind = Kind.of(text(wanted, "apiVersion"), text(wanted, "kind"))
    rows = ROWS.get((kind.group, kind.name), ())
    standing = [row for row in rows if row.when(live, wanted)]
    return tuple(names for names in changed if any(_stays(names, row) for row in standing))


def _stays(names: Names, row: Frozen) -> bool:
    is_touched = names[: len(row.place)] == row.place or row.place[: len(names)] == names
    return is_touched and not any(names[: len(free)] == free for free in row.free)
