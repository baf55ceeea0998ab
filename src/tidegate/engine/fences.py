"""Fences: does a health verdict refer to what was applied? Pure checks of one object.

One table lists how each kind shows that its status is current. Other kinds are checked by their
`observedGeneration`, if they have one. Without it, built-in Kubernetes kinds have no status
that is written later, and custom resources get some time to write one.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tidegate.engine.messages import HealthChanged, WrittenObject
from tidegate.model.k8s.objects import Kind
from tidegate.model.times import Ms


class FreshnessCheck(StrEnum):
    """How a kind shows that its status refers to the current spec."""

    OBSERVED_GENERATION = "observedGeneration"
    CONDITION_GENERATION = "observedGeneration of the condition"
    STATUS_CHANGED = "a newer status"
    UID = "the uid"
    NONE = "no check"


_CHECKS_BY_GROUP: dict[str, dict[FreshnessCheck, tuple[str, ...]]] = {
    "": {
        FreshnessCheck.OBSERVED_GENERATION: ("ReplicationController",),
        FreshnessCheck.STATUS_CHANGED: ("PersistentVolumeClaim", "PersistentVolume"),
        FreshnessCheck.UID: ("Pod",),
    },
    "apps": {
        FreshnessCheck.OBSERVED_GENERATION: ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")
    },
    "batch": {FreshnessCheck.UID: ("Job",)},
    "policy": {FreshnessCheck.OBSERVED_GENERATION: ("PodDisruptionBudget",)},
    # Released HorizontalPodAutoscalers have no generation and report no observed one.
    "autoscaling": {FreshnessCheck.STATUS_CHANGED: ("HorizontalPodAutoscaler",)},
    "networking.k8s.io": {FreshnessCheck.STATUS_CHANGED: ("Ingress",)},
    "apiregistration.k8s.io": {FreshnessCheck.STATUS_CHANGED: ("APIService",)},
    "apiextensions.k8s.io": {FreshnessCheck.UID: ("CustomResourceDefinition",)},
    "gateway.networking.k8s.io": {
        FreshnessCheck.CONDITION_GENERATION: (
            "Gateway",
            "GatewayClass",
            "HTTPRoute",
            "GRPCRoute",
            "TLSRoute",
        )
    },
    "cert-manager.io": {
        FreshnessCheck.CONDITION_GENERATION: ("Certificate", "Issuer", "ClusterIssuer")
    },
}
CHECKS = {
    (group, name): proof
    for group, proofs in _CHECKS_BY_GROUP.items()
    for proof, names in proofs.items()
    for name in names
}
PROBED_KINDS = frozenset(
    {
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
    }
)
"""Kinds that promise a service: their gate probes the service before it opens."""
KUBERNETES_GROUP_SUFFIXES = (".k8s.io",)
KUBERNETES_GROUPS = frozenset({"", "apps", "batch", "autoscaling", "policy", "extensions"})


def freshness_check(kind: Kind) -> FreshnessCheck:
    """Return how a kind shows that its status is current."""
    check = CHECKS.get((kind.group, kind.name))
    if check is not None:
        return check
    is_built_in = kind.group in KUBERNETES_GROUPS or kind.group.endswith(KUBERNETES_GROUP_SUFFIXES)
    return FreshnessCheck.NONE if is_built_in else FreshnessCheck.STATUS_CHANGED


def needs_probe(kind: Kind) -> bool:
    """Return whether the gate of a kind needs a probe."""
    return (kind.group, kind.name) in PROBED_KINDS


class FenceReason(msgspec.Struct, frozen=True, gc=False):
    """Why a health verdict does not count yet."""

    reason: str
    message: str
    until: Ms | None = None
    """Time from which the verdict is accepted without proof; None if it never is."""


def check_fence(
    written: WrittenObject, health: HealthChanged, *, accept_after: Ms
) -> FenceReason | None:
    """Return why a verdict does not refer to what was applied; None if it does.

    `accept_after` is the time from which kinds that cannot show it are accepted.
    """
    if health.uid != written.uid:
        return FenceReason("AnotherObject", "the live object is not the one that was applied")
    if health.generation < written.generation or is_older(health.version, written.version):
        return FenceReason("OlderState", "only the state before the write is known")
    observed = health.verdict.observed_generation
    if observed:
        return (
            None if observed >= written.generation else _not_observed(observed, written.generation)
        )
    match freshness_check(health.object_ref.ref.kind):
        case FreshnessCheck.OBSERVED_GENERATION:
            return _not_observed(observed, written.generation)
        case FreshnessCheck.NONE | FreshnessCheck.UID:
            return None
        case FreshnessCheck.STATUS_CHANGED | FreshnessCheck.CONDITION_GENERATION:
            return _check_status_changed(written, health, accept_after)


def needs_verification(
    written: WrittenObject, health: HealthChanged, verified: tuple[int, str]
) -> bool:
    """Return whether the object may have been changed since our write and was not verified since.

    Each change of the spec increases the generation. Kinds without a generation get a new
    resourceVersion with every change.
    """
    if health.uid != written.uid or is_older(health.version, written.version):
        return False
    generation, version = verified
    if health.generation:
        return health.generation > max(written.generation, generation)
    return health.version not in (written.version, version)


def _check_status_changed(
    written: WrittenObject, health: HealthChanged, accept_after: Ms
) -> FenceReason | None:
    if written.trusted or health.status_digest != written.status_digest:
        return None
    return FenceReason("NoNewerStatus", "status not updated since apply", until=accept_after)


def _not_observed(observed: int, expected: int) -> FenceReason:
    if not observed:
        return FenceReason("NotObserved", "its controller has not observed it yet")
    return FenceReason(
        "NotObserved", f"its controller observed generation {observed}, but {expected} is current"
    )


def is_older(version: str, other: str) -> bool:
    """Return whether one resourceVersion of an object precedes another.

    Both are compared as integers.
    """
    return version.isdecimal() and other.isdecimal() and int(version) < int(other)
