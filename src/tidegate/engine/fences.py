"""Does a verdict speak of what we applied? Pure questions about one object.

How a kind proves it is one table. Kinds that are not in it prove by the generation that they say
they have seen, where they say so; kinds of Kubernetes' own otherwise have no status that lags
behind, and those of others are given a while to write one.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tidegate.engine.vocabulary import Judged, Written
from tidegate.model.moment import Ms
from tidegate.model.objects import Kind


class Proof(StrEnum):
    """How a kind proves that its status speaks of the present text."""

    OBSERVED = "observedGeneration"
    CONDITION = "the condition's observedGeneration"
    NEWER = "a newer status"
    IDENTITY = "its uid"
    NONE = "nothing to prove"


_PROOFS: dict[str, dict[Proof, tuple[str, ...]]] = {
    "": {
        Proof.OBSERVED: ("ReplicationController",),
        Proof.NEWER: ("PersistentVolumeClaim", "PersistentVolume"),
        Proof.IDENTITY: ("Pod",),
    },
    "apps": {Proof.OBSERVED: ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")},
    "batch": {Proof.IDENTITY: ("Job",)},
    "policy": {Proof.OBSERVED: ("PodDisruptionBudget",)},
    # Released autoscalers have no generation, and tell of none that they have seen.
    "autoscaling": {Proof.NEWER: ("HorizontalPodAutoscaler",)},
    "networking.k8s.io": {Proof.NEWER: ("Ingress",)},
    "apiregistration.k8s.io": {Proof.NEWER: ("APIService",)},
    "apiextensions.k8s.io": {Proof.IDENTITY: ("CustomResourceDefinition",)},
    "gateway.networking.k8s.io": {
        Proof.CONDITION: ("Gateway", "GatewayClass", "HTTPRoute", "GRPCRoute", "TLSRoute")
    },
    "cert-manager.io": {Proof.CONDITION: ("Certificate", "Issuer", "ClusterIssuer")},
}
TABLE = {
    (group, name): proof
    for group, proofs in _PROOFS.items()
    for proof, names in proofs.items()
    for name in names
}

PROBED = frozenset(
    {
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
    }
)
"""Kinds that promise a service: a gate asks for it before it opens."""

OWN_GROUPS = (".k8s.io",)
BARE_GROUPS = frozenset({"", "apps", "batch", "autoscaling", "policy", "extensions"})


def proof_of(kind: Kind) -> Proof:
    known = TABLE.get((kind.group, kind.name))
    if known is not None:
        return known
    own = kind.group in BARE_GROUPS or kind.group.endswith(OWN_GROUPS)
    return Proof.NONE if own else Proof.NEWER


def is_probed(kind: Kind) -> bool:
    return (kind.group, kind.name) in PROBED


class Doubt(msgspec.Struct, frozen=True, gc=False):
    """Why a verdict does not count; from `until` on it is accepted all the same, unproven."""

    reason: str
    sentence: str
    until: Ms | None = None


def doubt(written: Written, judged: Judged, *, lapses: Ms) -> Doubt | None:
    """What speaks against this verdict; None: it is about what we applied.

    `lapses`: from when on a kind that cannot prove anything is believed.
    """
    if judged.uid != written.uid:
        return Doubt("AnotherObject", "what is there is not the object that was applied")
    if judged.generation < written.generation or is_older(judged.version, written.version):
        return Doubt("OlderState", "only a state from before the write is known")
    seen = judged.verdict.speaks_of
    if seen:
        return None if seen >= written.generation else _unseen(seen, written.generation)
    match proof_of(judged.spot.ref.kind):
        case Proof.OBSERVED:
            return _unseen(seen, written.generation)
        case Proof.NONE | Proof.IDENTITY:
            return None
        case Proof.NEWER | Proof.CONDITION:
            return _unless_newer(written, judged, lapses)


def is_foreign(written: Written, judged: Judged, verified: tuple[int, str]) -> bool:
    """Whether somebody may have changed what we wrote, and nobody has looked yet.

    Each change of its text gives an object a new generation. Kinds without one have a new version
    with every change.
    """
    if judged.uid != written.uid or is_older(judged.version, written.version):
        return False
    generation, version = verified
    if judged.generation:
        return judged.generation > max(written.generation, generation)
    return judged.version not in (written.version, version)


def _unless_newer(written: Written, judged: Judged, lapses: Ms) -> Doubt | None:
    if written.trusted or judged.status != written.status:
        return None
    return Doubt("NoNewerStatus", "its status has not changed since the write", until=lapses)


def _unseen(seen: int, wanted: int) -> Doubt:
    if not seen:
        return Doubt("NotObserved", "its controller has not looked at it yet")
    return Doubt("NotObserved", f"its controller has seen generation {seen}, and not yet {wanted}")


def is_older(version: str, than: str) -> bool:
    """Whether one version of an object comes before another; versions are whole numbers."""
    return version.isdecimal() and than.isdecimal() and int(version) < int(than)
