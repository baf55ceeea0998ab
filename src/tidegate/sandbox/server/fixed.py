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
POD = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set "
    "to 1 if it was previously negative)"
)
CONTAINERS = "pod updates may not add or remove containers"
POD_CHANGES = (
    "activeDeadlineSeconds",
    "ephemeralContainers",
    "nodeName",
    "schedulingGates",
    "terminationGracePeriodSeconds",
    "tolerations",
)
"""What can be changed of a pod, at least in some way, beside its images."""

Part = Callable[[Body], Json]


class Rule(NamedTuple):
    """One field that stays: `part` is what is compared of the object."""

    field: str
    part: Part
    reason: str = "FieldValueInvalid"
    message: str = IMMUTABLE
    applies: Callable[[Body], bool] = lambda _: True
    allows: Callable[[Body], bool] = lambda _: False
    """Whether what it would become is well though it changed."""


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


def _pod_without_images(pod: Body) -> Json:
    kept = spec_without(*POD_CHANGES)(pod)
    spec = kept if isinstance(kept, dict) else {}
    for name in ("containers", "initContainers"):
        containers = spec.get(name)
        if isinstance(containers, list):
            spec[name] = [_without_image(one) for one in containers]
    return spec


def _number_of_containers(pod: Body) -> Json:
    containers = at("spec", "containers")(pod)
    return len(containers) if isinstance(containers, list) else 0


def _without_image(container: Json) -> Json:
    named = container if isinstance(container, dict) else {}
    return {name: part for name, part in named.items() if name != "image"}


def _has_class(claim: Body) -> bool:
    """A class can be chosen as long as there is none, and is not changed any more."""
    return at("spec", "storageClassName")(claim) is not None


def _completions(job: Body) -> Json:
    """One, where a Job says nothing of how many pods it wants."""
    told, parallelism = at("spec", "completions")(job), at("spec", "parallelism")(job)
    return 1 if told is None and parallelism is None else told


def _completion_mode(job: Body) -> Json:
    return at("spec", "completionMode")(job) or "NonIndexed"


def _is_indexed(job: Body) -> bool:
    return _completion_mode(job) == "Indexed"


def _is_in_tandem(job: Body) -> bool:
    parallelism = at("spec", "parallelism")(job)
    return _completions(job) == (1 if parallelism is None else parallelism)


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
        Rule("spec.completions", _completions, applies=lambda job: not _is_indexed(job)),
        Rule(
            "spec.completions",
            _completions,
            message="can only be modified in tandem with spec.parallelism",
            applies=_is_indexed,
            allows=_is_in_tandem,
        ),
        Rule("spec.selector", at("spec", "selector")),
        Rule("spec.completionMode", _completion_mode),
        Rule("spec.podFailurePolicy", at("spec", "podFailurePolicy")),
        Rule("spec.backoffLimitPerIndex", at("spec", "backoffLimitPerIndex")),
        Rule("spec.managedBy", at("spec", "managedBy")),
        Rule("spec.successPolicy", at("spec", "successPolicy")),
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
    ("", "pods"): (
        Rule("spec.containers", _number_of_containers, "FieldValueForbidden", CONTAINERS),
        Rule("spec", _pod_without_images, "FieldValueForbidden", POD),
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
    """The fields that would change and may not. A spec that is the same one has not changed."""
    is_same = before.get("spec") is after.get("spec")
    return tuple(
        Cause(rule.field, rule.reason, _words(rule))
        for rule in RULES.get(resource, ())
        if not (is_same and rule.field.startswith("spec"))
        and rule.applies(before)
        and rule.part(before) != rule.part(after)
        and not rule.allows(after)
    )


def _words(rule: Rule) -> str:
    if rule.reason == "FieldValueForbidden":
        return f"Forbidden: {rule.message}"
    return f"Invalid value: {rule.message}"
