"""Argo CD's order inside a unit: phase, wave, kind, name.

A Namespace goes before the first object in it, and a definition before the first object of its
kind, even where their own waves say otherwise. Objects of one kind in a row are written at once.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby

from tidegate.model.manifest import Manifest, Phase
from tidegate.model.plan import Because

PHASES = tuple(Phase)
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


class Group:
    """Objects that belong to one step, as batches."""

    def __init__(self, phase: Phase, wave: int, stage: str, manifests: list[Manifest]) -> None:
        self.phase = phase
        self.wave = wave
        self.stage = stage
        kinds = groupby(manifests, key=lambda one: one.ref.kind.name)
        self.batches = tuple(tuple(batch) for _, batch in kinds)

    @property
    def is_rescue(self) -> bool:
        return self.phase is Phase.SYNC_FAIL

    def because_of(self, before: Group) -> Because:
        if self.stage:
            return Because.STAGE
        return Because.WAVE if self.phase == before.phase else Because.PHASE


def sort_key(manifest: Manifest) -> tuple[int, int, int, str, str]:
    kind = manifest.ref.kind.name
    return (
        PHASES.index(manifest.phase),
        manifest.wave,
        _RANK.get(kind, len(_RANK)),
        "" if kind in _RANK else kind,
        manifest.ref.name,
    )


def group_by_wave(manifests: tuple[Manifest, ...]) -> list[Group]:
    """The steps of a unit, in their order."""
    placed = [(one, _place_of(one)) for one in sorted(manifests, key=sort_key)]
    placed = _bubble(placed, is_needed=_is_namespace_of)
    placed = _bubble(placed, is_needed=_is_definition_of)
    return [
        Group(phase, wave, "", [one for one, _ in members])
        for (phase, wave), members in groupby(placed, key=lambda pair: pair[1])
    ]


def _place_of(manifest: Manifest) -> Place:
    """What runs after a failure runs all at once."""
    return (manifest.phase, 0 if manifest.phase is Phase.SYNC_FAIL else manifest.wave)


def _bubble(
    placed: list[tuple[Manifest, Place]], *, is_needed: Callable[[Manifest, Manifest], bool]
) -> list[tuple[Manifest, Place]]:
    """Move what others need before the first of them; it takes over that one's place."""
    result = list(placed)
    for needed, _ in placed:
        at = next(index for index, (one, _) in enumerate(result) if one is needed)
        first = next(
            (index for index, (one, _) in enumerate(result[:at]) if is_needed(needed, one)), None
        )
        if first is not None:
            del result[at]
            result.insert(first, (needed, result[first][1]))
    return result


def _is_namespace_of(needed: Manifest, other: Manifest) -> bool:
    kind = needed.ref.kind
    return (kind.group, kind.name) == ("", "Namespace") and other.ref.namespace == needed.ref.name


def _is_definition_of(needed: Manifest, other: Manifest) -> bool:
    kind = other.ref.kind
    return needed.defines == (kind.group, kind.name)
