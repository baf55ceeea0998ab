"""Who has a word in a write: rules, selectors and bindings, as a server matches them."""

from __future__ import annotations

import pytest

from tidegate.engine.cluster.preflight.admission import (
    AdmissionRule,
    AdmissionSubject,
    build_rules,
    covers_kind,
    selects,
)
from tidegate.model.k8s.objects import ClusterRef, Json, JsonObject, Kind, Ref, ServedKind

GROUP = "admissionregistration.k8s.io"
DEPLOYMENT = ServedKind(Kind("apps", "v1", "Deployment"), "deployments", True, (), ())
OLDER = ServedKind(Kind("apps", "v1beta1", "Deployment"), "deployments", True, (), ())
NODE = ServedKind(Kind("", "v1", "Node"), "nodes", False, (), ())
RULE: JsonObject = {
    "apiGroups": ["apps"],
    "apiVersions": ["v1"],
    "operations": ["CREATE"],
    "resources": ["deployments"],
}


def spot_of(kind: str, name: str = "guard") -> ClusterRef:
    return ClusterRef("", Ref(Kind(GROUP, "v1", kind), "", name))


def a_webhook(rule: JsonObject | None = None, **parts: Json) -> AdmissionRule:
    hook: JsonObject = {"sideEffects": "None", "rules": [{**RULE, **(rule or {})}], **parts}
    (guard,) = build_rules({spot_of("ValidatingWebhookConfiguration"): {"webhooks": [hook]}})
    return guard


def policies(
    actions: list[Json], *, policy: JsonObject, binding: JsonObject
) -> list[AdmissionRule]:
    spec: JsonObject = {
        "policyName": "guard",
        "validationActions": actions,
        "matchResources": binding,
    }
    return build_rules(
        {
            spot_of("ValidatingAdmissionPolicy"): {"spec": {"matchConstraints": policy}},
            spot_of("ValidatingAdmissionPolicyBinding", "bound"): {"spec": spec},
        }
    )


RULES: dict[str, tuple[JsonObject, bool]] = {
    "its own": ({}, True),
    "every group": ({"apiGroups": ["*"]}, True),
    "every resource": ({"resources": ["*"]}, True),
    "all of it": ({"resources": ["*/*"]}, True),
    "its status": ({"resources": ["deployments/status"]}, False),
    "another resource": ({"resources": ["daemonsets"]}, False),
    "another operation": ({"operations": ["UPDATE"]}, False),
    "namespaces' own": ({"scope": "Namespaced"}, True),
    "the cluster's own": ({"scope": "Cluster"}, False),
}


@pytest.mark.parametrize("name", RULES)
def test_rules_define_the_writes_that_call_a_webhook(name: str) -> None:
    rule, request = RULES[name]

    assert covers_kind(a_webhook(rule), [DEPLOYMENT], "CREATE") is request


def test_a_rule_for_another_version_of_the_same_objects_counts() -> None:
    older: JsonObject = {"apiVersions": ["v1beta1"]}

    assert covers_kind(a_webhook(older), [DEPLOYMENT, OLDER], "CREATE")
    assert not covers_kind(a_webhook(older, matchPolicy="Exact"), [DEPLOYMENT, OLDER], "CREATE")


def test_selectors_define_the_matching_objects() -> None:
    guard = a_webhook(objectSelector={"matchLabels": {"tier": "front"}})

    assert selects(guard, AdmissionSubject({"tier": "front"}))
    assert not selects(guard, AdmissionSubject({"tier": "back"}))


IN_SHOP: JsonObject = {
    "matchExpressions": [
        {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["shop"]},
        {"key": "guarded", "operator": "Exists"},
    ]
}
PLACES: dict[str, tuple[AdmissionSubject, bool]] = {
    "a namespace with the labels": (AdmissionSubject({}, "shop", {"guarded": "yes"}), True),
    "a namespace without": (AdmissionSubject({}, "shop", {}), False),
    "a namespace of which only the name is known": (AdmissionSubject({}, "shop", None), True),
    "another of which only the name is known": (AdmissionSubject({}, "bank", None), False),
    "no namespace": (AdmissionSubject({}), True),
}


@pytest.mark.parametrize("name", PLACES)
def test_a_namespace_is_taken_by_what_is_known_of_it(name: str) -> None:
    sight, taken = PLACES[name]

    assert selects(a_webhook(namespaceSelector=IN_SHOP), sight) is taken


def test_a_webhook_with_side_effects_takes_no_dry_runs() -> None:
    assert a_webhook().allows_dry_run
    assert not a_webhook(sideEffects="Some").allows_dry_run


def test_a_policy_counts_where_it_and_its_binding_match() -> None:
    (guard,) = policies(
        ["Deny"],
        policy={"resourceRules": [RULE]},
        binding={"objectSelector": {"matchLabels": {"tier": "front"}}},
    )

    assert covers_kind(guard, [DEPLOYMENT], "CREATE")
    assert not covers_kind(guard, [NODE], "CREATE")
    assert selects(guard, AdmissionSubject({"tier": "front"}))
    assert not selects(guard, AdmissionSubject({}))


def test_excluded_objects_do_not_match_a_policy() -> None:
    everything: JsonObject = {**RULE, "resources": ["*"]}
    left_out: JsonObject = {"resourceRules": [everything], "excludeResourceRules": [RULE]}
    (guard,) = policies(["Deny"], policy=left_out, binding={})

    assert not covers_kind(guard, [DEPLOYMENT], "CREATE")


def test_a_policy_that_only_warns_refuses_nothing() -> None:
    assert policies(["Warn", "Audit"], policy={"resourceRules": [RULE]}, binding={}) == []


def test_a_policy_that_is_not_bound_does_nothing() -> None:
    policy: JsonObject = {"spec": {"matchConstraints": {"resourceRules": [RULE]}}}

    assert build_rules({spot_of("ValidatingAdmissionPolicy"): policy}) == []


def test_mutating_webhooks_are_recognized() -> None:
    hook: JsonObject = {"sideEffects": "None", "rules": [RULE]}
    (guard,) = build_rules({spot_of("MutatingWebhookConfiguration"): {"webhooks": [hook]}})

    assert guard.mutates
    assert not a_webhook().mutates
