"""What of a built-in kind cannot be changed once it is there, as Kubernetes 1.36 validates updates.

A row names a place that stays, the places below it that may change all the same, when it holds, and
what a server says. Custom kinds freeze fields by rules of their own: only a server knows those.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from tidegate.model.objects import Json
from tidegate.model.quantity import quantity_of
from tidegate.model.reading import listed, mapping, mappings, part, text
from tidegate.schema.causes import forbidden
from tidegate.world.facts import Cause

Body: TypeAlias = dict[str, Json]
Names: TypeAlias = tuple[str, ...]
"""The fields that lead to a place; items of lists are not told apart."""
Condition: TypeAlias = Callable[[Body, Body], bool]

IMMUTABLE = "field is immutable"
IF_MARKED = "field is immutable when `immutable` is set"
OUT_OF_STEP = "can only be modified in tandem with spec.parallelism"
STATEFUL_SET = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
    "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
    "'minReadySeconds' are forbidden"
)
CLAIM = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName "
    "for bound claims"
)
POD = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set "
    "to 1 if it was previously negative)"
)
SMALLER = "field can not be less than status.capacity"
CONTAINERS = "pod updates may not add or remove containers"


class Frozen(NamedTuple):
    """A place that stays, as long as `when(live, wanted)`."""

    place: Names
    free: tuple[Names, ...] = ()
    when: Condition = lambda _live, _wanted: True
    message: str = IMMUTABLE
    field: str = ""
    """What the server calls the place, where it is not its path."""
    unsaid: Callable[[Body], Json] = lambda _body: None
    """What stands there where nothing is said."""

    def cause(self) -> Cause:
        field = self.field or ".".join(self.place)
        if self.message in {IMMUTABLE, OUT_OF_STEP}:
            return Cause(field, "FieldValueInvalid", f"Invalid value: {self.message}")
        return forbidden(field, self.message)


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


def _says(value: Json) -> Callable[[Body], Json]:
    return lambda _body: value


def _is_suspended(live: Body, _wanted: Body) -> bool:
    return part(live, "spec", "suspend") is True


def _is_unsuspended(live: Body, wanted: Body) -> bool:
    return not _is_suspended(live, wanted)


def _is_counted(live: Body, wanted: Body) -> bool:
    return not _is_indexed(live, wanted)


def _is_out_of_step(live: Body, wanted: Body) -> bool:
    """An indexed Job may change its completions together with its parallelism."""
    spec = {**mapping(live, "spec"), **mapping(wanted, "spec")}
    return _is_indexed(live, wanted) and spec.get("completions") != spec.get("parallelism", 1)


def _is_indexed(live: Body, wanted: Body) -> bool:
    spec = {**mapping(live, "spec"), **mapping(wanted, "spec")}
    return spec.get("completionMode") == "Indexed"


def _completions(job: Body) -> Json:
    """One, where a Job says nothing of how many pods it wants."""
    return 1 if part(job, "spec", "parallelism") is None else None


def _is_unbound(live: Body, _wanted: Body) -> bool:
    return text(live, "status", "phase") != "Bound"


def _shrinks(live: Body, wanted: Body) -> bool:
    path = ("spec", "resources", "requests", "storage")
    before, after = (quantity_of(part(body, *path)) for body in (live, wanted))
    return before is not None and after is not None and after < before


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


def _is_of_another_length(live: Body, wanted: Body) -> bool:
    before, after = (len(listed(body, "spec", "containers")) for body in (live, wanted))
    return before != after


SELECTOR = (Frozen(at("spec.selector")),)
ROLE = (Frozen(at("roleRef")),)
WHOLE_SPEC = (Frozen(at("spec")),)
DATA = tuple(
    Frozen(at(name), (), _holds("immutable", True), IF_MARKED) for name in ("data", "immutable")
)
VOLUME_MAY = (
    "accessModes capacity claimRef mountOptions nodeAffinity persistentVolumeReclaimPolicy "
    "storageClassName volumeAttributesClassName"
)
POD_MAY = (
    "containers.image initContainers.image activeDeadlineSeconds tolerations schedulingGates "
    "ephemeralContainers nodeName"
)
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
    ("", "ConfigMap"): (
        *DATA,
        Frozen(at("binaryData"), (), _holds("immutable", True), IF_MARKED),
    ),
    ("", "Secret"): (*DATA, Frozen(at("type"), unsaid=_says("Opaque"))),
    ("", "Service"): (
        Frozen(at("spec.clusterIP"), (), _has_own_address, field="spec.clusterIPs[0]"),
        Frozen(at("spec.clusterIPs"), (), _has_own_address),
        Frozen(at("spec.ipFamilies"), (), _keeps_families, unsaid=_says(["IPv4"])),
        Frozen(at("spec.loadBalancerClass"), (), _stays_balanced),
        Frozen(at("spec.healthCheckNodePort"), (), _is_set("spec.healthCheckNodePort")),
    ),
    ("", "Pod"): (
        Frozen(
            at("spec.containers"),
            (at("spec.containers.image"),),
            _is_of_another_length,
            CONTAINERS,
        ),
        Frozen(at("spec"), _each("spec", POD_MAY), message=POD),
        Frozen(at("spec.activeDeadlineSeconds"), (), _lengthens_life, POD, "spec"),
        Frozen(at("spec.nodeName"), (), _is_set("spec.nodeName"), POD, "spec"),
    ),
    ("", "PersistentVolumeClaim"): (
        Frozen(at("spec"), _each("spec", CLAIM_MAY), message=CLAIM),
        Frozen(at("spec.resources.requests"), (), _is_unbound, CLAIM, "spec"),
        Frozen(at("spec.resources.requests.storage"), (), _shrinks, SMALLER),
        *(
            Frozen(at(place), (), _is_set(place), CLAIM, "spec")
            for place in ("spec.volumeName", "spec.storageClassName")
        ),
    ),
    ("", "PersistentVolume"): (
        Frozen(at("spec"), _each("spec", VOLUME_MAY)),
        Frozen(at("spec.nodeAffinity"), (), _is_set("spec.nodeAffinity")),
    ),
    ("apps", "ControllerRevision"): (Frozen(at("data")),),
    ("apps", "DaemonSet"): SELECTOR,
    ("apps", "Deployment"): SELECTOR,
    ("apps", "ReplicaSet"): SELECTOR,
    ("apps", "StatefulSet"): (
        Frozen(at("spec"), _each("spec", STATEFUL_SET_MAY), message=STATEFUL_SET),
    ),
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
                "selector podFailurePolicy backoffLimitPerIndex managedBy successPolicy",
            ),
        ),
        Frozen(at("spec.completionMode"), unsaid=_says("NonIndexed")),
        Frozen(at("spec.completions"), (), _is_counted, unsaid=_completions),
        Frozen(at("spec.completions"), (), _is_out_of_step, OUT_OF_STEP),
        Frozen(at("spec.template"), (), _is_unsuspended),
        Frozen(
            at("spec.template"),
            _each("spec.template", SCHEDULING),
            _is_suspended,
            field="spec.template.spec",
        ),
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
    ("scheduling.k8s.io", "PriorityClass"): (
        Frozen(at("value")),
        Frozen(at("preemptionPolicy"), unsaid=_says("PreemptLowerPriority")),
    ),
    ("storage.k8s.io", "CSIDriver"): (
        Frozen(at("spec.attachRequired"), unsaid=_says(True)),
        Frozen(at("spec.volumeLifecycleModes"), unsaid=_says(["Persistent"])),
    ),
    ("storage.k8s.io", "CSIStorageCapacity"): (
        Frozen(at("nodeTopology")),
        Frozen(at("storageClassName")),
    ),
    ("storage.k8s.io", "StorageClass"): (
        *(
            Frozen((name,), message=f"updates to {name} are forbidden.", unsaid=_says(unsaid))
            for name, unsaid in (
                ("parameters", None),
                ("provisioner", None),
                ("reclaimPolicy", "Delete"),
            )
        ),
        Frozen(at("volumeBindingMode"), unsaid=_says("Immediate")),
    ),
    ("storage.k8s.io", "VolumeAttachment"): WHOLE_SPEC,
    ("storage.k8s.io", "VolumeAttributesClass"): (
        Frozen(at("driverName")),
        Frozen(at("parameters")),
    ),
    ("storagemigration.k8s.io", "StorageVersionMigration"): WHOLE_SPEC,
}
