"""Labels and annotations of an object for Flux controllers.

A value counts in a label or an annotation, in any case. Some are read from the manifest in Git,
some from the live object, most from both.
"""

from __future__ import annotations

import msgspec

from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import JsonObject
from tidegate.model.plans.plan import ItemAction
from tidegate.model.units.policy import ObjectOptions, Permission

PREFIX = "kustomize.toolkit.fluxcd.io/"
SSA, RECONCILE, FORCE, PRUNE = (
    f"{PREFIX}{word}" for word in ("ssa", "reconcile", "force", "prune")
)
DRIFT = "helm.toolkit.fluxcd.io/driftDetection"
MERGE, IF_NOT_PRESENT, IGNORE = "Merge", "IfNotPresent", "Ignore"
DISABLED, ENABLED = "disabled", "enabled"


def is_ignored(body: JsonObject) -> bool:
    """Return whether the object is neither written nor deleted."""
    return _has_value(body, RECONCILE, DISABLED) or _has_value(body, SSA, IGNORE)


def skips_drift_detection(body: JsonObject) -> bool:
    """Return whether the object is excluded from drift detection of its release."""
    return _has_value(body, DRIFT, DISABLED)


def is_forced(body: JsonObject) -> bool:
    """Return whether the object is recreated if it cannot be changed."""
    return _has_value(body, FORCE, ENABLED)


def item_action(body: JsonObject) -> ItemAction:
    """Return the action for an object, by its manifest in Git."""
    if is_ignored(body):
        return ItemAction.IGNORE
    return ItemAction.CREATE if _has_value(body, SSA, IF_NOT_PRESENT) else ItemAction.APPLY


def read_flux_options(body: JsonObject, defaults: ObjectOptions) -> ObjectOptions:
    """Read the options of an object; `defaults` are those of its unit."""
    is_protected = is_ignored(body) or _has_value(body, PRUNE, DISABLED)
    return msgspec.structs.replace(
        defaults,
        force=defaults.force or is_forced(body),
        keep_other_fields=_has_value(body, SSA, MERGE),
        prune=Permission.NO if is_protected else defaults.prune,
        delete=Permission.NO if is_protected else defaults.delete,
    )


def _has_value(body: JsonObject, name: str, expected: str) -> bool:
    for section in ("labels", "annotations"):
        actual = get_mapping(body, "metadata", section).get(name)
        if isinstance(actual, str) and actual.lower() == expected.lower():
            return True
    return False
