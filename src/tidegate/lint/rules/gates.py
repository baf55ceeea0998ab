"""Rules about gates: those without effect, those that never open, and needless ones."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from tidegate.lint.context import LintContext, LintObject
from tidegate.lint.dependencies import DependencyIndex, dependency_index, is_required, needs_ready
from tidegate.lint.names import join_limited, object_name, step_name
from tidegate.lint.pods import claim_names
from tidegate.lint.rule import Diagnostic, FieldRef, rule
from tidegate.lint.snippets import health_check_snippets
from tidegate.model.finding import Severity
from tidegate.model.k8s.json_fields import get_list, get_mapping, get_mappings, get_text, get_value
from tidegate.model.operators.rows import Effect
from tidegate.model.plans.graph import NO_STEP
from tidegate.model.plans.plan import Step
from tidegate.model.units.policy import Order
from tidegate.model.units.unit import UnitId

PAUSE_FIELDS = {
    ("batch", "Job"): "suspend",
    ("apps", "Deployment"): "paused",
    ("argoproj.io", "Rollout"): "paused",
}
"""Fields that make Argo CD report an object as Suspended."""
FIRST_CONSUMER = "WaitForFirstConsumer"
WEBHOOK_KINDS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
BROAD_RESOURCES = frozenset({"pods", "namespaces", "*", "*/*"})


@rule(
    "ORD007",
    "A claim waits for a pod that comes later",
    Severity.ERROR,
    why="with `WaitForFirstConsumer` a volume is bound when a pod uses it, and not before",
    fix="put the claim into the wave of the workload that uses it",
)
def claim_before_pod(context: LintContext) -> Iterator[Diagnostic]:
    late_binding = {
        storage_class.ref.name: storage_class
        for storage_class in context.objects_of_kind("storage.k8s.io", "StorageClass")
        if get_text(storage_class.body, "volumeBindingMode") == FIRST_CONSUMER
    }
    default = [
        storage_class for storage_class in late_binding.values() if _is_default(storage_class)
    ]
    users: dict[tuple[str, str], list[LintObject]] = {}
    for obj in context.objects if late_binding else ():
        for claim_name in claim_names(obj):
            users.setdefault((obj.ref.namespace, claim_name), []).append(obj)
    for claim in context.objects_of_kind("", "PersistentVolumeClaim") if late_binding else ():
        class_name = get_value(claim.body, "spec", "storageClassName")
        storage_class_object = (
            late_binding.get(str(class_name))
            if class_name is not None
            else (default[0] if default else None)
        )
        step = context.step_for(claim)
        if (
            storage_class_object is None
            or step is None
            or not _blocks_later_steps(context, claim, step)
        ):
            continue
        pods = users.get((claim.ref.namespace, claim.ref.name), [])
        in_time = [pod_owner for pod_owner in pods if _is_not_after(context, pod_owner, step)]
        if not in_time:
            yield _unbound_claim(context, claim, step, storage_class_object, pods)


def _is_default(obj: LintObject) -> bool:
    object_annotations = get_mapping(obj.body, "metadata", "annotations")
    return object_annotations.get("storageclass.kubernetes.io/is-default-class") == "true"


def _blocks_later_steps(context: LintContext, obj: LintObject, step: Step) -> bool:
    """Return whether a later step waits for the object."""
    semantics = obj.unit.policy.semantics
    is_gated = not step.is_last or semantics.gates_last
    return is_gated and bool(context.order.outgoing.get(step.id)) and obj.manifest.is_gating


def _is_not_after(context: LintContext, obj: LintObject, step: Step) -> bool:
    other = context.step_for(obj)
    return other is not None and not context.order.is_after(other.id, step.id)


def _unbound_claim(
    context: LintContext,
    claim: LintObject,
    step: Step,
    storage_class: LintObject,
    pods: list[LintObject],
) -> Diagnostic:
    user = (
        f"{object_name(pods[0].ref)} in {step_name(context.step_for(pods[0]))}"
        if pods
        else "no pod here"
    )
    return Diagnostic(
        message=(
            f"deadlock: {object_name(claim.ref)} in {step_name(step)} is bound when a pod uses it,"
            f" and {user} does"
        ),
        at=FieldRef(claim.document),
        related=(
            FieldRef(storage_class.document, ("volumeBindingMode",)),
            *(FieldRef(pod_owner.document) for pod_owner in pods),
        ),
        sequence=(
            f"{step_name(step)} applies {object_name(claim.ref)} and waits until it is bound",
            f"{object_name(storage_class.ref)} binds a volume when the first pod uses it",
            f"{user} uses it, which comes only when {step_name(step)} is done",
        ),
        semantics=(claim.unit.policy.semantics.name,),
    )


@rule(
    "ORD060",
    "What Git pauses holds a gate for ever",
    Severity.ERROR,
    why=(
        "Argo CD takes it for Suspended, and goes on to the next wave only when all of this one is"
        " Healthy"
    ),
    fix="put it into the last wave, or remove what pauses it",
)
def paused_before_others(context: LintContext) -> Iterator[Diagnostic]:
    for (group, kind), field in PAUSE_FIELDS.items():
        for obj in context.objects_of_kind(group, kind):
            step = context.step_for(obj)
            if step is None or obj.unit.policy.semantics.passes_paused:
                continue
            if get_value(obj.body, "spec", field) is True and _blocks_later_steps(
                context, obj, step
            ):
                yield _paused_object(obj, step, field)


def _paused_object(obj: LintObject, step: Step, field: str) -> Diagnostic:
    return Diagnostic(
        message=(
            f"{object_name(obj.ref)} is paused by `{field}: true`, and what comes behind"
            f" {step_name(step)} never begins"
        ),
        at=FieldRef(obj.document, ("spec", field)),
        semantics=(obj.unit.policy.semantics.name,),
    )


@rule(
    "ORD010",
    "A gate that never gates",
    Severity.WARNING,
    why="Argo CD has no health check for this kind, and takes it for healthy once it is there",
    fix="add a health check to argocd-cm",
)
def gate_without_check(context: LintContext) -> Iterator[Diagnostic]:
    index = dependency_index(context)
    consumers = _consumers(index)
    for node in context.graph.nodes:
        obj = index.objects.get(node.number)
        if obj is None or node.step == NO_STEP or obj.unit.policy.semantics.uses_generic_health:
            continue
        row = context.catalog.find_row(obj.ref.kind)
        if row is None or not row.ready_when or context.has_check(obj.unit, obj.body):
            continue
        step = context.step_for(obj)
        if step is None or step.is_last:
            continue
        later = [
            consumer
            for consumer, fails in consumers.get(node.number, ())
            if (other := context.step_for(consumer))
            and context.order.is_after(other.id, step.id)
            and fails
        ]
        yield _missing_check(context, obj, step, later)


def _consumers(index: DependencyIndex) -> dict[int, list[tuple[LintObject, bool]]]:
    """Return by node the objects that need it ready, and whether they fail otherwise."""
    consumers: dict[int, list[tuple[LintObject, bool]]] = {}
    for edge in index.graph.edges:
        obj = index.objects.get(edge.after)
        if obj is not None and is_required(edge) and needs_ready(edge):
            fails = edge.effect in {Effect.FAILS, Effect.REJECTED}
            consumers.setdefault(edge.before, []).append((obj, fails))
    return consumers


def _missing_check(
    context: LintContext, obj: LintObject, step: Step, later: list[LintObject]
) -> Diagnostic:
    row = context.catalog.find_row(obj.ref.kind)
    consequence = f", and {object_name(later[0].ref)} fails where it is not ready" if later else ""
    sequence = [
        f"{step_name(step)} applies {object_name(obj.ref)}",
        f"Argo CD has no health check for {obj.ref.kind.name}: it passes at once",
        "2 s later the next wave begins, while it is still on its way",
    ]
    sequence += [f"{object_name(later[0].ref)} needs it, and fails"] if later else []
    return Diagnostic(
        message=(
            f"nothing waits until {object_name(obj.ref)} in {step_name(step)} is ready{consequence}"
        ),
        at=FieldRef(obj.document),
        related=(FieldRef(later[0].document),) if later else (),
        severity=Severity.WARNING if later else Severity.NOTE,
        sequence=tuple(sequence),
        snippet=health_check_snippets(obj.ref.kind, row) if row else "",
        semantics=(obj.unit.policy.semantics.name,),
    )


@rule(
    "ORD024",
    "A webhook that fails closed stands in the way of its own pods",
    Severity.WARNING,
    why="while nobody answers, the API server refuses whatever it is asked about",
    fix=(
        "leave its own namespace and `kube-system` out with a `namespaceSelector`, or use"
        " `failurePolicy: Ignore`"
    ),
)
def closed_webhook(context: LintContext) -> Iterator[Diagnostic]:
    for obj in context.objects_of_kind("admissionregistration.k8s.io", *WEBHOOK_KINDS):
        for at, hook in enumerate(get_list(obj.body, "webhooks")):
            if (
                not isinstance(hook, dict)
                or get_text(hook, "failurePolicy", default="Fail") != "Fail"
            ):
                continue
            if get_mapping(hook, "namespaceSelector") or get_mapping(hook, "objectSelector"):
                continue
            if get_list(hook, "matchConditions") or not get_mapping(
                hook, "clientConfig", "service"
            ):
                continue
            broad = sorted(
                {
                    str(resource)
                    for rules in get_mappings(hook, "rules")
                    for resource in get_list(rules, "resources")
                    if str(resource) in BROAD_RESOURCES
                    and {"", "*"} & {str(group) for group in get_list(rules, "apiGroups")}
                    and {"CREATE", "*"}
                    & {str(operation) for operation in get_list(rules, "operations")}
                }
            )
            if broad:
                yield Diagnostic(
                    message=(
                        f"{object_name(obj.ref)} refuses all {join_limited(broad)} while"
                        f" `{get_text(hook, 'name')}` does not answer"
                    ),
                    at=FieldRef(obj.document, ("webhooks", at)),
                )


@rule(
    "ORD026",
    "A wave that nobody needs",
    Severity.NOTE,
    why="each wave waits for the one before, and costs Argo CD at least 2 s",
    fix="give both the same wave",
)
def needless_wave(context: LintContext) -> Iterator[Diagnostic]:
    """Yield neighbouring waves without any dependency between them, direct or indirect."""
    index = dependency_index(context)
    needs: dict[int, set[int]] = {}
    for edge in context.graph.edges:
        after, before = context.graph.nodes[edge.after], context.graph.nodes[edge.before]
        if NO_STEP not in {after.step, before.step}:
            needs.setdefault(after.step, set()).add(before.step)
    for unit, steps in context.order.by_unit.items():
        planned = context.order.units.get(unit)
        if (
            planned is None
            or planned.policy.order is not Order.WAVES
            or unit not in context.complete_units
        ):
            continue
        waves = [step for step in steps if step.phase == "sync" and step.batches]
        for at, (earlier, later) in enumerate(pairwise(waves)):
            first = _first_object(index, later)
            if first is not None and _is_needless(index, waves[: at + 1], later, needs):
                yield Diagnostic(
                    message=(
                        f"nothing in {step_name(later)} of `{unit}` needs anything of"
                        f" {step_name(earlier)}, as far as is known"
                    ),
                    at=FieldRef(first.document),
                )


def _is_needless(
    index: DependencyIndex, earlier_steps: list[Step], later: Step, needs: dict[int, set[int]]
) -> bool:
    """Return whether a wave needs nothing of the earlier ones.

    A reversed dependency is reported by another rule; parts of one wave are left out.
    """
    numbers = index.graph.step_numbers
    earlier_numbers, later_number = {numbers[step.id] for step in earlier_steps}, numbers[later.id]
    if earlier_steps[-1].wave == later.wave or _has_tasks(index, earlier_steps[-1], later):
        return False
    return not needs.get(later_number, set()) & earlier_numbers and not any(
        later_number in needs.get(number, ()) for number in earlier_numbers
    )


UNIT_KINDS = ("Application", "ApplicationSet", "Kustomization", "HelmRelease", "AppProject")


def _has_tasks(index: DependencyIndex, *steps: Step) -> bool:
    """Return whether steps have Jobs, hooks or units, whose effects no reference shows."""
    numbers = (index.graph.step_numbers[step.id] for step in steps)
    nodes = (
        index.graph.nodes[node_number]
        for number in numbers
        for node_number in index.graph.steps[number].nodes
    )
    return any(
        node.is_task or node.is_hook or (node.ref is not None and node.ref.kind.name in UNIT_KINDS)
        for node in nodes
    )


def _first_object(index: DependencyIndex, step: Step) -> LintObject | None:
    number = index.graph.step_numbers[step.id]
    nodes = index.graph.steps[number].nodes
    return next(
        (index.objects[node_number] for node_number in nodes if node_number in index.objects), None
    )


MAX_CHAIN_LENGTH = 12


@rule(
    "ORD027",
    "A very long chain of units",
    Severity.NOTE,
    why=(
        "each waits for the one before: the time of all of them adds up, and one that is stuck"
        " holds all behind it"
    ),
    fix="let units depend on what they need, and not on whoever comes before",
)
def long_chain(context: LintContext) -> Iterator[Diagnostic]:
    depth: dict[UnitId, int] = {}
    for step in context.order.plan.steps:
        for edge in context.order.incoming.get(step.id, ()):
            before = context.order.steps[edge.before].unit
            length = depth.get(before, 0) + (before != step.unit and bool(step.unit.kind))
            depth[step.unit] = max(length, depth.get(step.unit, 0))
    depth_in_git = {
        unit_id: number for unit_id, number in depth.items() if unit_id in context.unit_resources
    }
    last = max(depth_in_git, key=lambda candidate: depth_in_git[candidate], default=None)
    if last is not None and depth_in_git[last] > MAX_CHAIN_LENGTH:
        yield Diagnostic(
            message=f"`{last}` comes behind {depth_in_git[last]} others, one after another",
            at=FieldRef(context.unit_resources[last]),
        )
