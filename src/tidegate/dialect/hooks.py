"""Hooks: which objects are run and not kept, in which phases, and when they are deleted.

Argo CD's annotation wins over Helm's on the same object. A hook that names no phase we know is
left out of everything, as Argo CD leaves it out.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TypeVar

import msgspec

from tidegate.dialect.options import Body, notes_of, read_list
from tidegate.model.plan import HookPolicy

HOOK = "argocd.argoproj.io/hook"
POLICY = "argocd.argoproj.io/hook-delete-policy"
HELM_HOOK = "helm.sh/hook"
HELM_POLICY = "helm.sh/hook-delete-policy"
CRD_INSTALL = "crd-install"
Word = TypeVar("Word")


class HookType(StrEnum):
    PRE_SYNC = "PreSync"
    SYNC = "Sync"
    POST_SYNC = "PostSync"
    SYNC_FAIL = "SyncFail"
    SKIP = "Skip"
    PRE_DELETE = "PreDelete"
    POST_DELETE = "PostDelete"


HELM_TYPES = {
    "pre-install": HookType.PRE_SYNC,
    "pre-upgrade": HookType.PRE_SYNC,
    "post-install": HookType.POST_SYNC,
    "post-upgrade": HookType.POST_SYNC,
    "pre-delete": HookType.PRE_DELETE,
    "post-delete": HookType.POST_DELETE,
}
HELM_POLICIES = {
    "before-hook-creation": HookPolicy.BEFORE_CREATION,
    "hook-succeeded": HookPolicy.SUCCEEDED,
    "hook-failed": HookPolicy.FAILED,
}
TYPES = {one.value: one for one in HookType}
POLICIES = {one.value: one for one in HookPolicy}


class Hook(msgspec.Struct, frozen=True):
    """When an object is run; without types it never is."""

    types: tuple[HookType, ...]
    policies: tuple[HookPolicy, ...]

    @property
    def is_skipped(self) -> bool:
        """Neither run nor kept."""
        return not self.types or self.types == (HookType.SKIP,)


def read_hook(body: Body) -> Hook | None:
    """None: an ordinary object."""
    notes = notes_of(body)
    helm = notes.get(HELM_HOOK)
    if HOOK not in notes and (helm is None or helm == CRD_INSTALL):
        return None
    types = _known(TYPES, notes.get(HOOK, "")) or _known(HELM_TYPES, helm or "")
    wanted = dict.fromkeys(
        (
            *_known(POLICIES, notes.get(POLICY, "")),
            *_known(HELM_POLICIES, notes.get(HELM_POLICY, "")),
        )
    )
    return Hook(types, tuple(wanted) or (HookPolicy.BEFORE_CREATION,))


def _known(words: dict[str, Word], text: str) -> tuple[Word, ...]:
    return tuple(dict.fromkeys(words[part] for part in read_list(text) if part in words))
