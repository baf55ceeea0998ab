"""Which objects Argo CD takes for hooks, and which of them it holds with its finalizer."""

from __future__ import annotations

from tidegate.health.argo.verdicts import Body
from tidegate.model.reading import listed, mapping

HOOK = "argocd.argoproj.io/hook"
HELM_HOOK = "helm.sh/hook"
FINALIZER = "argocd.argoproj.io/hook-finalizer"
TYPES = frozenset({"Skip", "PreSync", "Sync", "PostSync", "SyncFail", "PreDelete", "PostDelete"})


def is_hook(body: Body) -> bool:
    """Any value of Argo's annotation makes a hook, except `Skip` alone."""
    notes = mapping(body, "metadata", "annotations")
    own = notes.get(HOOK)
    if isinstance(own, str):
        known = {one.strip() for one in own.split(",")} & TYPES
        return known != {"Skip"}
    helm = notes.get(HELM_HOOK)
    return isinstance(helm, str) and helm != "crd-install"


def is_held(body: Body) -> bool:
    """Whether Argo CD's finalizer keeps the object until its sync has looked at it."""
    return FINALIZER in listed(body, "metadata", "finalizers")
