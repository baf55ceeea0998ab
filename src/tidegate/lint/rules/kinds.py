"""Rules about custom kinds: their CRDs, their operators, and their references."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping

from tidegate.lint.context import LintContext, LintObject
from tidegate.lint.dependencies import DependencyIndex, dependency_index
from tidegate.lint.names import join_limited, object_name, step_name
from tidegate.lint.pods import LONG_RUNNING_KINDS
from tidegate.lint.rule import Diagnostic, FieldRef, rule
from tidegate.lint.rules.deadlocks import deadlocks
from tidegate.lint.rules.flux_references import (
    missing_health_check_targets,
    missing_service_accounts,
)
from tidegate.lint.rules.parallel_crds import parallel_definitions, parallel_definitions_by_name
from tidegate.model.finding import Severity
from tidegate.model.k8s.json_fields import get_int, get_mapping, get_text
from tidegate.model.plans.graph import EdgeKind, GraphEdge, NodeKind
from tidegate.model.units.policy import Tracking
from tidegate.model.units.unit import UnitId

SKIP_DRY_RUN_OPTION = "SkipDryRunOnMissingResource=true"
CRD_KIND = "CustomResourceDefinition"
CERT_MANAGER = "cert-manager"
INJECT_CA_ANNOTATION = "cert-manager.io/inject-ca-from"


@rule(
    "ORD001",
    "A dependency leads nowhere",
    Severity.ERROR,
    why="what it waits for is not there, or is of another kind: it never starts",
    fix="correct the name, or add what is named",
)
def missing_dependency(context: LintContext) -> Iterator[Diagnostic]:
    """Yield missing targets of depends-on annotations and health checks.

    Dependencies of units themselves are checked during discovery.
    """
    yield from missing_health_check_targets(context)
    yield from missing_service_accounts(context)
    index = dependency_index(context)
    for edge in context.graph.edges:
        node = context.graph.nodes[edge.before]
        obj = index.objects.get(edge.after)
        if (
            edge.kind is not EdgeKind.ANNOTATION
            or node.kind is not NodeKind.EXTERNAL
            or obj is None
        ):
            continue
        if edge.must_be_absent:
            continue
        yield Diagnostic(
            message=f"{object_name(obj.ref)} depends on {node.name}, which nobody here brings",
            at=FieldRef(obj.document, edge.field),
            severity=Severity.WARNING,
            why="it may be in the cluster already; else it is waited for in vain",
        )


@rule(
    "ORD002",
    "Units wait for each other",
    Severity.ERROR,
    why="none of them ever starts: each waits for the other",
    fix="remove one of the dependencies, or put both into one unit",
)
def dependency_cycle(context: LintContext) -> Iterator[Diagnostic]:
    after = {
        unit.id: [
            dependency.unit for dependency in unit.dependencies if dependency.unit in context.units
        ]
        for unit in context.units.values()
    }
    reported: set[frozenset[UnitId]] = set()
    for unit in _unstartable(after):
        cycle = _shortest_cycle(unit, after)
        if not cycle or frozenset(cycle) in reported:
            continue
        reported.add(frozenset(cycle))
        unit_resource = context.unit_resources.get(unit)
        names = [f"`{member}`" for member in (*cycle, cycle[0])]
        at = next(
            n
            for n, dependency in enumerate(context.units[unit].dependencies)
            if dependency.unit == [*cycle, unit][1]
        )
        yield Diagnostic(
            message=f"deadlock: {' waits for '.join(names)}",
            at=(
                FieldRef(unit_resource, ("spec", "dependsOn", at))
                if unit_resource
                else context.units[unit].location
            ),
            related=tuple(
                FieldRef(context.unit_resources[member])
                for member in cycle[1:]
                if member in context.unit_resources
            ),
            sequence=tuple(
                f"`{member}` does not start before `{next_member}` is ready"
                for member, next_member in zip(cycle, (*cycle[1:], cycle[0]), strict=True)
            ),
        )


def _unstartable(after: Mapping[UnitId, list[UnitId | None]]) -> list[UnitId]:
    """Return the units that are in a cycle or wait for one."""
    unmet_counts = {unit: len(set(before)) for unit, before in after.items()}
    waiting: dict[UnitId | None, list[UnitId]] = {}
    for unit, before in after.items():
        for dependency in set(before):
            waiting.setdefault(dependency, []).append(unit)
    startable = [unit for unit, count in unmet_counts.items() if not count]
    for unit in startable:  # it grows meanwhile
        for dependent in waiting.get(unit, ()):
            unmet_counts[dependent] -= 1
            if not unmet_counts[dependent]:
                startable.append(dependent)
    return [unit for unit, count in unmet_counts.items() if count]


def _shortest_cycle(unit: UnitId, after: Mapping[UnitId, list[UnitId | None]]) -> list[UnitId]:
    """Return the shortest cycle of dependencies from a unit to itself; empty if there is none."""
    previous: dict[UnitId, UnitId] = {}
    pending = deque([unit])
    while pending:
        current = pending.popleft()
        for dependency in after.get(current, ()):
            if dependency == unit:
                cycle = [current]
                while cycle[-1] != unit:
                    cycle.append(previous[cycle[-1]])
                return cycle[::-1]
            if dependency is not None and dependency not in previous:
                previous[dependency] = current
                pending.append(dependency)
    return []


@rule(
    "ORD008",
    "A custom resource comes before its definition or its operator",
    Severity.ERROR,
    why=(
        "the API server refuses objects of a kind that it does not know, and without its"
        " operator an object of it does nothing"
    ),
    fix=(
        "bring the definition and the operator first: in an earlier wave, or in a unit that this"
        " one depends on"
    ),
)
def resource_before_crd(context: LintContext) -> Iterator[Diagnostic]:
    yield from deadlocks(context, "ORD008")
    yield from parallel_definitions(context)
    yield from parallel_definitions_by_name(context)
    for objects in context.by_unit.values():
        if objects[0].unit.policy.tracking is Tracking.FLUX:
            yield from _next_to_release(context, objects)


def _next_to_release(context: LintContext, objects: list[LintObject]) -> Iterator[Diagnostic]:
    """Yield objects whose CRD comes with a release of the same Kustomization.

    Flux runs a dry run of all objects of a Kustomization before it applies the first.
    """
    unit = objects[0].unit
    defined = {
        lint_object.manifest.defined_kind
        for lint_object in objects
        if all(lint_object.manifest.defined_kind)
    }
    child_units = {
        unit_id: lint_object
        for lint_object in objects
        for unit_id in lint_object.manifest.child_units
    }
    if not child_units:
        return
    definers: dict[tuple[str, str], UnitId] = {}
    for child in child_units:
        for crd in context.by_unit.get(child, ()):
            if all(crd.manifest.defined_kind):
                definers.setdefault(crd.manifest.defined_kind, child)
    for obj in objects:
        kind = (obj.ref.kind.group, obj.ref.kind.name)
        if kind in defined or obj.manifest.child_units:
            continue
        source = definers.get(kind) or _by_chart(context, obj, child_units)
        if source is not None:
            yield _rejected_together(unit.id, obj, child_units[source], source)


def _by_chart(
    context: LintContext, obj: LintObject, child_units: dict[UnitId, LintObject]
) -> UnitId | None:
    """Return the release whose chart is the operator of a kind, unless its CRD is deployed."""
    row = context.catalog.find_row(obj.ref.kind)
    if row is None or not row.operator:
        return None
    defined_kinds = {
        crd.manifest.defined_kind
        for crd in context.objects_of_kind("apiextensions.k8s.io", CRD_KIND)
    }
    if (obj.ref.kind.group, obj.ref.kind.name) in defined_kinds:
        return None
    for child, unit_resource in child_units.items():
        chart = get_text(unit_resource.body, "spec", "chart", "spec", "chart") or get_text(
            unit_resource.body, "spec", "chartRef", "name"
        )
        if chart.rpartition("/")[2] == row.operator:
            return child
    return None


def _rejected_together(
    unit: UnitId, obj: LintObject, release: LintObject, child: UnitId
) -> Diagnostic:
    return Diagnostic(
        message=(
            f"deadlock: {object_name(obj.ref)} stands beside {object_name(release.ref)}, which"
            " brings its definition, in one Kustomization"
        ),
        at=FieldRef(obj.document, ("kind",)),
        related=(FieldRef(release.document),),
        sequence=(
            f"`{unit}` asks the API server about all of its objects before it applies the first",
            f"the server does not know {obj.ref.kind.name} yet, so that nothing is applied",
            f"the definition comes with `{child}`, which is among what is not applied",
        ),
        fix=(
            f"put {obj.ref.kind.name} into a Kustomization of its own that depends on this one,"
            " and let this one have `wait: true`"
        ),
        semantics=("flux",),
    )


@rule(
    "ORD009",
    "A kind that nobody defines yet is asked about",
    Severity.ERROR,
    why=(
        "Argo CD asks the API server about every object before it applies the first: of a kind"
        " that is not served yet the answer is no, and nothing is applied"
    ),
    fix=(
        f"annotate it `argocd.argoproj.io/sync-options: {SKIP_DRY_RUN_OPTION}`, or bring its"
        " definition before"
    ),
)
def unserved_kind(context: LintContext) -> Iterator[Diagnostic]:
    """Yield objects whose CRD is created by an operator of the same Application."""
    index = dependency_index(context)
    for edge in context.graph.edges:
        obj = index.objects.get(edge.after)
        if obj is None or edge.kind is not EdgeKind.DEFINITION:
            continue
        is_outside = context.graph.nodes[edge.before].kind is NodeKind.EXTERNAL
        is_argocd = obj.unit.policy.semantics.name == "argocd"
        if not is_outside or not is_argocd or obj.manifest.options.skip_missing_kind:
            continue
        operator = _operator_in_unit(index, edge, obj)
        if operator is not None and obj.unit.id in context.complete_units:
            yield Diagnostic(
                message=(
                    f"{object_name(obj.ref)} is asked about before {object_name(operator.ref)} has"
                    " defined its kind"
                ),
                at=FieldRef(obj.document, ("kind",)),
                related=(FieldRef(operator.document),),
                sequence=(
                    f"nothing here defines {obj.ref.kind.name}: its operator does when it runs",
                    "Argo CD asks about all objects first, and hears that there is no such kind",
                    "the sync ends before the operator is applied",
                ),
                severity=Severity.WARNING,
                semantics=("argocd",),
            )


def _operator_in_unit(
    index: DependencyIndex, edge: GraphEdge, obj: LintObject
) -> LintObject | None:
    for at in index.graph.dependency_edges[edge.after]:
        operator_edge = index.graph.edges[at]
        provider = index.objects.get(operator_edge.before)
        if (
            operator_edge.kind is EdgeKind.OPERATOR
            and provider is not None
            and provider.unit.id == obj.unit.id
        ):
            return provider
    return None


@rule(
    "ORD041",
    "Definitions come with the chart of their operator",
    Severity.NOTE,
    why=(
        "whoever removes or renames the release takes the definitions along, and with them all"
        " objects of their kinds; others cannot come before the operator"
    ),
    fix=(
        "bring the definitions in a unit of their own, and switch them off in the chart"
        " (`installCRDs: false`, `crds.enabled: false`)"
    ),
)
def bundled_crds(context: LintContext) -> Iterator[Diagnostic]:
    """Yield charts with CRDs that other units have objects of."""
    users: dict[tuple[str, str], set[UnitId]] = {}
    for obj in context.objects:
        kind = obj.ref.kind
        users.setdefault((kind.group, kind.name), set()).add(obj.unit.id)
    for unit, objects in context.by_unit.items():
        defined = [lint_object for lint_object in objects if all(lint_object.manifest.defined_kind)]
        workloads = [
            lint_object
            for lint_object in objects
            if lint_object.is_kind("apps", *LONG_RUNNING_KINDS)
        ]
        used = [crd for crd in defined if users.get(crd.manifest.defined_kind, set()) - {unit}]
        if used and workloads and "/templates/" in f"/{used[0].document.location.name}":
            unit_resource = context.unit_resources.get(unit)
            yield Diagnostic(
                message=(
                    f"`{unit}` brings {join_limited([object_name(crd.ref) for crd in used])} with"
                    f" {object_name(workloads[0].ref)}, and other units have objects of it"
                ),
                at=FieldRef(unit_resource) if unit_resource else context.units[unit].location,
            )


@rule(
    "ORD043",
    "An operator comes before cert-manager, which makes its certificate",
    Severity.WARNING,
    why="its webhook has no certificate, so that it cannot start, and the API server trusts nobody",
    fix="bring cert-manager first, and wait for its webhook",
)
def operator_before_certificates(context: LintContext) -> Iterator[Diagnostic]:
    index = dependency_index(context)
    for edge in context.graph.edges:
        obj, provider = index.objects.get(edge.after), index.objects.get(edge.before)
        if edge.kind is not EdgeKind.OPERATOR or obj is None or provider is None:
            continue
        if not obj.is_kind("cert-manager.io", "Certificate"):
            continue
        certificate_step, provider_step = context.step_for(obj), context.step_for(provider)
        if certificate_step is None or provider_step is None or obj.unit.id == provider.unit.id:
            continue
        webhooks = [
            lint_object
            for lint_object in context.by_unit[obj.unit.id]
            if _needs_certificate(lint_object)
        ]
        if webhooks and not context.order.is_after(certificate_step.id, provider_step.id):
            yield Diagnostic(
                message=(
                    f"`{obj.unit.id}` has a webhook with {object_name(obj.ref)}, and nothing"
                    f" brings `{provider.unit.id}` before it"
                ),
                at=FieldRef(obj.document),
                related=(FieldRef(webhooks[0].document), FieldRef(provider.document)),
                sequence=(
                    (
                        f"{step_name(certificate_step)} of `{obj.unit.id}` applies"
                        f" {object_name(obj.ref)}"
                    ),
                    (
                        f"`{provider.unit.id}`, which makes certificates, comes at any time, also"
                        " later"
                    ),
                    f"until then {object_name(webhooks[0].ref)} has no authority: calls to it fail",
                ),
                severity=(
                    Severity.NOTE
                    if not context.order.is_after(provider_step.id, certificate_step.id)
                    else Severity.WARNING
                ),
            )


def _start_together(context: LintContext, obj: LintObject, provider: LintObject) -> bool:
    """Return whether both start together, or one after the other without a gate between."""
    object_step, provider_step = context.step_for(obj), context.step_for(provider)
    if object_step is None or provider_step is None:
        return False
    return object_step.id == provider_step.id or context.order.is_after(
        object_step.id, provider_step.id
    )


def _needs_certificate(obj: LintObject) -> bool:
    object_annotations = get_mapping(obj.body, "metadata", "annotations")
    return (
        obj.ref.kind.group == "admissionregistration.k8s.io"
        and INJECT_CA_ANNOTATION in object_annotations
    )


@rule(
    "ORD056",
    "A task starts beside what it calls",
    Severity.ERROR,
    why="nothing brings the one before the other: whether it works is a matter of luck",
    fix="put the task behind what it calls, or let it try for longer (`backoffLimit`)",
)
def task_parallel_to_service(context: LintContext) -> Iterator[Diagnostic]:
    """Yield Jobs without retries that start in parallel with what they call."""
    index = dependency_index(context)
    for unmet in index.races:
        obj, provider = unmet.dependent, unmet.provider
        limit = get_int(obj.body, "spec", "backoffLimit", default=6)
        if provider is None or limit > 0 or not obj.is_kind("batch", "Job"):
            continue
        yield Diagnostic(
            message=(
                f"{object_name(obj.ref)} tries once to call {unmet.requirement}, and nothing waits"
                f" until {object_name(provider.ref)} is ready"
            ),
            at=FieldRef(obj.document, unmet.edge.field),
            related=(FieldRef(provider.document),),
            sequence=(
                (
                    f"{step_name(context.step_for(obj))} of `{obj.unit.id}` applies"
                    f" {object_name(obj.ref)}"
                ),
                (
                    f"{object_name(provider.ref)} is in {step_name(context.step_for(provider))} of"
                    f" `{provider.unit.id}`, and is not ready by then"
                ),
                "with `backoffLimit: 0` the first failure is the last",
            ),
            severity=(
                Severity.ERROR if _start_together(context, obj, provider) else Severity.WARNING
            ),
            semantics=(obj.unit.policy.semantics.name,),
        )
