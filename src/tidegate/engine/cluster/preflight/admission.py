"""Admission webhooks and policies that may reject or change an object.

Rules and selectors are evaluated like the API server does. Match conditions and parameters,
which only the server can evaluate, are ignored: an object too many is counted rather than one
too few.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from tidegate.engine.cluster.procedures import ApiCall, Procedure
from tidegate.model.k8s.json_fields import get_list, get_mapping, get_mappings, get_text
from tidegate.model.k8s.labels import selector_matches
from tidegate.model.k8s.objects import (
    ClusterRef,
    Json,
    JsonObject,
    Kind,
    Ref,
    ServedKind,
    object_body,
)
from tidegate.world.messages import ListPage
from tidegate.world.requests import List, Selection

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


WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
POLICIES = {
    "MutatingAdmissionPolicyBinding": "MutatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding": "ValidatingAdmissionPolicy",
}
ADMISSION_KINDS = frozenset({*WEBHOOKS, *POLICIES, *POLICIES.values()})
EQUIVALENT = "Equivalent"
NAME_LABEL = "kubernetes.io/metadata.name"
"""Label that every namespace has."""
MATCH_ALL: JsonObject = {
    "operations": ["*"],
    "apiGroups": ["*"],
    "apiVersions": ["*"],
    "resources": ["*"],
}
DRY_RUN_SAFE = ("None", "NoneOnDryRun")
UNREADABLE_CONFIGURATION: JsonObject = {"webhooks": [{"rules": [MATCH_ALL], "sideEffects": "None"}]}


class AdmissionRule(msgspec.Struct, frozen=True):
    """One webhook or admission policy."""

    object_refs: tuple[ClusterRef, ...]
    """The objects that define the rule."""
    scopes: tuple[JsonObject, ...]
    """Match constraints; the rule applies to an object that matches all of them."""
    mutates: bool
    """Whether the rule may change objects."""
    allows_dry_run: bool = True
    """Whether the rule has no side effects on dry runs."""


class AdmissionSubject(msgspec.Struct, frozen=True):
    """Properties of an object that selectors see.

    A Namespace is in itself. Namespace selectors match objects without namespace.
    """

    labels: JsonObject
    namespace: str = ""
    namespace_labels: JsonObject | None = None
    """Labels of the namespace; None if they are unknown."""


def is_admission_kind(kind: Kind) -> bool:
    """Return whether a kind configures admission webhooks or policies."""
    return kind.group == ADMISSION_GROUP and kind.name in ADMISSION_KINDS


def list_configurations(
    cluster: str, served: Iterable[ServedKind]
) -> Procedure[dict[ClusterRef, JsonObject]]:
    """Return all webhook configurations, and the policies if a binding enforces one.

    Unreadable ones match everything.
    """
    kinds = {
        served_kind.kind.name: served_kind.kind
        for served_kind in reversed([*served])
        if is_admission_kind(served_kind.kind)
    }
    policies = [kinds.pop(name) for name in POLICIES.values() if name in kinds]
    configurations = yield from _list_kinds(cluster, kinds.values())
    if any(object_ref.ref.kind.name in POLICIES for object_ref in configurations):
        configurations |= yield from _list_kinds(cluster, policies)
    return configurations


def _list_kinds(cluster: str, kinds: Collection[Kind]) -> Procedure[dict[ClusterRef, JsonObject]]:
    outcomes = yield tuple(ApiCall(cluster, List(Selection(kind))) for kind in kinds)
    configurations: dict[ClusterRef, JsonObject] = {}
    for kind, outcome in zip(kinds, outcomes, strict=True):
        if isinstance(outcome, ListPage):
            configurations |= {
                ClusterRef(cluster, live.ref): object_body(live) for live in outcome.items
            }
        else:
            configurations[ClusterRef(cluster, Ref(kind, "", ""))] = UNREADABLE_CONFIGURATION
    return configurations


def build_rules(bodies: Mapping[ClusterRef, JsonObject]) -> list[AdmissionRule]:
    """Return the rules of webhooks, and of policies whose binding denies or changes objects."""
    by_name = {(object_ref.ref.kind.name, object_ref.ref.name): object_ref for object_ref in bodies}
    rules: list[AdmissionRule] = []
    for object_ref, body in bodies.items():
        rules += _webhook_rules(object_ref, body)
        policy = by_name.get(
            (POLICIES.get(object_ref.ref.kind.name, ""), get_text(body, "spec", "policyName"))
        )
        if policy is not None and _is_enforced(object_ref, body):
            rules.append(_binding_rule(object_ref, body, policy, bodies[policy]))
    return rules


def covers_kind(rule: AdmissionRule, kinds: Sequence[ServedKind], operation: str) -> bool:
    """Return whether a rule covers an operation on a kind.

    `kinds` are all versions in which its objects are served, the written one first.
    """
    return all(_scope_covers(scope, kinds, operation) for scope in rule.scopes)


def selects(rule: AdmissionRule, subject: AdmissionSubject) -> bool:
    """Return whether the selectors of a rule match an object."""
    return all(
        selector_matches(get_mapping(scope, "objectSelector"), subject.labels)
        and _selects_namespace(get_mapping(scope, "namespaceSelector"), subject)
        for scope in rule.scopes
    )


def _webhook_rules(object_ref: ClusterRef, body: JsonObject) -> Iterator[AdmissionRule]:
    for webhook in get_mappings(body, "webhooks"):
        yield AdmissionRule(
            (object_ref,),
            (webhook,),
            _mutates(object_ref),
            get_text(webhook, "sideEffects") in DRY_RUN_SAFE,
        )


def _binding_rule(
    object_ref: ClusterRef, binding: JsonObject, policy_ref: ClusterRef, policy: JsonObject
) -> AdmissionRule:
    constraints = _scope(get_mapping(policy, "spec", "matchConstraints"))
    scopes = (constraints, _scope(get_mapping(binding, "spec", "matchResources")))
    return AdmissionRule((object_ref, policy_ref), scopes, _mutates(object_ref))


def _mutates(object_ref: ClusterRef) -> bool:
    return object_ref.ref.kind.name.startswith("Mutating")


def _is_enforced(object_ref: ClusterRef, binding: JsonObject) -> bool:
    """Return whether a binding denies or changes objects; some only warn or audit."""
    return _mutates(object_ref) or "Deny" in get_list(binding, "spec", "validationActions")


def _scope(resources: JsonObject) -> JsonObject:
    """Return the constraints of a policy in the form of a webhook; no rules match everything."""
    return {**resources, "rules": get_list(resources, "resourceRules") or [MATCH_ALL]}


def _scope_covers(scope: JsonObject, kinds: Sequence[ServedKind], operation: str) -> bool:
    if get_text(scope, "matchPolicy", default=EQUIVALENT) != EQUIVALENT:
        kinds = kinds[:1]
    excluded: JsonObject = {"rules": get_list(scope, "excludeResourceRules")}
    is_matching = any(has_matching_rule(scope, served, operation) for served in kinds)
    return is_matching and not any(
        has_matching_rule(excluded, served, operation) for served in kinds
    )


def _selects_namespace(selector: JsonObject, subject: AdmissionSubject) -> bool:
    if not subject.namespace:
        return True
    name_label: JsonObject = {NAME_LABEL: subject.namespace}
    if subject.namespace_labels is not None:
        return selector_matches(selector, name_label | subject.namespace_labels)
    equal, expressions = (
        get_mapping(selector, "matchLabels"),
        get_mappings(selector, "matchExpressions"),
    )
    name_selector: JsonObject = {
        "matchLabels": {key: value for key, value in equal.items() if key == NAME_LABEL},
        "matchExpressions": [
            expression for expression in expressions if get_text(expression, "key") == NAME_LABEL
        ],
    }
    return selector_matches(name_selector, name_label)
