"""Rules about Flux: dependencies without `wait`, health checks, timeouts, SOPS, pruning."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tidegate.documents import Document
from tidegate.knowledge.settings import SOPS_SECRET_KIND
from tidegate.lint.context import LintContext, LintObject
from tidegate.lint.names import object_name
from tidegate.lint.pods import LONG_RUNNING_KINDS, containers, ready_window
from tidegate.lint.rule import Diagnostic, FieldRef, rule
from tidegate.model.display import join_limited
from tidegate.model.finding import Severity
from tidegate.model.k8s.json_fields import get_list, get_mapping, get_mappings, get_text, get_value
from tidegate.model.k8s.objects import versionless_key
from tidegate.model.times import MINUTE, SECOND, Ms, format_duration, parse_optional_duration
from tidegate.model.units.policy import GateScope, Tracking
from tidegate.model.units.rendering import ArgoPlugin
from tidegate.model.units.unit import Unit

KUSTOMIZATION, HELM_RELEASE = "Kustomization", "HelmRelease"
PRUNE_ANNOTATION = "kustomize.toolkit.fluxcd.io/prune"
SOURCE_GROUP = "source.toolkit.fluxcd.io"
KINDS_WITH_READINESS = frozenset(
    {*LONG_RUNNING_KINDS, "Job", "Pod", "HelmRelease", "Kustomization"}
)
HELM_ACTIONS = ("install", "upgrade")
HELM_TIMEOUT = Ms(5 * MINUTE)


def _becomes_ready_later(obj: LintObject, context: LintContext) -> bool:
    """Return whether an object becomes ready after it is applied, and `wait` would see it.

    Flux waits for the source of a unit by itself, wherever the source is deployed.
    """
    if obj.ref.kind.group == SOURCE_GROUP:
        return False
    row = context.catalog.find_row(obj.ref.kind)
    return obj.ref.kind.name in KINDS_WITH_READINESS or (
        row is not None and row.is_ready_in_kstatus
    )


@rule(
    "ORD016",
    "Dependency is Ready before its objects are",
    Severity.WARNING,
    why=(
        "a Kustomization without `wait` and `healthChecks` is Ready as soon as its objects are"
        " applied, before they are running"
    ),
    fix="add `wait: true` or `healthChecks` to the Kustomization in `dependsOn`",
)
def dependency_without_wait(context: LintContext) -> Iterator[Diagnostic]:
    for unit in context.units.values():
        unit_resource = context.unit_resources.get(unit.id)
        for at, dependency in enumerate(unit.dependencies):
            required_unit = context.units.get(dependency.unit) if dependency.unit else None
            if (
                required_unit is None
                or dependency.ready_when
                or unit.policy.tracking is not Tracking.FLUX
            ):
                continue
            yield from _without_wait(context, unit, unit_resource, at, required_unit)


def _without_wait(
    context: LintContext, unit: Unit, unit_resource: Document | None, at: int, required_unit: Unit
) -> Iterator[Diagnostic]:
    slow_objects = [
        lint_object
        for lint_object in context.by_unit.get(required_unit.id, ())
        if _becomes_ready_later(lint_object, context)
    ]
    if required_unit.id.kind == KUSTOMIZATION and required_unit.policy.gates is GateScope.NONE:
        cause, fix = "has no `wait` and no `healthChecks`", ""
    elif required_unit.id.kind == HELM_RELEASE and required_unit.policy.gates is GateScope.NONE:
        cause, fix = "has `disableWait`", "remove `disableWait` from the HelmRelease"
    else:
        return
    if not slow_objects:
        return
    target = context.unit_resources.get(required_unit.id)
    names = join_limited([object_name(lint_object.ref) for lint_object in slow_objects])
    # The 30 s are the default of `--requeue-dependency` in main.go of kustomize-controller v1.9.4.
    yield Diagnostic(
        message=f"`{unit.id}` depends on `{required_unit.id}`, which {cause}",
        at=FieldRef(unit_resource, ("spec", "dependsOn", at)) if unit_resource else unit.location,
        related=(FieldRef(target),) if target else (),
        sequence=(
            f"`{required_unit.id}` applies {names}",
            f"Flux reports `{required_unit.id}` as Ready at once, without waiting for {names}",
            f"at most 30 s later, Flux checks the dependency and applies `{unit.id}`",
        ),
        fix=fix,
        semantics=("flux",),
        cause=str(required_unit.id),
    )


@rule(
    "ORD017",
    "Health check expression passes too early",
    Severity.WARNING,
    why="the expression is true before the controller of the object has written all conditions",
    fix=(
        "check that the field exists, and that `status.observedGeneration == metadata.generation`"
    ),
)
def early_expression(context: LintContext) -> Iterator[Diagnostic]:
    for unit, unit_resource in context.unit_resources.items():
        if unit.kind not in {KUSTOMIZATION, HELM_RELEASE}:
            continue
        for index, check in enumerate(get_mappings(unit_resource.body, "spec", "healthCheckExprs")):
            expression = get_text(check, "current")
            if ".all(" in expression and "size(" not in expression and "exists(" not in expression:
                # Without `status` the evaluation fails, and Flux waits: `Evaluate` in
                # cel/status_evaluator.go of fluxcd/pkg/runtime 0.110.3.
                selects_condition = ".filter(" in expression
                yield Diagnostic(
                    message=f"`current` of `{unit}` uses `all`, which is true for an empty list",
                    at=FieldRef(unit_resource, ("spec", "healthCheckExprs", index, "current")),
                    severity=Severity.NOTE if selects_condition else None,
                    why=(
                        "the expression is true for a status without this condition, which some"
                        " controllers write first"
                    )
                    if selects_condition
                    else "",
                    fix="add `size(…) > 0` to the expression, or use `exists`",
                    semantics=("flux",),
                )
        for index, dependency in enumerate(get_mappings(unit_resource.body, "spec", "dependsOn")):
            expression = get_text(dependency, "readyExpr")
            if (
                expression
                and "eneration" not in expression
                and "AdditiveCELDependencyCheck" not in str(context.settings)
            ):
                yield Diagnostic(
                    message=(
                        f"`readyExpr` of `{unit}` replaces the built-in check, but does not"
                        " check the generation"
                    ),
                    at=FieldRef(unit_resource, ("spec", "dependsOn", index, "readyExpr")),
                    severity=Severity.NOTE,
                    why=(
                        "with `readyExpr` Flux does not check the Ready condition, so the status"
                        " of the previous revision can pass"
                    ),
                    semantics=("flux",),
                )


@rule(
    "ORD018",
    "Timeout is shorter than the startup time",
    Severity.WARNING,
    why="the unit fails when the timeout expires, although its objects would become ready later",
    fix="set `timeout` to more than the startup time that the probes allow",
)
def short_timeout(context: LintContext) -> Iterator[Diagnostic]:
    for unit, unit_resource in context.unit_resources.items():
        if unit.kind not in {KUSTOMIZATION, HELM_RELEASE} or unit not in context.order.units:
            continue
        policy = context.units[unit].policy
        timeout = _release_timeout(unit_resource) if unit.kind == HELM_RELEASE else policy.timeout
        if not timeout or policy.gates is GateScope.NONE:
            continue
        gating = {versionless_key(ref) for ref in policy.gating_refs}
        windows = {
            Ms(ready_window(container) * SECOND): obj
            for obj in context.by_unit.get(unit, ())
            if policy.gates is GateScope.ALL or versionless_key(obj.ref) in gating
            for _, container in containers(obj, "containers")
        }
        longest = max(windows, default=Ms(0))
        if longest > timeout:
            yield Diagnostic(
                message=(
                    f"`{unit}` has a timeout of {format_duration(timeout)}, but the probes of"
                    f" {object_name(windows[longest].ref)} allow {format_duration(longest)}"
                ),
                at=_timeout_field(unit_resource),
                semantics=("flux",),
            )


def _timeout_field(unit_resource: Document) -> FieldRef:
    """Return the field that sets the timeout; without one, Flux derives it from `interval`."""
    has_timeout = get_value(unit_resource.body, "spec", "timeout") is not None
    return FieldRef(unit_resource, ("spec", "timeout" if has_timeout else "interval"))


def _release_timeout(unit_resource: Document) -> Ms:
    """Return the shortest timeout of the actions of a HelmRelease.

    helm-controller v1.6.4, api/v2/helmrelease_types.go (`GetTimeout`): 5 minutes by default.
    """
    spec = get_mapping(unit_resource.body, "spec")
    common = parse_optional_duration(get_text(spec, "timeout")) or HELM_TIMEOUT
    actions = (parse_optional_duration(get_text(spec, name, "timeout")) for name in HELM_ACTIONS)
    return min(action or common for action in actions)


@rule(
    "ORD022",
    "Pruning can delete data",
    Severity.NOTE,
    why=(
        "if a CRD is removed from Git, pruning deletes the CRD and all of its objects; if a"
        " PersistentVolumeClaim is removed, its data can be lost"
    ),
    fix="annotate these objects with `kustomize.toolkit.fluxcd.io/prune: disabled`",
)
def prunes_data(context: LintContext) -> Iterator[Diagnostic]:
    for unit, objects in context.by_unit.items():
        policy = context.units[unit].policy
        if policy.tracking is not Tracking.FLUX or not policy.prune or unit.kind != KUSTOMIZATION:
            continue
        risky = [lint_object for lint_object in objects if _has_data(lint_object)]
        if risky:
            unit_resource = context.unit_resources.get(unit)
            yield Diagnostic(
                message=(
                    f"`{unit}` has `prune: true` and manages"
                    f" {join_limited([object_name(lint_object.ref) for lint_object in risky])}"
                ),
                at=(
                    FieldRef(unit_resource, ("spec", "prune"))
                    if unit_resource
                    else context.units[unit].location
                ),
                related=(FieldRef(risky[0].document),),
                semantics=("flux",),
            )


def _has_data(obj: LintObject) -> bool:
    labels = {
        **get_mapping(obj.body, "metadata", "labels"),
        **get_mapping(obj.body, "metadata", "annotations"),
    }
    is_data = obj.is_kind("", "PersistentVolumeClaim") or obj.is_kind(
        "apiextensions.k8s.io", "CustomResourceDefinition"
    )
    return is_data and labels.get(PRUNE_ANNOTATION) != "disabled"


@rule(
    "ORD045",
    "Encrypted file is applied without decryption",
    Severity.ERROR,
    why=(
        "the cluster gets the encrypted values, and the field `sops`, which no Kubernetes kind has"
    ),
    fix="add `decryption: {provider: sops}` and the `secretRef` of the key to the Kustomization",
)
def undecrypted_file(context: LintContext) -> Iterator[Diagnostic]:
    encrypted_files = {
        encrypted_file.name: encrypted_file for encrypted_file in context.encrypted_files
    }
    for obj in context.objects if encrypted_files else ():
        unit, file = obj.unit, encrypted_files.get(obj.document.location.name)
        unit_resource = context.unit_resources.get(unit.id)
        if (
            file is None
            or unit_resource is None
            or get_mapping(unit_resource.body, "spec", "decryption")
        ):
            continue
        if any(isinstance(unit_source.request, ArgoPlugin) for unit_source in unit.sources):
            continue
        argo_fix = (
            "use a config management plugin or an operator for secrets; Argo CD does not decrypt"
            " files"
        )
        for document in file.documents:
            if (
                get_text(document.body, "sops", "mac")
                and get_text(document.body, "kind") != SOPS_SECRET_KIND
            ):
                yield Diagnostic(
                    message=(
                        f"{object_name(obj.ref)} is encrypted, but `{unit.id}` does not decrypt it"
                    ),
                    at=FieldRef(document, ("sops",)),
                    related=(FieldRef(unit_resource),),
                    fix="" if unit.id.kind == KUSTOMIZATION else argo_fix,
                )


@rule(
    "ORD046",
    "SOPS recipients differ from `.sops.yaml`",
    Severity.WARNING,
    why=(
        "new recipients in `.sops.yaml` cannot decrypt the file, and removed recipients still can"
    ),
    fix="run `sops updatekeys` on the file",
)
def recipient_mismatch(context: LintContext) -> Iterator[Diagnostic]:
    for sops_config in context.sops_configs:
        folder = sops_config.name.rpartition("/")[0]
        for file in context.encrypted_files:
            if folder and not file.name.startswith(f"{folder}/"):
                continue
            relative_name = file.name.removeprefix(f"{folder}/") if folder else file.name
            expected = _recipients(sops_config.documents, relative_name)
            for document in file.documents:
                actual = {
                    get_text(recipient, "recipient")
                    for recipient in get_mappings(document.body, "sops", "age")
                }
                if expected and actual and expected != actual:
                    missing, additional = sorted(expected - actual), sorted(actual - expected)
                    differences = [f"missing: {join_limited(missing, 2)}"] if missing else []
                    differences += (
                        [f"not listed: {join_limited(additional, 2)}"] if additional else []
                    )
                    yield Diagnostic(
                        message=(
                            f"recipients of `{file.name}` differ from `{sops_config.name}`"
                            f" ({'; '.join(differences)})"
                        ),
                        at=FieldRef(document, ("sops", "age")),
                    )


def _recipients(documents: tuple[Document, ...], path: str) -> set[str]:
    """Return the recipients of the first creation rule that matches a path."""
    for document in documents:
        for creation_rule in get_mappings(document.body, "creation_rules"):
            pattern = get_text(creation_rule, "path_regex")
            try:
                is_match = not pattern or re.search(pattern, path) is not None
            except re.error:
                return set()
            if is_match:
                age_keys = get_value(creation_rule, "age")
                keys = age_keys if isinstance(age_keys, list) else str(age_keys or "").split(",")
                groups = get_list(creation_rule, "key_groups")
                return {str(key).strip() for key in keys if key} if not groups else set()
    return set()
