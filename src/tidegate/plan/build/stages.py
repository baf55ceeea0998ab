"""Flux's order in a unit: definitions, classes, everything else; by kind in each stage."""

from __future__ import annotations

from collections.abc import Collection

from tidegate.model.k8s.objects import Ref
from tidegate.model.plans.manifest import Manifest, Phase
from tidegate.plan.build.waves import StepGroup

FIRST_KINDS = (  # noqa: SIM905 - thirty lines of one word each read worse
    "CustomResourceDefinition Namespace ClusterRole ClusterClass RuntimeClass PriorityClass "
    "StorageClass VolumeSnapshotClass IngressClass GatewayClass ClusterRoleBinding "
    "ResourceQuota ServiceAccount Role RoleBinding ConfigMap Secret Service LimitRange "
    "Deployment StatefulSet CronJob PodDisruptionBudget"
).split()
LAST_KINDS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
STAGES = ("definitions", "classes", "rest")
PREREQUISITE_STAGES = frozenset(STAGES[:2])
"""Stages that Flux always waits for."""
_RANK = {kind: rank for rank, kind in enumerate(FIRST_KINDS)} | {
    kind: len(FIRST_KINDS) + 1 + rank for rank, kind in enumerate(LAST_KINDS)
}
_DEFINITION_KINDS = frozenset(
    {
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        ("", "Namespace"),
        ("rbac.authorization.k8s.io", "ClusterRole"),
    }
)


def group_by_stage(
    manifests: tuple[Manifest, ...], first: Collection[tuple[str, str]] = ()
) -> list[StepGroup]:
    """Return the steps of a unit in order, without stages that have no objects.

    Kinds in `first` come before the rest. They are not a separate step, because nothing waits for
    them.
    """

    def sort_key(manifest: Manifest) -> tuple[bool, tuple[int, str, str, str, str], bytes]:
        kind = manifest.ref.kind
        return (kind.group, kind.name) not in first, object_rank(manifest.ref), manifest.body

    ordered = sorted(manifests, key=sort_key)
    members = {
        stage: [manifest for manifest in ordered if _stage(manifest) == stage] for stage in STAGES
    }
    return [
        StepGroup(Phase.SYNC, 0, stage, stage_manifests)
        for stage, stage_manifests in members.items()
        if stage_manifests
    ]


def _stage(manifest: Manifest) -> str:
    kind = manifest.ref.kind
    if (kind.group, kind.name) in _DEFINITION_KINDS:
        return "definitions"
    return "classes" if kind.name.endswith("Class") else "rest"


def object_rank(ref: Ref) -> tuple[int, str, str, str, str]:
    """Return the sort key of an object; deletions use the reverse order."""
    rank = _RANK.get(ref.kind.name, len(FIRST_KINDS))
    return (rank, ref.kind.group, ref.kind.name, ref.namespace, ref.name)
