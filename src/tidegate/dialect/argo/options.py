"""Argo CD's sync options: comma-separated lists in annotations, and the list of a unit.

Like `HasAnnotationOption` in `gitops-engine/pkg/sync/resource/annotations.go` of Argo CD 3.6.
"""

from __future__ import annotations

import msgspec

from tidegate.errors import sanitize
from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import JsonObject, Propagation
from tidegate.model.text.suggest import suggest
from tidegate.model.units.policy import ObjectOptions, Permission, Policy

SYNC_OPTIONS = "argocd.argoproj.io/sync-options"
RESOURCE_POLICY = "helm.sh/resource-policy"
PERMISSIONS = {"false": Permission.NO, "confirm": Permission.ASK}
PROPAGATIONS = {
    "PrunePropagationPolicy=background": Propagation.BACKGROUND,
    "PrunePropagationPolicy=foreground": Propagation.FOREGROUND,
    "PrunePropagationPolicy=orphan": Propagation.ORPHAN,
}
"""Propagation policies by option; the first one that a unit has counts."""
BOOLEAN_VALUES = ("true", "false")
UNIT_OPTIONS = {
    "ApplyOutOfSyncOnly": BOOLEAN_VALUES,
    "ClientSideApplyMigration": BOOLEAN_VALUES,
    "CreateNamespace": BOOLEAN_VALUES,
    "Delete": (*BOOLEAN_VALUES, "confirm"),
    "FailOnSharedResource": BOOLEAN_VALUES,
    "Prune": (*BOOLEAN_VALUES, "confirm"),
    "PruneLast": BOOLEAN_VALUES,
    "PrunePropagationPolicy": ("foreground", "background", "orphan"),
    "Replace": BOOLEAN_VALUES,
    "RespectIgnoreDifferences": BOOLEAN_VALUES,
    "ServerSideApply": BOOLEAN_VALUES,
    "SkipDryRunOnMissingResource": BOOLEAN_VALUES,
    "Validate": BOOLEAN_VALUES,
}
"""Sync options of a unit, and the allowed values of each."""
FORCE = "Force=true"
FAIL_ON_SHARED = "FailOnSharedResource=true"
REPLACE = "Replace=true"


def string_annotations(body: JsonObject) -> dict[str, str]:
    """Return the annotations whose values are strings."""
    annotations = get_mapping(body, "metadata", "annotations")
    return {name: value for name, value in annotations.items() if isinstance(value, str)}


def split_list(text: str) -> tuple[str, ...]:
    """Split a comma-separated list; parts are trimmed, not empty and unique."""
    parts = (part.strip() for part in text.split(","))
    return tuple(dict.fromkeys(part for part in parts if part))


def has_sync_option(body: JsonObject, option: str) -> bool:
    """Return whether an object has a sync option in its annotation."""
    value = get_mapping(body, "metadata", "annotations").get(SYNC_OPTIONS)
    return isinstance(value, str) and option in split_list(value)


def option_problem(option: str) -> str:
    """Return why a unit cannot have this option, with a suggestion; empty if it can."""
    name, separator, value = option.partition("=")
    values = UNIT_OPTIONS.get(name)
    if name == "Force":
        return f"`Force` applies to single objects only; set it in the annotation `{SYNC_OPTIONS}`"
    if values is None:
        hint = suggest(name, UNIT_OPTIONS, f"known options are {', '.join(UNIT_OPTIONS)}")
        return f"unknown option `{sanitize(name)}`; {hint}"
    if value in values:
        return ""
    problem = f"cannot be `{sanitize(value)}`" if separator else "needs a value"
    return f"`{name}` {problem}; use one of {', '.join(values)}"


def with_sync_options(policy: Policy, options: tuple[str, ...]) -> Policy:
    """Return the policy of a unit with these sync options."""
    object_options = ObjectOptions(
        replace=REPLACE in options,
        validate="Validate=false" not in options,
        skip_missing_kind="SkipDryRunOnMissingResource=true" in options,
        prune=_permission(options, "Prune", Permission.YES),
        delete=_permission(options, "Delete", Permission.YES),
        prune_last="PruneLast=true" in options,
        propagation=_propagation(options),
    )
    return msgspec.structs.replace(
        policy,
        object_options=object_options,
        create_namespace="CreateNamespace=true" in options,
        apply_out_of_sync_only="ApplyOutOfSyncOnly=true" in options,
        fail_on_shared_resource=FAIL_ON_SHARED in options,
        keep_other_appliers="ClientSideApplyMigration=false" in options,
        respect_ignore_differences="RespectIgnoreDifferences=true" in options,
    )


def read_argo_options(body: JsonObject, defaults: ObjectOptions) -> ObjectOptions:
    """Read the sync options of an object; `defaults` are those of its unit.

    A unit cannot set `Force` for all its objects, only a flag of the rollout can. An object
    cannot set the propagation policy.
    """
    annotations = string_annotations(body)
    options = split_list(annotations.get(SYNC_OPTIONS, ""))
    is_protected = "keep" in split_list(annotations.get(RESOURCE_POLICY, ""))
    return ObjectOptions(
        replace=defaults.replace or REPLACE in options,
        force=defaults.force or FORCE in options,
        validate=defaults.validate and "Validate=false" not in options,
        skip_missing_kind=defaults.skip_missing_kind
        or "SkipDryRunOnMissingResource=true" in options,
        prune=_permission(options, "Prune", defaults.prune),
        delete=Permission.NO if is_protected else _permission(options, "Delete", defaults.delete),
        prune_last=defaults.prune_last or "PruneLast=true" in options,
        propagation=defaults.propagation,
    )


def _propagation(options: tuple[str, ...]) -> Propagation:
    propagations = (
        propagation for option, propagation in PROPAGATIONS.items() if option in options
    )
    return next(propagations, Propagation.FOREGROUND)


def _permission(options: tuple[str, ...], name: str, default: Permission) -> Permission:
    """Return the permission that an option sets; the default without the option."""
    value = _option_value(options, name)
    return default if value is None else PERMISSIONS.get(value, Permission.YES)


def _option_value(options: tuple[str, ...], name: str) -> str | None:
    """Return the value of the first option of a name; None if there is none with a value."""
    matches = (option for option in options if option.startswith(f"{name}="))
    return next((option.removeprefix(f"{name}=") for option in matches), None)
