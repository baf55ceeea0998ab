"""Hooks: the phase of a sync or deletion in which an object runs, and when it is deleted.

For the phases of a sync, Argo CD's annotation wins over Helm's on the same object; deletion phases
are read from both. A hook without a known phase is neither applied nor run, like in Argo CD.

Like `Types` in `gitops-engine/pkg/sync/hook/hook.go` of Argo CD 3.6.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

import msgspec

from tidegate.dialect.argo.options import split_list, string_annotations
from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import JsonObject
from tidegate.model.plans.manifest import Phase
from tidegate.model.plans.plan import HookPolicy

HOOK = "argocd.argoproj.io/hook"
DELETE_POLICY = "argocd.argoproj.io/hook-delete-policy"
HELM_HOOK = "helm.sh/hook"
HELM_DELETE_POLICY = "helm.sh/hook-delete-policy"
CRD_INSTALL = "crd-install"
HELM_PREFIX = "helm.sh/"
Value = TypeVar("Value")


class DeletionPhase(StrEnum):
    """Phase of the deletion of a unit: before or after its objects are deleted."""

    PRE_DELETE = "PreDelete"
    POST_DELETE = "PostDelete"


PHASES = {
    "PreSync": Phase.PRE_SYNC,
    "Sync": Phase.SYNC,
    "PostSync": Phase.POST_SYNC,
    "SyncFail": Phase.SYNC_FAIL,
    "Skip": None,
}
HELM_PHASES = {
    "pre-install": Phase.PRE_SYNC,
    "pre-upgrade": Phase.PRE_SYNC,
    "post-install": Phase.POST_SYNC,
    "post-upgrade": Phase.POST_SYNC,
}
DELETION_PHASES = {phase.value: phase for phase in DeletionPhase}
HELM_DELETION_PHASES = {
    "pre-delete": DeletionPhase.PRE_DELETE,
    "post-delete": DeletionPhase.POST_DELETE,
}
DELETE_POLICIES = {policy.value: policy for policy in HookPolicy}
HELM_DELETE_POLICIES = {
    "before-hook-creation": HookPolicy.BEFORE_CREATION,
    "hook-succeeded": HookPolicy.SUCCEEDED,
    "hook-failed": HookPolicy.FAILED,
}


class Hook(msgspec.Struct, frozen=True):
    """Phases of a hook. A hook without any phase is neither applied nor run."""

    phases: tuple[Phase, ...]
    deletion_phases: tuple[DeletionPhase, ...]
    policies: tuple[HookPolicy, ...]


def read_hook(body: JsonObject) -> Hook | None:
    """Read the hook annotations of an object; None for an ordinary object."""
    annotations = string_annotations(body)
    if HOOK not in annotations and annotations.get(HELM_HOOK, CRD_INSTALL) == CRD_INSTALL:
        return None
    argo, helm = split_list(annotations.get(HOOK, "")), split_list(annotations.get(HELM_HOOK, ""))
    phases = _lookup(PHASES, argo) or _lookup(HELM_PHASES, helm)
    deletion_phases = dict.fromkeys(
        (*_lookup(DELETION_PHASES, argo), *_lookup(HELM_DELETION_PHASES, helm))
    )
    return Hook(
        tuple(phase for phase in phases if phase is not None),
        tuple(deletion_phases),
        _delete_policies(annotations),
    )


def with_helm_annotations_only(body: JsonObject) -> JsonObject:
    """Return the body with Helm's annotations only; Helm ignores all others."""
    metadata = get_mapping(body, "metadata")
    annotations = {
        key: value for key, value in string_annotations(body).items() if key.startswith(HELM_PREFIX)
    }
    return {**body, "metadata": {**metadata, "annotations": {**annotations}}}


def _delete_policies(annotations: dict[str, str]) -> tuple[HookPolicy, ...]:
    """Return the delete policies of both annotations."""
    argo = _lookup(DELETE_POLICIES, split_list(annotations.get(DELETE_POLICY, "")))
    helm = _lookup(HELM_DELETE_POLICIES, split_list(annotations.get(HELM_DELETE_POLICY, "")))
    return tuple(dict.fromkeys((*argo, *helm))) or (HookPolicy.BEFORE_CREATION,)


def _lookup(table: Mapping[str, Value], names: tuple[str, ...]) -> tuple[Value, ...]:
    return tuple(dict.fromkeys(table[name] for name in names if name in table))
