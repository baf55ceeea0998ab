"""Policy of an ApplicationSet: whether Applications are updated and deleted, and ignored fields.

The policy of Argo CD's controller wins, unless the controller lets ApplicationSets override it.

Like `DefaultPolicy` in `applicationset/utils/policy.go` of Argo CD 3.6.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tidegate.dialect.argo.finding_collector import FindingCollector
from tidegate.dialect.argo.ignore_differences import parse_ignore_differences
from tidegate.dialect.declared import ApplicationSet
from tidegate.errors import sanitize
from tidegate.model.k8s.json_fields import get_list, get_mapping, get_text
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.text.suggest import suggest_one_of
from tidegate.model.units.ignore_differences import IgnoreDifference

POLICIES = ("create-only", "create-update", "create-delete", "sync")
UPDATE_POLICIES, DELETE_POLICIES = ("create-update", "sync"), ("create-delete", "sync")
POLICY_SETTING = "applicationsetcontroller.policy"
OVERRIDE_SETTING = "applicationsetcontroller.enable.policy.override"
POLICY_PATH = ("spec", "syncPolicy", "applicationsSync")
PRESERVED_PATH, IGNORED_PATH = ("spec", "preservedFields"), ("spec", "ignoreApplicationDifferences")
MANAGED_POINTERS = ("/spec", "/metadata/labels", "/metadata/annotations", "/metadata/finalizers")
"""Fields of an Application that an ApplicationSet manages."""
GROUP, KIND = "argoproj.io", "Application"


class ApplicationSetPolicy(msgspec.Struct, frozen=True):
    """Whether existing Applications are updated, and those no longer generated are deleted."""

    can_update: bool = True
    can_delete: bool = True


def effective_policy(appset: ApplicationSet, settings: Mapping[str, str]) -> ApplicationSetPolicy:
    """Return the policy that applies, by the ApplicationSet and the settings of its controller."""
    requested, controller_policy = (
        get_text(appset.body, *POLICY_PATH),
        settings.get(POLICY_SETTING, ""),
    )
    can_override = (
        settings.get(OVERRIDE_SETTING, "true" if not controller_policy else "false") == "true"
    )
    policy = requested if can_override and requested in POLICIES else controller_policy
    return (
        ApplicationSetPolicy(policy in UPDATE_POLICIES, policy in DELETE_POLICIES)
        if policy in POLICIES
        else ApplicationSetPolicy()
    )


def report_policy(
    appset: ApplicationSet, settings: Mapping[str, str], collector: FindingCollector
) -> None:
    """Report what keeps Applications from following their ApplicationSet."""
    requested, policy = get_text(appset.body, *POLICY_PATH), effective_policy(appset, settings)
    if requested and requested not in POLICIES:
        message = f"unknown policy `{sanitize(requested)}`"
        why = "the API server rejects the ApplicationSet"
        collector.error(
            "appset.policy", POLICY_PATH, message, why, suggest_one_of(requested, POLICIES)
        )
        return
    if requested and policy != effective_policy(appset, {}):
        message = (
            f"`{requested}` has no effect: the policy of the controller is"
            f" `{settings.get(POLICY_SETTING)}`"
        )
        fix = f"set `{OVERRIDE_SETTING}: true` for the controller"
        why = "the controller does not let an ApplicationSet override its policy"
        collector.warn("appset.policy", POLICY_PATH, message, why, fix)
    if not policy.can_update:
        message = "existing Applications are not updated from this ApplicationSet"
        collector.note("appset.policy", POLICY_PATH, message, "its policy only creates")
    if not policy.can_delete:
        message = "Applications that are no longer generated are kept"
        collector.note("appset.policy", POLICY_PATH, message, "its policy does not delete")


def ignored_fields(
    appset: ApplicationSet, policy: ApplicationSetPolicy
) -> tuple[IgnoreDifference, ...]:
    """Return the fields of Applications that keep their live values; all if updates are off."""
    all_fields = (
        ()
        if policy.can_update
        else (IgnoreDifference(group=GROUP, kind=KIND, pointers=MANAGED_POINTERS),)
    )
    return (*all_fields, *parse_ignore_differences(_entries(appset))[0])


def _entries(appset: ApplicationSet) -> list[Json]:
    entries = get_list(appset.body, *IGNORED_PATH)
    return [{**get_mapping(entry), "group": GROUP, "kind": KIND} for entry in entries]


def report_ignored_fields(appset: ApplicationSet, collector: FindingCollector) -> None:
    """Report entries of `ignoreApplicationDifferences` without a field or a valid pointer."""
    for subpath, error in parse_ignore_differences(_entries(appset))[1]:
        why = "the entry ignores nothing"
        collector.warn("argo.ignored", (*IGNORED_PATH, *subpath), error.problem, why, error.hint)


def is_strict(appset: ApplicationSet, settings: Mapping[str, str]) -> bool:
    """Return whether live Applications always become what is generated."""
    exceptions = get_mapping(appset.body, *PRESERVED_PATH) or get_list(appset.body, *IGNORED_PATH)
    return effective_policy(appset, settings).can_update and not exceptions


def with_preserved_fields(
    generated: JsonObject, live: JsonObject, appset: ApplicationSet
) -> JsonObject:
    """Return an Application with the live values of preserved annotations and labels."""
    metadata = get_mapping(generated, "metadata")
    for kind in ("annotations", "labels"):
        live_values = get_mapping(live, "metadata", kind)
        preserved = {
            key: live_values[key]
            for key in map(str, get_list(appset.body, *PRESERVED_PATH, kind))
            if key in live_values
        }
        if preserved:
            metadata = {**metadata, kind: {**get_mapping(metadata, kind), **preserved}}
    return {**generated, "metadata": metadata}
