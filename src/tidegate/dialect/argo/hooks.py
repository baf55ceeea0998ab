"""Hooks: which objects are run and not kept, when in a sync or at a unit's end, and until when.

For the phases of a sync, Argo CD's annotation wins over Helm's on the same object; hooks of a
unit's end are looked for in both. A hook that names nothing we know is left out of everything, as
Argo CD leaves it out.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

import msgspec

from tidegate.dialect.argo.options import Body, notes_of, read_list
from tidegate.model.manifest import Phase
from tidegate.model.plan import HookPolicy
from tidegate.model.reading import mapping

HOOK = "argocd.argoproj.io/hook"
POLICY = "argocd.argoproj.io/hook-delete-policy"
HELM_HOOK = "helm.sh/hook"
HELM_POLICY = "helm.sh/hook-delete-policy"
CRD_INSTALL = "crd-install"
HELM_NOTES = "helm.sh/"
Word = TypeVar("Word")


class End(StrEnum):
    """When a unit is deleted: before its objects, and after them."""

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
ENDS = {one.value: one for one in End}
HELM_ENDS = {"pre-delete": End.PRE_DELETE, "post-delete": End.POST_DELETE}
POLICIES = {one.value: one for one in HookPolicy}
HELM_POLICIES = {
    "before-hook-creation": HookPolicy.BEFORE_CREATION,
    "hook-succeeded": HookPolicy.SUCCEEDED,
    "hook-failed": HookPolicy.FAILED,
}


class Hook(msgspec.Struct, frozen=True):
    """When an object is run; without phases and ends it is neither run nor kept."""

    phases: tuple[Phase, ...]
    ends: tuple[End, ...]
    policies: tuple[HookPolicy, ...]


def read_hook(body: Body) -> Hook | None:
    """None: an ordinary object."""
    notes = notes_of(body)
    if HOOK not in notes and notes.get(HELM_HOOK, CRD_INSTALL) == CRD_INSTALL:
        return None
    argo, helm = read_list(notes.get(HOOK, "")), read_list(notes.get(HELM_HOOK, ""))
    phases = _known(PHASES, argo) or _known(HELM_PHASES, helm)
    ends = dict.fromkeys((*_known(ENDS, argo), *_known(HELM_ENDS, helm)))
    return Hook(
        tuple(phase for phase in phases if phase is not None), tuple(ends), _policies(notes)
    )


def as_helm_reads(body: Body) -> Body:
    """The body with no annotations but Helm's: those of others are notes to it."""
    metadata = mapping(body, "metadata")
    notes = {key: one for key, one in notes_of(body).items() if key.startswith(HELM_NOTES)}
    return {**body, "metadata": {**metadata, "annotations": {**notes}}}


def _policies(notes: dict[str, str]) -> tuple[HookPolicy, ...]:
    """What both annotations say together."""
    argo = _known(POLICIES, read_list(notes.get(POLICY, "")))
    helm = _known(HELM_POLICIES, read_list(notes.get(HELM_POLICY, "")))
    return tuple(dict.fromkeys((*argo, *helm))) or (HookPolicy.BEFORE_CREATION,)


def _known(words: Mapping[str, Word], said: tuple[str, ...]) -> tuple[Word, ...]:
    return tuple(dict.fromkeys(words[word] for word in said if word in words))
