"""Argo CD's order in a unit: phase, wave, kind, name.

Like `sync_tasks.go` of gitops-engine. A Namespace comes before the first object in it, and a CRD
before the first object of its kind, even if their waves are higher. Consecutive objects of one kind
are written at once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from itertools import groupby
from typing import TypeVar

from tidegate.model.plans.manifest import PHASE_INDEXES, Manifest, Phase
from tidegate.model.plans.plan import ItemAction

KIND_ORDER = (  # noqa: SIM905 - thirty lines of one word each read worse
    "Namespace NetworkPolicy ResourceQuota LimitRange PodSecurityPolicy PodDisruptionBudget "
    "ServiceAccount Secret SecretList ConfigMap StorageClass PersistentVolume "
    "PersistentVolumeClaim CustomResourceDefinition ClusterRole ClusterRoleList "
    "ClusterRoleBinding ClusterRoleBindingList Role RoleList RoleBinding RoleBindingList "
    "Service DaemonSet Pod ReplicationController ReplicaSet Deployment HorizontalPodAutoscaler "
    "StatefulSet Job CronJob IngressClass Ingress APIService"
).split()
_RANK = {kind: rank for rank, kind in enumerate(KIND_ORDER)}
WavePosition = tuple[Phase, int]
"""A phase and a wave."""
SortKey = tuple[int, int, int, str, str, str, str, bytes]
Key = TypeVar("Key", bound=Hashable)


class StepGroup:
    """The objects of one step, in batches."""

    def __init__(self, phase: Phase, wave: int, stage: str, manifests: list[Manifest]) -> None:
        self.phase = phase
        self.wave = wave
        self.stage = stage
        self.manifests = tuple(manifests)
        written = (manifest for manifest in manifests if manifest.action is not ItemAction.SKIP)
        kinds = groupby(written, key=lambda manifest: manifest.ref.kind.name)
        self.batches = tuple(tuple(batch) for _, batch in kinds)
        is_hook = any(manifest.hook_policies is not None for manifest in manifests)
        self.hook_event = stage.partition("/")[0] if stage and is_hook else phase
        """The event that hooks run for. A hook runs once for each event."""

    @property
    def runs_on_failure(self) -> bool:
        return self.phase is Phase.SYNC_FAIL


def sort_key(manifest: Manifest) -> SortKey:
    """Return the sort key: phase, wave, rank of the kind, name. The rest only makes it
    deterministic.

    Objects whose kinds have no rank are sorted by name first.
    """
    ref = manifest.ref
    kind = ref.kind
    return (
        PHASE_INDEXES[manifest.phase],
        manifest.wave,
        _RANK.get(kind.name, len(_RANK)),
        ref.name,
        kind.name,
        kind.group,
        ref.namespace,
        manifest.body,
    )


def group_by_wave(manifests: tuple[Manifest, ...], *, namespace: str = "") -> list[StepGroup]:
    """Return the steps of a unit in order. Objects without a namespace count as in `namespace`."""
    positioned = [
        (manifest, _wave_position(manifest)) for manifest in sorted(manifests, key=sort_key)
    ]
    positioned = _move_before_first_use(
        positioned,
        provided_key=_provided_namespace,
        required_key=lambda manifest: manifest.ref.namespace or namespace,
    )
    positioned = _move_before_first_use(
        positioned, provided_key=_defined_kind, required_key=_required_kind
    )
    return [
        StepGroup(phase, wave, "", [manifest for manifest, _ in members])
        for (phase, wave), members in groupby(positioned, key=lambda pair: pair[1])
    ]


def _wave_position(manifest: Manifest) -> WavePosition:
    """Return the phase and wave of a manifest. All hooks of the failure phase run at once."""
    return (manifest.phase, 0 if manifest.phase is Phase.SYNC_FAIL else manifest.wave)


def _move_before_first_use(
    positioned: list[tuple[Manifest, WavePosition]],
    *,
    provided_key: Callable[[Manifest], Key | None],
    required_key: Callable[[Manifest], Key],
) -> list[tuple[Manifest, WavePosition]]:
    """Move each provider to the position of the first object that requires it, before it."""
    first_use: dict[Key, int] = {}
    moved: dict[int, list[Manifest]] = {}
    removed: set[int] = set()
    for index, (manifest, _) in enumerate(positioned):
        provided = provided_key(manifest)
        if provided is None:
            first_use.setdefault(required_key(manifest), index)
        elif provided in first_use:
            moved.setdefault(first_use[provided], []).append(manifest)
            removed.add(index)
    if not moved:
        return positioned
    result: list[tuple[Manifest, WavePosition]] = []
    for index, (manifest, position) in enumerate(positioned):
        result += [(provider, position) for provider in moved.get(index, ())]
        if index not in removed:
            result.append((manifest, position))
    return result


def _provided_namespace(manifest: Manifest) -> str | None:
    kind = manifest.ref.kind
    return manifest.ref.name if (kind.group, kind.name) == ("", "Namespace") else None


def _defined_kind(manifest: Manifest) -> tuple[str, str] | None:
    return manifest.defined_kind if all(manifest.defined_kind) else None


def _required_kind(manifest: Manifest) -> tuple[str, str]:
    return (manifest.ref.kind.group, manifest.ref.kind.name)
