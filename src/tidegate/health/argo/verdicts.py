"""Helpers of the Argo CD health rules: making verdicts, reading conditions, hooks."""

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
HOOK_ANNOTATION = "argocd.argoproj.io/hook"
HELM_HOOK_ANNOTATION = "helm.sh/hook"
HOOK_FINALIZER = "argocd.argoproj.io/hook-finalizer"
HOOK_TYPES = frozenset(
    {"Skip", "PreSync", "Sync", "PostSync", "SyncFail", "PreDelete", "PostDelete"}
)


def make_verdict(
    body: JsonObject,
    health: Health,
    reason: str,
    message: str,
    *,
    condition: JsonObject = EMPTY_MAPPING,
    final: bool = False,
) -> Verdict:
    """Return a verdict on an object.

    `condition` is the condition that decided. The reason replaces an empty message.
    """
    # The generation that the status reports; 0 if it reports none.
    condition_generation = get_int(condition, "observedGeneration")
    observed = get_int(body, "status", "observedGeneration", default=condition_generation)
    return Verdict(health, sanitize(reason), sanitize(message) or sanitize(reason), final, observed)


def is_unobserved(body: JsonObject) -> bool:
    """Return whether the status is for an older generation. Go reads a missing one as 0."""
    return get_int(body, "metadata", "generation") > get_int(body, "status", "observedGeneration")


def list_conditions(body: JsonObject) -> list[JsonObject]:
    """Return `status.conditions`."""
    return get_mappings(body, "status", "conditions")


def find_condition(body: JsonObject, type_: str) -> JsonObject:
    """Return the first condition of a type, or an empty mapping."""
    return next(
        (condition for condition in list_conditions(body) if condition.get("type") == type_),
        EMPTY_MAPPING,
    )


def is_true(condition: JsonObject) -> bool:
    """Return whether the status of a condition is True."""
    return condition.get("status") == "True"


def make_error_verdict(body: JsonObject, problem: str) -> Verdict:
    """Return Unknown: the Lua script of Argo CD fails for such an object."""
    return make_verdict(
        body, UNKNOWN, "NotUnderstood", f"Argo CD cannot evaluate its health: {problem}"
    )


def is_hook(body: JsonObject) -> bool:
    """Return whether Argo CD runs the object as a hook.

    Any value of its annotation counts but `Skip`.

    Like `IsHook` and `Skip` in `pkg/sync/hook/hook.go` of gitops-engine (Argo CD 3.5.6).
    """
    annotations = get_mapping(body, "metadata", "annotations")
    hook_types = annotations.get(HOOK_ANNOTATION)
    if isinstance(hook_types, str):
        types = {name.strip() for name in hook_types.split(",")} & HOOK_TYPES
        return types != {"Skip"}
    helm_hook = annotations.get(HELM_HOOK_ANNOTATION)
    return isinstance(helm_hook, str) and helm_hook != "crd-install"


def has_hook_finalizer(body: JsonObject) -> bool:
    """Return whether the hook finalizer keeps the object until its sync has read its state.

    Like `HasHookFinalizer` in `pkg/sync/hook/hook.go` of gitops-engine (Argo CD 3.5.6).
    """
    return HOOK_FINALIZER in get_list(body, "metadata", "finalizers")
