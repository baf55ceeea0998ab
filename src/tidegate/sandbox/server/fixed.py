"""What cannot be changed once it is there, kind by kind.

Each row: the resource, the field that is named, what is compared, and what the server says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tidegate.model.objects import Json
from tidegate.sandbox.server.store import Body
from tidegate.world.facts import Cause

IMMUTABLE = "field is immutable"
STATEFUL_SET = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
    "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
    "'minReadySeconds' are forbidden"
)
CLAIM = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName "
    "for bound claims"
)

Part = Callable[[Body], Json]


class Rule(NamedTuple):
    """One field that stays: `part` is what is compared of the object."""

    field: str
    part: Part
    reason: str = "FieldValueInvalid"
    message: str = IMMUTABLE
    applies: Callable[[Body], bool] = lambda _: True


def at(*path: str) -> Part:
    """What stands at a path."""

    def part(body: Body) -> Json:
        found: Json = body
        for name in path:
            found = found.get(name) if isinstance(found, dict) else None
        return found

    return part


def spec_without(*names: str) -> Part:
    def part(body: Body) -> Json:
        spec = body.get("spec")
        kept = spec if isinstance(spec, dict) else {}
        return {name: value for name, value in kept.items() if name not in names}

    return part


def _has_class(claim: Body) -> bool:
    """A class can be chosen as long as there is none, and is not changed any more."""
    return at("spec", "storageClassName")(claim) is not None


def _is_immutable(body: Body) -> bool:
    return body.get("immutable") is True


FROZEN_DATA = tuple(
    Rule(
        name,
        at(name),
        "FieldValueForbidden",
        "field is immutable when `immutable` is set",
        _is_immutable,
    )
    for name in ("data", "binaryData", "immutable")
)

RULES: dict[tuple[str, str], tuple[Rule, ...]] = {
    ("batch", "jobs"): (
        Rule("spec.template", at("spec", "template")),
        Rule("spec.completions", at("spec", "completions")),
        Rule("spec.selector", at("spec", "selector")),
        Rule("spec.completionMode", at("spec", "completionMode")),
        Rule("spec.podFailurePolicy", at("spec", "podFailurePolicy")),
    ),
    ("apps", "deployments"): (Rule("spec.selector", at("spec", "selector")),),
    ("apps", "daemonsets"): (Rule("spec.selector", at("spec", "selector")),),
    ("apps", "replicasets"): (Rule("spec.selector", at("spec", "selector")),),
    ("apps", "statefulsets"): (
        Rule(
            "spec",
            spec_without(
                "replicas",
                "ordinals",
                "template",
                "updateStrategy",
                "revisionHistoryLimit",
                "persistentVolumeClaimRetentionPolicy",
                "minReadySeconds",
            ),
            "FieldValueForbidden",
            STATEFUL_SET,
        ),
    ),
    ("", "services"): (Rule("spec.clusterIPs[0]", at("spec", "clusterIP")),),
    ("", "persistentvolumeclaims"): (
        Rule(
            "spec",
            spec_without(
                "resources", "storageClassName", "volumeAttributesClassName", "volumeName"
            ),
            "FieldValueForbidden",
            CLAIM,
        ),
        Rule("spec", at("spec", "storageClassName"), "FieldValueForbidden", CLAIM, _has_class),
    ),
    ("", "configmaps"): FROZEN_DATA,
    ("", "secrets"): (*FROZEN_DATA, Rule("type", at("type"))),
    ("rbac.authorization.k8s.io", "rolebindings"): (Rule("roleRef", at("roleRef")),),
    ("rbac.authorization.k8s.io", "clusterrolebindings"): (Rule("roleRef", at("roleRef")),),
    ("storage.k8s.io", "storageclasses"): (
        Rule(
            "parameters",
            at("parameters"),
            "FieldValueForbidden",
            "updates to parameters are forbidden.",
        ),
        Rule(
            "provisioner",
            at("provisioner"),
            "FieldValueForbidden",
            "updates to provisioner are forbidden.",
        ),
    ),
    ("apiextensions.k8s.io", "customresourcedefinitions"): (
        Rule("spec.group", at("spec", "group")),
        Rule("spec.scope", at("spec", "scope")),
        Rule("spec.names.kind", at("spec", "names", "kind")),
        Rule("spec.names.plural", at("spec", "names", "plural")),
    ),
}


def find_changed(resource: tuple[str, str], before: Body, after: Body) -> tuple[Cause, ...]:
    """The fields that would change and may not."""
    return tuple(
        Cause(rule.field, rule.reason, _words(rule))
        for rule in RULES.get(resource, ())
        if rule.applies(before) and rule.part(before) != rule.part(after)
    )


def _words(rule: Rule) -> str:
    if rule.reason == "FieldValueForbidden":
        return f"Forbidden: {rule.message}"
    return f"Invalid value: {rule.message}"
