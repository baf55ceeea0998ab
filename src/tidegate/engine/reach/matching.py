"""Admission webhooks and policies that may reject or change an object.

Rules and selectors are evaluated like the API server does. Match conditions and parameters,
which only the server can evaluate, are ignored: an object too many is counted rather than one
too few.
"""

from __future__ import annotations

from tidegate.model.objects import Json, JsonObject, ServedKind
from tidegate.model.reading import get_list, get_mapping, get_mappings, get_text

WILDCARD = "*"
NAMESPACE_RESOURCE = ("", "namespaces")
ADMISSION_GROUP = "admissionregistration.k8s.io"
"""API group whose kinds are never sent to webhooks."""


def has_matching_rule(webhook: JsonObject, served: ServedKind, operation: str) -> bool:
    """Return whether a rule of the webhook matches an operation on objects of a kind."""
    if served.kind.group == ADMISSION_GROUP:
        return False
    return any(_rule_matches(rule, served, operation) for rule in get_mappings(webhook, "rules"))


def _rule_matches(rule: JsonObject, served: ServedKind, operation: str) -> bool:
    expected = (
        ("operations", operation),
        ("apiGroups", served.kind.group),
        ("apiVersions", served.kind.version),
    )
    is_matching = all(_includes(get_list(rule, field), value) for field, value in expected)
    return (
        is_matching
        and _rule_scope_matches(rule, served)
        and _rule_resource_matches(rule, served.plural)
    )


def _includes(values: list[Json], value: str) -> bool:
    return WILDCARD in values or value in values


def _rule_scope_matches(rule: JsonObject, served: ServedKind) -> bool:
    scope = get_text(rule, "scope", default=WILDCARD)
    return scope in (WILDCARD, "Namespaced" if served.namespaced else "Cluster")


def _rule_resource_matches(rule: JsonObject, plural: str) -> bool:
    """Return whether a rule matches a resource; `pods` and `pods/*` match, `pods/exec` does not."""
    resources = (str(resource).partition("/") for resource in get_list(rule, "resources"))
    return any(
        name in (WILDCARD, plural) and subresource in ("", WILDCARD)
        for name, _, subresource in resources
    )


def object_labels(body: JsonObject) -> JsonObject:
    """Return the labels of an object."""
    return get_mapping(body, "metadata", "labels")
