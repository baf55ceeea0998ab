"""Flux's order inside a unit: definitions, classes, everything else; by kind in each."""

from __future__ import annotations

from collections.abc import Collection

from tidegate.model.manifest import Manifest, Phase
from tidegate.model.objects import Ref
from tidegate.plan.waves import StepGroup

FIRST = (  # noqa: SIM905 - thirty lines of one word each read worse
    "CustomResourceDefinition Namespace ClusterRole ClusterClass RuntimeClass PriorityClass "
    "StorageClass VolumeSnapshotClass IngressClass GatewayClass ClusterRoleBinding "
    "ResourceQuota ServiceAccount Role RoleBinding ConfigMap Secret Service LimitRange "
    "Deployment StatefulSet CronJob PodDisruptionBudget"
).split()
LAST = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
STAGES = ("definitions", "classes", "rest")
GROUND = frozenset(STAGES[:2])
"""What Flux waits for whatever a unit asks for."""
_RANK = {kind: rank for rank, kind in enumerate(FIRST)} | {
    kind: len(FIRST) + 1 + rank for rank, kind in enumerate(LAST)
}
_DEFINITIONS = frozenset(
    {
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        ("", "Namespace"),
        ("rbac.authorization.k8s.io", "ClusterRole"),
    }
)


def group_by_stage(
    manifests: tuple[Manifest, ...], first: Collection[tuple[str, str]] = ()
) -> list[StepGroup]:
    """The steps of a unit, in their order; stages without objects are left out.

    Kinds that are told to be `first` go before the rest. Nothing waits for them, so they are no
    step of their own.
    """

    def place(one: Manifest) -> tuple[bool, tuple[int, str, str, str, str], bytes]:
        kind = one.ref.kind
        return (kind.group, kind.name) not in first, rank_of(one.ref), one.body

    ordered = sorted(manifests, key=place)
    members = {stage: [one for one in ordered if _stage(one) == stage] for stage in STAGES}
    return [StepGroup(Phase.SYNC, 0, stage, found) for stage, found in members.items() if found]


def _stage(manifest: Manifest) -> str:
    kind = manifest.ref.kind
    if (kind.group, kind.name) in _DEFINITIONS:
        return "definitions"
    return "classes" if kind.name.endswith("Class") else "rest"


def rank_of(ref: Ref) -> tuple[int, str, str, str, str]:
    """Where an object stands among others; what is deleted goes the other way round."""
    rank = _RANK.get(ref.kind.name, len(FIRST))
    return (rank, ref.kind.group, ref.kind.name, ref.namespace, ref.name)
