"""A claim that a pod uses is not gone before the pod is."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.model.moment import Ms
from tidegate.model.objects import Ref
from tidegate.model.reading import text
from tidegate.sandbox.controllers.pods import POD
from tidegate.sandbox.controllers.reaction import Controller, Looking, Sight
from tidegate.sandbox.controllers.storage.claims import claims_of
from tidegate.sandbox.controllers.storage.matching import CLAIM
from tidegate.sandbox.controllers.writes import patch, without_finalizer
from tidegate.sandbox.server.store import Stored, Transition
from tidegate.world.facts import Change

PROTECTION = "kubernetes.io/pvc-protection"


def protect(view: Sight, ref: Ref, _now: Ms) -> Looking:
    """Every claim is held; one that is to go is let go of when no pod on a node mounts it."""
    claim = view.get(ref)
    if claim is None:
        return
    is_held = PROTECTION in claim.finalizers
    if not claim.is_deleting and not is_held:
        yield patch(claim, {"metadata": {"finalizers": [*claim.finalizers, PROTECTION]}})
    elif claim.is_deleting and is_held and not _is_used(view, claim):
        yield without_finalizer(claim, PROTECTION)


def _is_used(view: Sight, claim: Stored) -> bool:
    return any(
        text(pod.body, "spec", "nodeName") and claim.ref in claims_of(pod)
        for pod in view.all_of(POD, claim.ref.namespace)
    )


def _concerns(view: Sight, event: Transition) -> Iterator[Ref]:
    stored = event.stored
    if stored.ref.kind == CLAIM and event.change is not Change.DELETED:
        yield stored.ref
    elif stored.ref.kind == POD and event.change is Change.DELETED:
        for ref in claims_of(stored):
            claim = view.get(ref)
            if claim is not None and claim.is_deleting:
                yield ref


PROTECTED_CLAIMS = Controller("protected-claims", protect, _concerns, kinds=(CLAIM, POD))
