"""Rules about gates: gates that never open, gates without effect, and unnecessary gates."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from tidegate.lint.context import LintContext, LintObject
from tidegate.lint.dependencies import DependencyIndex, dependency_index, is_required, needs_ready
from tidegate.lint.names import object_name, step_name
from tidegate.lint.pods import claim_names
from tidegate.lint.rule import Diagnostic, FieldRef, rule
from tidegate.lint.rules.flux_gates import gates_before_status
from tidegate.lint.snippets import health_check_snippets
from tidegate.model.display import join_limited
from tidegate.model.finding import Severity
from tidegate.model.k8s.json_fields import get_list, get_mapping, get_mappings, get_text, get_value
from tidegate.model.operators.rows import Effect
from tidegate.model.plans.graph import NO_STEP
from tidegate.model.plans.plan import Step, step_items
from tidegate.model.units.policy import Order
from tidegate.model.units.unit import UnitId

PAUSE_FIELDS = {
    ("batch", "Job"): "suspend",
    ("apps", "Deployment"): "paused",
    ("argoproj.io", "Rollout"): "paused",
}
"""Fields that make Argo CD report an object as Suspended.

Argo CD v3.5.1: gitops-engine/pkg/health/health_job.go and health_deployment.go,
resource_customizations/argoproj.io/Rollout/health.lua.
"""
FIRST_CONSUMER = "WaitForFirstConsumer"
WEBHOOK_KINDS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
BROAD_RESOURCES = frozenset({"pods", "namespaces", "*", "*/*"})


@rule(
    "ORD007",
    "PersistentVolumeClaim waits for a pod of a later wave",
    Severity.ERROR,
    why=(
        "with `volumeBindingMode: WaitForFirstConsumer` Kubernetes binds a claim only when a pod"
        " uses it"
    ),
    fix="move the claim to the wave of the workload that uses it",
)
def claim_before_pod(context: LintContext) -> Iterator[Diagnostic]:
    """Yield claims that wait for a pod of a later wave.

    A pending claim is Progressing in Argo CD v3.5.1, gitops-engine/pkg/health/health_pvc.go.
    """
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
        if not in_time and (pods or not _may_have_unknown_pods(context, claim)):
            yield _unbound_claim(context, claim, step, storage_class_object, pods)


def _may_have_unknown_pods(context: LintContext, claim: LintObject) -> bool:
    """Return whether a unit with unknown objects may deploy pods beside a claim."""
    return any(
        unit.destination.cluster == claim.unit.destination.cluster
        and unit.destination.namespace in {"", claim.ref.namespace}
        for unit_id, unit in context.units.items()
        if unit_id not in context.complete_units
    )


def _is_default(obj: LintObject) -> bool:
    object_annotations = get_mapping(obj.body, "metadata", "annotations")
    return object_annotations.get("storageclass.kubernetes.io/is-default-class") == "true"


def _blocks_later_steps(context: LintContext, obj: LintObject, step: Step) -> bool:
    """Return whether a later step waits for the object."""
    semantics = obj.unit.policy.semantics
    is_gated = not step.is_last or semantics.gates_last
    is_awaited = any(item.is_gating for item in step_items(step) if item.ref == obj.ref)
    return is_gated and is_awaited and bool(context.order.outgoing.get(step.id))


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
    name = object_name(claim.ref)
    user = f"{object_name(pods[0].ref)} in {step_name(context.step_for(pods[0]))}" if pods else ""
    return Diagnostic(
        message=(
            f"deadlock: {name} in {step_name(step)} is bound only when a pod uses it, but "
            + (f"the pod belongs to {user}" if user else "no workload in this repository does")
        ),
        at=FieldRef(claim.document),
        related=(
            FieldRef(storage_class.document, ("volumeBindingMode",)),
            *(FieldRef(pod_owner.document) for pod_owner in pods),
        ),
        sequence=(
            f"{step_name(step)} applies {name} and waits until it is bound",
            f"{object_name(storage_class.ref)} binds a claim only when a pod uses it",
            (
                f"{user} uses {name}, but starts only after {step_name(step)} finishes, so"
                f" {name} waits forever"
                if user
                else f"no workload in this repository uses {name}, so {name} waits forever"
            ),
        ),
        semantics=(claim.unit.policy.semantics.name,),
    )


@rule(
    "ORD060",
    "Paused object blocks all later waves",
    Severity.ERROR,
    why=(
        "Argo CD reports the object as Suspended, and starts the next wave only when all objects"
        " of the current wave are Healthy"
    ),
    fix="move the object to the last wave, or remove `paused` or `suspend`",
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
            f"{object_name(obj.ref)} has `{field}: true`, so the steps after {step_name(step)}"
            " never start"
        ),
        at=FieldRef(obj.document, ("spec", field)),
        semantics=(obj.unit.policy.semantics.name,),
    )


@rule(
    "ORD010",
    "Gate does not wait for a custom resource",
    Severity.WARNING,
    why=(
        "Argo CD has no health check for this kind, so the custom resource counts as healthy as"
        " soon as it exists"
    ),
    fix="add a health check for this kind to argocd-cm",
)
def gate_without_check(context: LintContext) -> Iterator[Diagnostic]:
    yield from gates_before_status(context)
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
    row, name = context.catalog.find_row(obj.ref.kind), object_name(obj.ref)
    consequence = f", and {object_name(later[0].ref)} fails without it" if later else ""
    sequence = [
        f"{step_name(step)} applies {name}",
        f"Argo CD has no health check for {obj.ref.kind.name}, so {name} counts as healthy at once",
        f"2 s later the next wave starts, although {name} is not ready yet",
    ]
    sequence += [f"{object_name(later[0].ref)} needs {name} and fails"] if later else []
    return Diagnostic(
        message=f"{step_name(step)} does not wait until {name} is ready{consequence}",
        at=FieldRef(obj.document),
        related=(FieldRef(later[0].document),) if later else (),
        severity=Severity.WARNING if later else Severity.NOTE,
        sequence=tuple(sequence),
        snippet=health_check_snippets(obj.ref.kind, row) if row else "",
        semantics=(obj.unit.policy.semantics.name,),
        cause=f"{obj.ref.kind.group} {obj.ref.kind.name}",
    )


@rule(
    "ORD024",
    "Webhook with `failurePolicy: Fail` can block its own pods",
    Severity.WARNING,
    why=(
        "while the webhook does not respond, the API server rejects every matching request,"
        " including requests for the pods of the webhook"
    ),
    fix=(
        "exclude the namespace of the webhook and `kube-system` with a `namespaceSelector`, or set"
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
                        f"{object_name(obj.ref)} rejects {_resources_text(broad)} in all namespaces"
                        f" while webhook `{get_text(hook, 'name')}` does not respond"
                    ),
                    at=FieldRef(obj.document, ("webhooks", at)),
                )


def _resources_text(resources: list[str]) -> str:
    """Return resources of a webhook rule as text; `*` and `*/*` match all resources."""
    if any(resource.startswith("*") for resource in resources):
        return "all requests"
    return f"all requests for {join_limited(resources)}"


@rule(
    "ORD026",
    "Unnecessary sync wave",
    Severity.NOTE,
    why="each wave waits for the previous wave and takes Argo CD at least 2 s",
    fix="merge the two waves",
)
def needless_wave(context: LintContext) -> Iterator[Diagnostic]:
    """Yield adjacent waves without a direct or indirect dependency between them.

    The 2 s are the default of `delayBetweenSyncWaves` in Argo CD v3.5.1, controller/sync.go.
    """
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
                        f"{step_name(later)} of `{unit}` has no known dependency on"
                        f" {step_name(earlier)}"
                    ),
                    at=FieldRef(first.document),
                )


def _is_needless(
    index: DependencyIndex, earlier_steps: list[Step], later: Step, needs: dict[int, set[int]]
) -> bool:
    """Return whether a wave depends on none of the earlier waves.

    Another rule reports reversed dependencies. Parts of one wave are not compared.
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
    """Return whether steps have Jobs, hooks or units; references do not show their effects."""
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
_Chain = tuple[UnitId, ...]


@rule(
    "ORD027",
    "Long chain of dependent units",
    Severity.NOTE,
    why=(
        "each unit waits for the previous unit: their durations add up, and a unit that is stuck"
        " blocks all later units"
    ),
    fix="make each unit depend only on the units that it needs",
)
def long_chain(context: LintContext) -> Iterator[Diagnostic]:
    """Yield the longest chain of units; a parent does not count, as its children are its parts."""
    longest: dict[str, _Chain] = {}
    for step in context.order.plan.steps:
        chains = [
            _extend(longest[edge.before], step.unit, context)
            for edge in context.order.incoming.get(step.id, ())
            if edge.before in longest
        ]
        longest[step.id] = max(chains, key=len, default=(step.unit,))
    chain = max(longest.values(), key=len, default=())
    if len(chain) > MAX_CHAIN_LENGTH + 1 and chain[-1] in context.unit_resources:
        yield Diagnostic(
            message=f"{len(chain) - 1} units are deployed one after another before `{chain[-1]}`",
            at=FieldRef(context.unit_resources[chain[-1]]),
            sequence=tuple(
                f"`{after}` starts after `{before}`" for before, after in pairwise(chain)
            ),
        )


def _extend(chain: _Chain, unit: UnitId, context: LintContext) -> _Chain:
    """Return a chain with the unit of the next step. Steps of a parent are not links."""
    last = chain[-1]
    if unit in chain or unit in _ancestors(last, context):
        return chain
    return (*chain[:-1], unit) if last in _ancestors(unit, context) else (*chain, unit)


def _ancestors(unit: UnitId, context: LintContext) -> Iterator[UnitId]:
    seen: set[UnitId] = set()
    parent = context.units[unit].parent if unit in context.units else None
    while parent is not None and parent not in seen:
        seen.add(parent)
        yield parent
        parent = context.units[parent].parent if parent in context.units else None
