"""Making verdicts: what every rule of Argo CD's says, and what it asks of an object."""

from __future__ import annotations

from tidegate.errors import sanitize
from tidegate.model.k8s.json_fields import (
    EMPTY_MAPPING,
    get_int,
    get_list,
    get_mapping,
    get_mappings,
)
from tidegate.model.k8s.objects import JsonObject
from tidegate.model.k8s.verdict import Health, Verdict

HEALTHY, PROGRESSING, DEGRADED = Health.HEALTHY, Health.PROGRESSING, Health.DEGRADED
SUSPENDED, UNKNOWN = Health.SUSPENDED, Health.UNKNOWN
HOOK = "argocd.argoproj.io/hook"
HELM_HOOK = "helm.sh/hook"
FINALIZER = "argocd.argoproj.io/hook-finalizer"
HOOK_TYPES = frozenset(
    {"Skip", "PreSync", "Sync", "PostSync", "SyncFail", "PreDelete", "PostDelete"}
)


def say(
    body: JsonObject,
    health: Health,
    reason: str,
    sentence: str,
    *,
    condition: JsonObject = EMPTY_MAPPING,
    final: bool = False,
) -> Verdict:
    """A verdict on a body; `condition` is the one that decided, if one did.

    Where nobody wrote a message, the reason must do.
    """
    # The generation that the status speaks of; 0 where it does not tell.
    own = get_int(condition, "observedGeneration")
    seen = get_int(body, "status", "observedGeneration", default=own)
    return Verdict(health, sanitize(reason), sanitize(sentence) or sanitize(reason), final, seen)


def is_unobserved(body: JsonObject) -> bool:
    """Whether the status speaks of an older generation, as Go reads one that is missing: 0."""
    return get_int(body, "metadata", "generation") > get_int(body, "status", "observedGeneration")


def conditions_of(body: JsonObject) -> list[JsonObject]:
    return get_mappings(body, "status", "conditions")


def condition_of(body: JsonObject, name: str) -> JsonObject:
    """The first condition of a type; empty where there is none."""
    return next((one for one in conditions_of(body) if one.get("type") == name), EMPTY_MAPPING)


def is_true(condition: JsonObject) -> bool:
    return condition.get("status") == "True"


def breaks(body: JsonObject, problem: str) -> Verdict:
    """Unknown: Argo CD's script stops with an error on such a body."""
    return say(body, UNKNOWN, "NotUnderstood", f"Argo CD cannot judge it: {problem}")


def is_hook(body: JsonObject) -> bool:
    """Any value of Argo's annotation makes a hook, except `Skip` alone."""
    notes = get_mapping(body, "metadata", "annotations")
    own = notes.get(HOOK)
    if isinstance(own, str):
        known = {one.strip() for one in own.split(",")} & HOOK_TYPES
        return known != {"Skip"}
    helm = notes.get(HELM_HOOK)
    return isinstance(helm, str) and helm != "crd-install"


def is_held(body: JsonObject) -> bool:
    """Whether Argo CD's finalizer keeps the object until its sync has looked at it."""
    return FINALIZER in get_list(body, "metadata", "finalizers")
