"""Argo CD's order inside a unit: phase, wave, kind, name.

A Namespace goes before the first object in it, and a definition before the first object of its
kind, even where their own waves say otherwise. Objects of one kind in a row are written at once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from itertools import groupby
from typing import TypeVar

from tidegate.model.manifest import Manifest, Phase
from tidegate.model.plan import Deed

PHASES = {phase: place for place, phase in enumerate(Phase)}
KINDS = (  # noqa: SIM905 - thirty lines of one word each read worse
    "Namespace NetworkPolicy ResourceQuota LimitRange PodSecurityPolicy PodDisruptionBudget "
    "ServiceAccount Secret SecretList ConfigMap StorageClass PersistentVolume "
    "PersistentVolumeClaim CustomResourceDefinition ClusterRole ClusterRoleList "
    "ClusterRoleBinding ClusterRoleBindingList Role RoleList RoleBinding RoleBindingList "
    "Service DaemonSet Pod ReplicationController ReplicaSet Deployment HorizontalPodAutoscaler "
    "StatefulSet Job CronJob IngressClass Ingress APIService"
).split()
_RANK = {kind: rank for rank, kind in enumerate(KINDS)}

Place = tuple[Phase, int]
"""A phase and a wave."""
SortKey = tuple[int, int, int, str, str, str, str, bytes]
Key = TypeVar("Key", bound=Hashable)


class StepGroup:
    """Objects that belong to one step, as batches."""

    def __init__(self, phase: Phase, wave: int, stage: str, manifests: list[Manifest]) -> None:
        self.phase = phase
        self.wave = wave
        self.stage = stage
        self.manifests = tuple(manifests)
        written = (one for one in manifests if one.deed is not Deed.SKIP)
        kinds = groupby(written, key=lambda one: one.ref.kind.name)
        self.batches = tuple(tuple(batch) for _, batch in kinds)

    @property
    def event(self) -> str:
        """What a hook is run for: one that ran for something has yet to run for something else."""
        is_hook = any(one.hook is not None for one in self.manifests)
        return self.stage.partition("/")[0] if self.stage and is_hook else self.phase

    @property
    def is_rescue(self) -> bool:
        return self.phase is Phase.SYNC_FAIL


def sort_key(manifest: Manifest) -> SortKey:
    """Phase, wave, rank of the kind, name; what comes behind only makes the order a fixed one.

    Kinds without a rank are not told apart before their objects' names.
    """
    ref = manifest.ref
    kind = ref.kind
    return (
        PHASES[manifest.phase],
        manifest.wave,
        _RANK.get(kind.name, len(_RANK)),
        ref.name,
        kind.name,
        kind.group,
        ref.namespace,
        manifest.body,
    )


def group_by_wave(manifests: tuple[Manifest, ...], *, namespace: str = "") -> list[StepGroup]:
    """The steps of a unit, in their order. Objects without a namespace count as in `namespace`."""
    placed = [(one, _place_of(one)) for one in sorted(manifests, key=sort_key)]
    placed = _bubble(placed, brings=_namespace, needs=lambda one: one.ref.namespace or namespace)
    placed = _bubble(placed, brings=_defined_kind, needs=_kind)
    return [
        StepGroup(phase, wave, "", [one for one, _ in members])
        for (phase, wave), members in groupby(placed, key=lambda pair: pair[1])
    ]


def _place_of(manifest: Manifest) -> Place:
    """What runs after a failure runs all at once."""
    return (manifest.phase, 0 if manifest.phase is Phase.SYNC_FAIL else manifest.wave)


def _bubble(
    placed: list[tuple[Manifest, Place]],
    *,
    brings: Callable[[Manifest], Key | None],
    needs: Callable[[Manifest], Key],
) -> list[tuple[Manifest, Place]]:
    """Move what others need before the first of them; it takes over that one's place."""
    first: dict[Key, int] = {}
    moved: dict[int, list[Manifest]] = {}
    left: set[int] = set()
    for at, (one, _) in enumerate(placed):
        brought = brings(one)
        if brought is None:
            first.setdefault(needs(one), at)
        elif brought in first:
            moved.setdefault(first[brought], []).append(one)
            left.add(at)
    if not moved:
        return placed
    result: list[tuple[Manifest, Place]] = []
    for at, (one, place) in enumerate(placed):
        result += [(needed, place) for needed in moved.get(at, ())]
        if at not in left:
            result.append((one, place))
    return result


def _namespace(manifest: Manifest) -> str | None:
    kind = manifest.ref.kind
    return manifest.ref.name if (kind.group, kind.name) == ("", "Namespace") else None


def _defined_kind(manifest: Manifest) -> tuple[str, str] | None:
    return manifest.defines if all(manifest.defines) else None


def _kind(manifest: Manifest) -> tuple[str, str]:
    return (manifest.ref.kind.group, manifest.ref.kind.name)
